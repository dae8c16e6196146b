"""What the formats have in common: times in the units of a file, and text that is safe on one line. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from app.transcript.cues import Cue
from workers.messages import SAMPLE_RATE

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # some readers end a line at one of these
_NO_CHARACTERS = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")  # not for UTF-8, XML, or interchange


def plain_line(text: str) -> str:
    """The text as one line, without control characters, and without space at its ends."""
    return _NO_CHARACTERS.sub("\ufffd", _CONTROLS.sub(" ", text)).strip()


def plain_lines(lines: Iterable[str]) -> list[str]:
    """The lines as plain lines, without empty ones."""
    return [plain for line in lines if (plain := plain_line(line))]


def timed_cues(
    cues: Iterable[Cue], digits: int = 3, safe_lines: Callable[[Sequence[str]], list[str]] = plain_lines
) -> Iterator[tuple[int, int, list[str]]]:
    """`(start, end, lines)` of each cue with text, in units of 10**-`digits` s: start < end <= next start.

    `safe_lines` returns the lines that the file can hold.
    """
    previous_end = 0
    for cue in cues:
        lines = safe_lines(cue.lines)
        if lines:
            start = max(ticks(cue.start, digits), previous_end)
            previous_end = max(ticks(cue.end, digits), start + 1)
            yield start, previous_end, lines


def milliseconds(samples: int) -> int:
    """Rounded half up."""
    return ticks(samples, digits=3)


def ticks(samples: int, digits: int) -> int:
    """A time in units of 10**-`digits` s, rounded half up."""
    samples_per_tick: int = SAMPLE_RATE // 10**digits
    return (samples + samples_per_tick // 2) // samples_per_tick


def clock(time: int, digits: int = 3, hour_digits: int = 2, decimal_sign: str = ".") -> str:
    """A time in units of 10**-`digits` s, by default as `hh:mm:ss.mmm`.

    Hours have at least `hour_digits` digits. With 0 there are no hours, and minutes go on beyond 59.
    """
    seconds, fraction = divmod(time, 10**digits)
    minutes, seconds = divmod(seconds, 60)
    beginning = ""
    if hour_digits:
        hours, minutes = divmod(minutes, 60)
        beginning = f"{hours:0{hour_digits}}:"
    return f"{beginning}{minutes:02}:{seconds:02}{decimal_sign}{fraction:0{digits}}"
