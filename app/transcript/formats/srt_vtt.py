"""SubRip and WebVTT."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from app.transcript.cues import Cue
from app.transcript.formats.common import clock, plain_lines, timed_cues
from app.transcript.timeline import Transcript

_CLOCK_COLON = re.compile(r":(?=\d\d[.,]\d)")
_TWO_CLOCKS = re.compile(r"\d:\d\d[.,]\d.*\d:\d\d[.,]\d")

_TAG = re.compile("<([^<>]*)>")
_OVERRIDE = re.compile("{([^{}]*)}")
_ASS_ESCAPE = re.compile(r"\\(?=[Nnh])")


def write_srt(_: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """SubRip; an empty file if there are no cues."""
    return _numbered(cues, ",", _without_markup)


def write_vtt(_: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """WebVTT; only its header if there are no cues."""
    yield "WEBVTT\n\n"
    yield from _numbered(cues, ".", _with_references)


def _numbered(
    cues: Iterable[Cue], decimal_sign: str, escape: Callable[[Sequence[str]], list[str]]
) -> Iterator[str]:
    for number, (start, end, lines) in enumerate(timed_cues(cues, safe_lines=_unmistakable), start=1):
        times = " --> ".join(clock(time, decimal_sign=decimal_sign) for time in (start, end))
        text = "\n".join(escape(lines))
        yield f"{number}\n{times}\n{text}\n\n"


def _unmistakable(lines: Sequence[str]) -> list[str]:
    """The lines of a cue, without any that a reader would take for the number or the timing line of a cue.

    pysubs2 and others take a number on the last line for the number of the next cue, and any line with
    two timestamps for a timing line. Such timestamps get the colon that mathematicians write for a ratio.
    """
    safe: list[str] = []
    for line in plain_lines(lines):
        if _TWO_CLOCKS.search(line):
            line = _CLOCK_COLON.sub("∶", line)
        if safe and line.isdigit():
            safe[-1] += f" {line}"
        else:
            safe.append(line)
    return safe


def _without_markup(lines: Sequence[str]) -> list[str]:
    """The lines without anything that players of SRT interpret.

    SRT has no escapes. Players disagree on entities; they show some tags, and drop others, unknown ones with
    their content. Text that looks like markup is therefore written with similar characters: `<i>` as
    `‹i›`, `{\\an8}` as `(\\an8)`, `-->` as `→`, `\\N` as `∖N`. All other text stays, such as `3 < 5`.
    """
    text = "\n".join(lines).replace("-->", "→")
    for markup, similar in ((_TAG, r"‹\1›"), (_OVERRIDE, r"(\1)")):
        while markup.search(text):  # nested markup, from the inside out
            text = markup.sub(similar, text)
    return _ASS_ESCAPE.sub("∖", text).split("\n")


def _with_references(lines: Sequence[str]) -> list[str]:
    """The lines with `&`, `<` and `>` as character references (WebVTT, 4.2.2)."""
    return [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in lines]
