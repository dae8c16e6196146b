"""Transcripts as files: one function per format, and the registry that names them."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pysubs2 import SSAEvent, SSAFile

from app.transcript.cues import Cue
from app.transcript.payload import milliseconds, payload_lines, plain_line, with_references, without_markup
from app.transcript.timeline import Transcript
from workers.messages import Segment, Word

# pysubs2 holds text as ASS does, where a backslash may begin a control. This noncharacter, which Unicode
# reserves for use within programs, stands for it on the way through.
_BACKSLASH = "\ufdd0"


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a transcript can be written as."""

    media_type: str
    write: Callable[[Transcript, Sequence[Cue]], str]


def render(transcript: Transcript, cues: Sequence[Cue], format: str) -> str:
    """The transcript as a file of the format, one of `FORMATS`; raises KeyError for any other.

    `cues` are those of the transcript, in order; formats without cues do not look at them.
    """
    return FORMATS[format].write(transcript, cues)


def write_srt(_: Transcript, cues: Sequence[Cue]) -> str:
    """SubRip; nothing at all for no cues."""
    return _subtitles(cues, without_markup).to_string("srt", keep_ssa_tags=True).replace(_BACKSLASH, "\\")


def write_vtt(_: Transcript, cues: Sequence[Cue]) -> str:
    """WebVTT; only its header for no cues."""
    return _subtitles(cues, with_references).to_string("vtt", keep_ssa_tags=True).replace(_BACKSLASH, "\\")


def write_txt(transcript: Transcript, _: Sequence[Cue]) -> str:
    """Plain text, a line for each segment."""
    lines = filter(None, (plain_line(segment.text) for segment in transcript.segments))
    return "".join(f"{line}\n" for line in lines)


def write_json(transcript: Transcript, _: Sequence[Cue]) -> str:
    """The whole transcript; times in seconds."""
    document = {
        "language": transcript.language,
        "duration": _seconds(transcript.samples),
        "text": transcript.text,
        "segments": [_segment(segment) for segment in transcript.segments],
    }
    return f"{json.dumps(document, ensure_ascii=False, indent=2)}\n"


FORMATS: dict[str, Format] = {
    "srt": Format("application/x-subrip", write_srt),
    "vtt": Format("text/vtt", write_vtt),
    "txt": Format("text/plain", write_txt),
    "json": Format("application/json", write_json),
}


def timed_cues(cues: Sequence[Cue]) -> Iterator[tuple[int, int, Sequence[str]]]:
    """`(start, end, lines)` of each cue with text, in whole milliseconds: start < end <= the next start."""
    shown_until_ms = 0
    for cue in cues:
        lines = payload_lines(cue.lines)
        if lines:
            start_ms = max(milliseconds(cue.start), shown_until_ms)
            shown_until_ms = max(milliseconds(cue.end), start_ms + 1)
            yield start_ms, shown_until_ms, lines


def _subtitles(cues: Sequence[Cue], escape: Callable[[Sequence[str]], list[str]]) -> SSAFile:
    subtitles = SSAFile()
    for start_ms, end_ms, lines in timed_cues(cues):
        text = "\n".join(escape(lines)).replace("\\", _BACKSLASH)
        subtitles.append(SSAEvent(start=start_ms, end=end_ms, text=text))
    return subtitles


def _segment(segment: Segment) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "start": _seconds(segment.start),
        "end": _seconds(segment.end),
        "text": segment.text.strip(),
    }
    if segment.words:
        entry["words"] = [_word(word) for word in segment.words]
    return entry


def _word(word: Word) -> dict[str, Any]:
    return {
        "word": word.text.strip(),
        "start": _seconds(word.start),
        "end": _seconds(word.end),
        "probability": round(word.probability, 4),
    }


def _seconds(samples: int) -> float:
    return milliseconds(samples) / 1000
