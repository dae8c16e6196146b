"""SubRip and WebVTT."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from app.transcript.cue_text import payload_lines, with_references, without_markup
from app.transcript.cues import Cue
from app.transcript.formats.clock import clock, timed_cues
from app.transcript.timeline import Transcript


def write_srt(_: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """SubRip; nothing at all for no cues."""
    return _numbered(cues, ",", without_markup)


def write_vtt(_: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """WebVTT; only its header for no cues."""
    yield "WEBVTT\n\n"
    yield from _numbered(cues, ".", with_references)


def _numbered(
    cues: Iterable[Cue], decimal_sign: str, escape: Callable[[Sequence[str]], list[str]]
) -> Iterator[str]:
    timed = timed_cues(cues, payload=payload_lines)
    for number, (start_ms, end_ms, lines) in enumerate(timed, start=1):
        times = f"{clock(start_ms, decimal_sign)} --> {clock(end_ms, decimal_sign)}"
        text = "\n".join(escape(lines))
        yield f"{number}\n{times}\n{text}\n\n"
