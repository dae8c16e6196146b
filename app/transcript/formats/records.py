"""Formats that list segments instead of cues: text, TSV and JSON."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from app.transcript.cues.timing import Cue
from app.transcript.edited import add_speakers, speaker_of, split_turns
from app.transcript.formats.common import FileStyle, milliseconds, plain_line
from app.transcript.timeline import Transcript
from workers.messages import Segment


def write_txt(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """Plain text, a line for each segment, or for each turn in it. A name says where the speaker changes."""
    named: str | None = None  # the speaker of the line before
    number = 0
    for segment in split_turns(transcript.segments):
        if text := plain_line(segment.text):
            speaker = speaker_of(segment)
            is_named = speaker == named and not (style.prefix and style.prefix.is_repeated)
            name = "" if is_named or not style.prefix else style.prefix.of(speaker)
            number += 1
            yield f"{style.numeral(number)}{style.time_of(segment.start)}{name}{text}\n"
            named = speaker


def write_tsv(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """Tab-separated values as openai-whisper writes them: a header, times in ms, no quoting."""
    yield "start\tend\ttext\n"
    for segment in transcript.segments:
        if text := plain_line(segment.text):
            yield f"{milliseconds(segment.start)}\t{milliseconds(segment.end)}\t{text}\n"


def write_json(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """The transcript with all segments and words; times in seconds, rounded as in the other formats.

    `whisperfleet subtitles` makes the other formats of it. For that, `speech` says where somebody speaks.
    """
    several = transcript.languages is not None
    document = {
        "task": transcript.task,
        "language": transcript.language,
        "duration": _seconds(transcript.samples),
        "text": transcript.text,
        "segments": [_segment(segment, several) for segment in transcript.segments],
        "speech": [{"start": _seconds(start), "end": _seconds(end)} for start, end in transcript.speech],
    }
    yield from json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2).iterencode(document)
    yield "\n"


def _segment(segment: Segment, names_language: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "start": _seconds(segment.start),
        "end": _seconds(segment.end),
        "text": segment.text.strip(),
    }
    if names_language and segment.language is not None:
        entry["language"] = segment.language
    speaker = speaker_of(segment)
    if speaker is not None:
        entry["speaker"] = speaker
    if segment.words:
        entry["words"] = [
            {
                "word": word.text.strip(),
                "start": _seconds(word.start),
                "end": _seconds(word.end),
                "probability": round(word.probability, 4),
            }
            for word in segment.words
        ]
        add_speakers(entry["words"], segment)
    return entry


def _seconds(samples: int) -> float:
    return milliseconds(samples) / 1000
