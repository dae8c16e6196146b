"""The limits that cues keep, and the lines that a cue's text breaks into. Pure."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from app.transcript.cues.timed_text import TimedText
from app.transcript.text.breaks import Break, is_turn
from app.transcript.text.scripts import WidthIndex
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
    # The style of cues in another language; None: the same.
    of_other: Callable[[str], "CueStyle"] | None = field(default=None, compare=False)

    def of(self, language: str | None) -> "CueStyle":
        """The style of cues in a language; None: in that of all text."""
        return self if self.of_other is None or language is None else self.of_other(language)


Lines = tuple[tuple[TimedText, ...], ...]  # the units of each line of a cue; none is empty


# A line that is half wider or narrower than the average costs 25. A better break is worth some imbalance,
# but not a single word on a line. The end of a sentence is worth much.
_UNEVEN = 100
_TOP_HEAVY = 40  # for a line above the last that is wider than the average
_BREAK_COST = {Break.SENTENCE: -60, Break.CLAUSE: 4, Break.PHRASE: 10, Break.PLAIN: 52, Break.POOR: 130}


def begins_line(unit: TimedText) -> bool:
    """Whether a unit inside a cue begins a line, however short the line before it is.

    A turn of a dialogue does, and so does a sentence of another segment: often somebody else says it.
    """
    return unit.break_before is Break.SENTENCE and (unit.begins_segment or is_turn(unit.text))


def count_lines(units: Sequence[TimedText], widths: WidthIndex, max_chars: int) -> int:
    """The fewest lines that hold the units. A unit wider than a line has a line to itself."""
    lines, begin = 1, 0
    for end in range(1, len(units)):
        if begins_line(units[end]) or widths.between(begin, end + 1) > max_chars:
            lines, begin = lines + 1, end
    return lines


def break_lines(units: Sequence[TimedText], max_chars: int) -> Lines:
    """The units in the fewest lines of at most `max_chars`, broken evenly and at good places.

    A unit wider than `max_chars` has a line to itself.
    """
    turns = [at for at in range(1, len(units)) if begins_line(units[at])]
    return tuple(
        line
        for first, last in pairwise([0, *turns, len(units)])
        for line in _broken_evenly(units[first:last], max_chars)
    )


def _broken_evenly(units: Sequence[TimedText], max_chars: int) -> Iterator[tuple[TimedText, ...]]:
    """The lines at the least cost (dynamic programming over the number of lines)."""
    widths, total = WidthIndex([unit.text for unit in units]), len(units)
    lines = count_lines(units, widths, max_chars)
    even = max(widths.between(0, total) // lines, 1)
    # By the end of the lines so far: their cost and their edges.
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, (0,))}
    for line in range(1, lines + 1):
        longer: dict[int, tuple[int, tuple[int, ...]]] = {}
        for begin, (cost, edges) in best.items():
            for end in range(begin + 1, total + 1) if line < lines else (total,):
                chars = widths.between(begin, end)
                if chars > max_chars and end > begin + 1:
                    break
                through = cost + _UNEVEN * (chars - even) ** 2 // even**2
                if end < total:
                    through += _BREAK_COST[units[end].break_before] + _TOP_HEAVY * (chars > even)
                if end not in longer or (through, (*edges, end)) < longer[end]:
                    longer[end] = (through, (*edges, end))
        best = longer
    return (tuple(units[first:last]) for first, last in pairwise(best[total][1]))
