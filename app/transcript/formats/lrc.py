"""LRC, the format of lyrics: one line for each cue, without an end."""

import re
from collections.abc import Iterable, Iterator, Sequence

from app.transcript.cues.timing import Cue
from app.transcript.formats.common import FileCue, FileStyle, clock, plain_lines, timed_cues
from app.transcript.text.scripts import joined_lines
from app.transcript.timeline import Transcript

# Tags stand in square brackets, and there is no escape. Some readers find tags inside a line, too.
_SIMILAR = str.maketrans("[]", "()")
_WORD_TIME = re.compile(r"<(\d+:\d+(?:[.:]\d+)?)>")  # a tag of the format's extension A2


def write_lrc(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """LRC; an empty file if there are no cues. Minutes go on beyond 59: the format has no hours."""
    for cue in lrc_cues(cues, style):
        yield f"[{clock(cue.start, digits=2, hour_digits=0)}]{cue.lines[0]}\n"


def lrc_cues(cues: Iterable[Cue], style: FileStyle) -> Iterator[FileCue]:
    return timed_cues(cues, 100, _one_line)


def _one_line(lines: Sequence[str]) -> list[str]:
    text = joined_lines(plain_lines(lines))
    return [_WORD_TIME.sub(r"‹\1›", text.translate(_SIMILAR))] if text else []
