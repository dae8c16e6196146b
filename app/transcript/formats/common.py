"""What the formats have in common: times in the units of a file, and text that is safe on one line. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from app.transcript.cues.timed_text import TimedText
from app.transcript.cues.timing import Cue
from app.transcript.text.speaker_text import SpeakerPrefix, shown_name
from workers.messages import SAMPLE_RATE

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # some readers end a line at one of these
_NO_CHARACTERS = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")  # not for UTF-8, XML, or interchange


@dataclass(frozen=True, slots=True)
class FileStyle:
    """How files are written. Each format uses what it knows."""

    word_level: bool = False  # the time of each word
    srt_bom: bool = False
    srt_crlf: bool = False
    max_lines: int = 2  # of a cue
    fps: float | None = None  # frames per second of the picture
    prefix: SpeakerPrefix | None = None  # of the text; without one, the format says who speaks
    times: bool = False  # when each line or paragraph begins
    numbered: bool = False  # each line or paragraph
    title: str = ""  # of the recording

    @property
    def heading(self) -> str:
        """The title of a document, on one line."""
        return plain_line(shown_name(self.title))

    def numeral(self, number: int) -> str:
        """The text before a line or paragraph that is its number, from 1; empty if there are none."""
        return f"{number}. " if self.numbered else ""

    def time_of(self, samples: int) -> str:
        """The text before a line or paragraph that says when it begins, or nothing, such as `[01:02:03] `."""
        return f"[{clock(milliseconds(samples)).partition('.')[0]}] " if self.times else ""

    def name_of(self, speaker: str | None) -> str:
        """The text before a paragraph that says who speaks; empty if it is not said."""
        return plain_line(self.prefix.of(speaker)) if self.prefix else ""


class FileCue(NamedTuple):
    """A cue in the units of a file."""

    start: int
    end: int
    rate: Fraction | int  # units per second
    lines: list[str]  # without markup
    speakers: tuple[str, ...]  # the name of who speaks each line; empty if unknown
    cue: Cue  # that it is made of, or a part of it

    @property
    def units(self) -> tuple[TimedText, ...]:
        """Those of all lines, in samples; empty if unknown."""
        return tuple(unit for units in self.cue.units for unit in units)

    @property
    def language(self) -> str | None:
        """ISO 639-1 code of the text; None: that of all text."""
        return self.cue.language


def plain_line(text: str) -> str:
    """The text as one line, without control characters, and without space at its ends."""
    return _NO_CHARACTERS.sub("\ufffd", _CONTROLS.sub(" ", text)).strip()


def plain_lines(lines: Iterable[str]) -> list[str]:
    """The lines as plain lines, without empty ones."""
    return [plain for line in lines if (plain := plain_line(line))]


def rounded_to(rate: Fraction | int) -> Callable[[int], int]:
    """A function from samples to ticks of so many per second, rounded half up."""
    per_sample = Fraction(rate, SAMPLE_RATE)
    doubled, divisor = 2 * per_sample.numerator, 2 * per_sample.denominator
    return lambda samples: (samples * doubled + per_sample.denominator) // divisor


milliseconds, centiseconds = rounded_to(1000), rounded_to(100)


def timed_cues(
    cues: Iterable[Cue],
    rate: Fraction | int = 1000,
    safe_lines: Callable[[Sequence[str]], list[str]] = plain_lines,
) -> Iterator[FileCue]:
    """Each cue with text, in units of `rate` per second: start < end <= next start.

    `safe_lines` returns the lines that the file can hold.
    """
    ticks, previous_end = rounded_to(rate), 0
    for cue in cues:
        lines = safe_lines(cue.lines)
        if lines:
            start = max(ticks(cue.start), previous_end)
            previous_end = max(ticks(cue.end), start + 1)
            speakers = cue.speakers
            if len(speakers) != len(
                lines
            ):  # lines get lost or joined only where one person speaks all of them
                speakers = (speakers[0] if len(set(speakers)) == 1 else None,) * len(lines)
            names = tuple("" if speaker is None else shown_name(speaker) for speaker in speakers)
            yield FileCue(start, previous_end, rate, lines, names, cue)


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


class Run(NamedTuple):
    """Part of a line: from the first letter of a unit up to the first letter of the next unit."""

    text: str
    unit: TimedText | None  # None: the text has no time


def runs_of(lines: Sequence[str], units: Iterable[TimedText]) -> list[list[Run]]:
    """Each line in runs, which make up the line. Without fitting units, each line is one run without a time.

    The lines may differ from the text of the units in white space, and in one character for another.
    """
    starts: dict[int, TimedText] = {}  # by the number of letters before the unit
    total = 0
    for unit in units:
        letters = _count_letters(plain_line(unit.text))
        if letters:
            starts[total] = unit
        total += letters
    if total != sum(map(_count_letters, lines)):
        starts = {}
    before = 0
    result = []
    for line in lines:
        result.append(_line_runs(line, starts, before))
        before += _count_letters(line)
    return result


def _line_runs(line: str, starts: dict[int, TimedText], before: int) -> list[Run]:
    """The runs of a line that has `before` letters before it."""
    runs: list[Run] = []
    begin, unit = 0, None
    for position, char in enumerate(line):
        if char.isspace():
            continue
        if before in starts:
            if position:
                runs.append(Run(line[begin:position], unit))
            begin, unit = position, starts[before]
        before += 1
    runs.append(Run(line[begin:], unit))
    return runs


def _count_letters(text: str) -> int:
    return sum(not char.isspace() for char in text)
