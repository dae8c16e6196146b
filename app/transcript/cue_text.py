"""Cue text as subtitle files take it, so that no player or validator reads it as anything but text. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence

from app.transcript.lines import SAMPLES_PER_MS

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # end a line in one reader or another
_NO_CHARACTERS = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")  # not for UTF-8, XML, or interchange

_CLOCK = re.compile(r":(?=\d\d[.,]\d)")
_TWO_CLOCKS = re.compile(r"\d:\d\d[.,]\d.*\d:\d\d[.,]\d")

_TAG = re.compile("<([^<>]*)>")
_OVERRIDE = re.compile("{([^{}]*)}")
_ASS_ESCAPE = re.compile(r"\\(?=[Nnh])")


def milliseconds(samples: int) -> int:
    """Rounded half up."""
    return (samples + SAMPLES_PER_MS // 2) // SAMPLES_PER_MS


def plain_line(text: str) -> str:
    """The text as one line, without control characters or space around it."""
    return _NO_CHARACTERS.sub("\ufffd", _CONTROLS.sub(" ", text)).strip()


def plain_lines(lines: Iterable[str]) -> Iterator[str]:
    """Those of the lines that have text, each without control characters or space around it."""
    return filter(None, map(plain_line, lines))


def payload_lines(lines: Iterable[str]) -> list[str]:
    """The lines of a cue that readers of SRT and VTT take for text: none empty, a number, or a timing line.

    pysubs2 and others take a number on the last line for the number of the next cue, and any line with
    two timestamps for a timing line, so those get the colon that mathematicians write for a ratio.
    """
    safe: list[str] = []
    for line in plain_lines(lines):
        if _TWO_CLOCKS.search(line):
            line = _CLOCK.sub("∶", line)
        if safe and line.isdigit():
            safe[-1] += f" {line}"
        else:
            safe.append(line)
    return safe


def without_markup(lines: Sequence[str]) -> list[str]:
    """The lines with nothing in them that players of SRT act upon.

    SRT has no escapes: players disagree on entities, show some tags and drop others, unknown ones with
    what they hold. So what looks like markup is written with its nearest likeness that is not: `<i>` as
    `‹i›`, `{\\an8}` as `(\\an8)`, `-->` as `→`, `\\N` as `∖N`. All else stays: `3 < 5` does.
    """
    text = "\n".join(lines).replace("-->", "→")
    for markup, likeness in ((_TAG, r"‹\1›"), (_OVERRIDE, r"(\1)")):
        while markup.search(text):  # from the inside out, where one holds another
            text = markup.sub(likeness, text)
    return _ASS_ESCAPE.sub("∖", text).split("\n")


def with_references(lines: Sequence[str]) -> list[str]:
    """The lines with `&`, `<` and `>` as character references (WebVTT, 4.2.2)."""
    return [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in lines]
