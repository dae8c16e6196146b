"""Lines of a file in runs, one for each timed unit of text. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from app.transcript.formats.common import plain_line
from app.transcript.timed_text import TimedText


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
