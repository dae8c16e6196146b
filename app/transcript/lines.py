"""Break the text of one cue into lines. Pure."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from app.transcript.breaks import Break, break_between, strip_spaces
from app.transcript.width import width

# A line as much as half wider or narrower than the others costs 25: a better place for the break is worth
# some imbalance, but not a word alone on its line.
_UNEVEN = 100
_BREAK_COST = {Break.SENTENCE: 0, Break.CLAUSE: 4, Break.PHRASE: 10, Break.PLAIN: 30, Break.POOR: 60}


class Ruler:
    """Widths of any stretch of atoms, without the spaces at its edges, each in constant time."""

    def __init__(self, atoms: Sequence[str]) -> None:
        self._ends = list(accumulate((width(atom) for atom in atoms), initial=0))
        self._leads = [width(atom) - width(strip_spaces(atom)) for atom in atoms]

    def between(self, first: int, last: int) -> int:
        """Width of the atoms `first` up to, not including, `last`; at least one."""
        return self._ends[last] - self._ends[first] - self._leads[first]


def count_lines(ruler: Ruler, total: int, max_chars: int) -> int:
    """The fewest lines that hold the first `total` atoms; an atom wider than a line has one to itself."""
    lines, begin = 1, 0
    for end in range(1, total):
        if ruler.between(begin, end + 1) > max_chars:
            lines, begin = lines + 1, end
    return lines


def break_lines(atoms: Sequence[str], max_chars: int, language: str) -> tuple[str, ...]:
    """The atoms in the fewest lines of at most `max_chars`, broken where it reads best and evenly.

    An atom wider than that is left whole on a line of its own.
    """
    ruler = Ruler(atoms)
    ends = _line_ends(atoms, ruler, count_lines(ruler, len(atoms), max_chars), max_chars, language)
    begins = [0, *ends[:-1]]
    lines = (strip_spaces("".join(atoms[begin:end])) for begin, end in zip(begins, ends, strict=True))
    return tuple(line for line in lines if line)


def _line_ends(
    atoms: Sequence[str], ruler: Ruler, lines: int, max_chars: int, language: str
) -> tuple[int, ...]:
    """Where each of the lines ends, at the least cost (dynamic programming over the number of lines)."""
    total = len(atoms)
    even = max(ruler.between(0, total) // lines, 1)
    between = (_BREAK_COST[break_between(*pair, language)] for pair in pairwise(atoms))
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
