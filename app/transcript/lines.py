"""The limits that cues keep, the width of text, and the lines that a cue's text breaks into. Pure."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from app.transcript.break_points import Break, break_between, strip_spaces
from workers.messages import SAMPLE_RATE

SAMPLES_PER_MS = SAMPLE_RATE // 1000

# Subtitling guides ask for two frames between cues; at 24 frames per second that is 83.3 ms. Rounded up
# to a whole millisecond: the gap remains when the file rounds the times.
MIN_GAP = math.ceil(1000 * 2 / 24) * SAMPLES_PER_MS  # samples

# Nobody sees less than two frames.
SHORTEST_CUE = MIN_GAP  # samples


@dataclass(frozen=True, slots=True)
class CueStyle:
    """The limits of each cue."""

    max_line_chars: int  # width of a line; wide characters count double
    max_lines: int
    max_cps: float  # characters per second that people can read; wide characters count double
    min_samples: int
    max_samples: int  # at least `SHORTEST_CUE`; overrides `min_samples` and `max_cps`
    min_gap: int = MIN_GAP  # samples between two cues
    fps: float | None = None  # cues begin and end on frames of this rate
    start_offset: int = 0  # samples that each cue begins before its first word


_INVISIBLE = {"Mn", "Me", "Cf", "Cc"}  # marks on the character before, format and control characters


def width(text: str) -> int:
    """Columns of the text, by East Asian Width (UAX #11): wide characters 2, combining ones 0, others 1."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_char_width, text))


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if unicodedata.category(char) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class WidthIndex:
    """The width of any run of units, without the spaces at its ends, each in constant time."""

    def __init__(self, units: Sequence[str]) -> None:
        self._ends = list(accumulate((width(unit) for unit in units), initial=0))
        self._leads = [width(unit) - width(strip_spaces(unit)) for unit in units]

    def between(self, first: int, last: int) -> int:
        """Width of the units from `first` up to, not including, `last`; at least one unit."""
        return self._ends[last] - self._ends[first] - self._leads[first]


# A line that is half wider or narrower than the average costs 25. A better break is worth some imbalance,
# but not a single word on a line.
_UNEVEN = 100
_BREAK_COST = {Break.SENTENCE: 0, Break.CLAUSE: 4, Break.PHRASE: 10, Break.PLAIN: 30, Break.POOR: 60}


def count_lines(widths: WidthIndex, total: int, max_chars: int) -> int:
    """The fewest lines that hold the first `total` units. A unit wider than a line has a line to itself."""
    lines, begin = 1, 0
    for end in range(1, total):
        if widths.between(begin, end + 1) > max_chars:
            lines, begin = lines + 1, end
    return lines


def break_lines(units: Sequence[str], max_chars: int, language: str) -> tuple[str, ...]:
    """The units in the fewest lines of at most `max_chars`, broken evenly and at good places.

    A unit wider than `max_chars` has a line to itself.
    """
    ends = _line_ends(units, max_chars, language)
    begins = [0, *ends[:-1]]
    lines = (strip_spaces("".join(units[begin:end])) for begin, end in zip(begins, ends, strict=True))
    return tuple(line for line in lines if line)


def _line_ends(units: Sequence[str], max_chars: int, language: str) -> tuple[int, ...]:
    """Where each line ends, at the least cost (dynamic programming over the number of lines)."""
    widths, total = WidthIndex(units), len(units)
    lines = count_lines(widths, total, max_chars)
    even = max(widths.between(0, total) // lines, 1)
    between = (_BREAK_COST[break_between(*pair, language)] for pair in pairwise(units))
    break_costs = [0, *between, 0]  # before each unit, and after the last
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}  # end of the lines so far: cost, their ends
    for _ in range(lines):
        longer: dict[int, tuple[int, tuple[int, ...]]] = {}
        for begin, (cost, ends) in best.items():
            for end in range(begin + 1, total + 1):
                chars = widths.between(begin, end)
                if chars > max_chars and end > begin + 1:
                    break
                through = cost + break_costs[end] + _UNEVEN * (chars - even) ** 2 // even**2
                if end not in longer or (through, (*ends, end)) < longer[end]:
                    longer[end] = (through, (*ends, end))
        best = longer
    return best[total][1]
