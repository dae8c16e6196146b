"""How wide text is, which limits a cue has, and where its lines break. Pure."""

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
# to a whole millisecond, so that the gap is still there when the file has rounded the times.
MIN_GAP = math.ceil(1000 * 2 / 24) * SAMPLES_PER_MS  # samples

# Less than two frames would not be seen at all.
SHORTEST_CUE = MIN_GAP  # samples


@dataclass(frozen=True, slots=True)
class CueStyle:
    """The limits that cues are shaped to."""

    max_line_chars: int  # width of a line; wide characters count double
    max_lines: int
    max_cps: float  # characters per second that can be read, wide ones counted double
    min_cue_s: float
    max_cue_s: float  # counts before all other times

    @property
    def min_samples(self) -> int:
        return math.ceil(self.min_cue_s * 1000) * SAMPLES_PER_MS

    @property
    def max_samples(self) -> int:
        return max(math.floor(self.max_cue_s * 1000) * SAMPLES_PER_MS, SHORTEST_CUE)

    def reading_samples(self, chars: int) -> int:
        """How long so many characters must stay to be read."""
        return math.ceil(chars * 1000 / self.max_cps) * SAMPLES_PER_MS


_INVISIBLE = {"Mn", "Me", "Cf", "Cc"}  # marks on the character before, format and control characters


def width(text: str) -> int:
    """Columns that the text takes, by East Asian Width (UAX #11): wide 2, combining 0, all else 1."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_char_width, text))


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if unicodedata.category(char) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


# A line as much as half wider or narrower than the others costs 25: a better place for the break is worth
# some imbalance, but not a word alone on its line.
_UNEVEN = 100
_BREAK_COST = {Break.SENTENCE: 0, Break.CLAUSE: 4, Break.PHRASE: 10, Break.PLAIN: 30, Break.POOR: 60}


class WidthIndex:
    """Widths of any stretch of break_units, without the spaces at its edges, each in constant time."""

    def __init__(self, break_units: Sequence[str]) -> None:
        self._ends = list(accumulate((width(atom) for atom in break_units), initial=0))
        self._leads = [width(atom) - width(strip_spaces(atom)) for atom in break_units]

    def between(self, first: int, last: int) -> int:
        """Width of the break_units `first` up to, not including, `last`; at least one."""
        return self._ends[last] - self._ends[first] - self._leads[first]


def count_lines(ruler: WidthIndex, total: int, max_chars: int) -> int:
    """The fewest lines that hold the first `total` units; a unit wider than a line has one to itself."""
    lines, begin = 1, 0
    for end in range(1, total):
        if ruler.between(begin, end + 1) > max_chars:
            lines, begin = lines + 1, end
    return lines


def break_lines(break_units: Sequence[str], max_chars: int, language: str) -> tuple[str, ...]:
    """The break_units in the fewest lines of at most `max_chars`, broken where it reads best and evenly.

    An atom wider than that is left whole on a line of its own.
    """
    ruler = WidthIndex(break_units)
    ends = _line_ends(
        break_units, ruler, count_lines(ruler, len(break_units), max_chars), max_chars, language
    )
    begins = [0, *ends[:-1]]
    lines = (strip_spaces("".join(break_units[begin:end])) for begin, end in zip(begins, ends, strict=True))
    return tuple(line for line in lines if line)


def _line_ends(
    break_units: Sequence[str], ruler: WidthIndex, lines: int, max_chars: int, language: str
) -> tuple[int, ...]:
    """Where each of the lines ends, at the least cost (dynamic programming over the number of lines)."""
    total = len(break_units)
    even = max(ruler.between(0, total) // lines, 1)
    between = (_BREAK_COST[break_between(*pair, language)] for pair in pairwise(break_units))
    break_costs = [0, *between, 0]  # before each atom, and after the last
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}  # end of the lines so far: cost, their ends
    for _ in range(lines):
        longer: dict[int, tuple[int, tuple[int, ...]]] = {}
        for begin, (cost, ends) in best.items():
            for end in range(begin + 1, total + 1):
                chars = ruler.between(begin, end)
                if chars > max_chars and end > begin + 1:
                    break
                through = cost + break_costs[end] + _UNEVEN * (chars - even) ** 2 // even**2
                if end not in longer or (through, (*ends, end)) < longer[end]:
                    longer[end] = (through, (*ends, end))
        best = longer
    return best[total][1]
