"""`whisperfleet subtitles`"""

import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.commands.arguments import (
    STANDARD_STREAM,
    check_options,
    choose_format,
    named_files,
    note_without_effect,
    plan_targets,
    write_output,
)
from app.commands.ending import command
from app.common.errors import InvalidInput
from app.common.options import Options
from app.transcript.reading import read_transcript
from app.transcript.rendering import render_transcript
from app.transcript.text.chinese import convert_segments


@command()
def run_subtitles(
    files: Sequence[Path], output: str | None, file_format: str | None, options: dict[str, object]
) -> int:
    """Turn transcripts into subtitles. Returns the exit code: 1 if a file failed, 2 for wrong usage."""
    transcripts = named_files(files)
    chosen = choose_format(output, file_format, transcripts)
    checked = check_options(options)
    note_without_effect(checked, chosen)
    targets = plan_targets(transcripts, output, chosen)
    gc.disable()  # a long transcript is millions of objects, and none refer to each other in circles
    done = [_convert(file, target, checked, chosen) for file, target in targets]
    return 0 if all(done) else 1


def _convert(file: Path, target: Path | None, options: Options, chosen: str) -> bool:
    """Whether it worked; prints why not."""
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_STREAM else file.read_bytes()
        write_output(target, _render(content, file, options, chosen))
    except InvalidInput as error:
        print(f"{file}: {error.message}", file=sys.stderr)
    except OSError as error:
        print(f"{error.filename or target or file}: {error.strerror}", file=sys.stderr)
    else:
        return True
    return False


def _render(content: bytes, file: Path, options: Options, chosen: str) -> bytes:
    reading = read_transcript(content, options.language, options.task)
    if reading.note:
        print(f"{file}: {reading.note}", file=sys.stderr)
    transcript = reading.transcript
    if transcript.task != "translate":
        segments = convert_segments(transcript.segments, options.chinese, transcript.language)
        transcript = replace(transcript, segments=segments)
    return render_transcript(transcript, options, chosen, title=file.stem)
