"""Split a passage into the units of each cue, at the best places. Pure."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise

from app.transcript.cues.lines import CueStyle, begins_line, count_lines
from app.transcript.cues.timed_text import TimedText
from app.transcript.text.breaks import Break, is_sound
from app.transcript.text.scripts import WidthIndex
from workers.messages import SAMPLE_RATE

CueUnits = tuple[TimedText, ...]  # the units of one cue; at least one

# One scale for everything that makes cues good or bad. A cue twice as wide as the average of its sentence, or
# empty, costs `_UNEVEN`. Another cue is worth its cost only if it avoids something worse.
CUE_COST = 60
_UNEVEN = 80
_BREAK_COST = {Break.SENTENCE: 0, Break.CLAUSE: 60, Break.PHRASE: 110, Break.PLAIN: 150, Break.POOR: 300}
_PAUSE = 80  # subtracted for a pause of a second or more, in proportion for a shorter one
_POOR_LINE = 90  # for a cue of two lines that has no good place between them
_SENTENCES = 70  # for each end of a sentence inside a cue
_MIXED = 150  # for a cue with the end of a sentence, and only a part of another
_SOUND_WITH_SPEECH = 1000
_TOO_SHORT = 160  # for a cue that stays no time, in proportion up to `_COMFORTABLE`
_COMFORTABLE = 6 * SAMPLE_RATE // 5  # samples
LINGER = SAMPLE_RATE // 3  # samples that the last cue of a passage can stay into the pause after it


def split(passage: Sequence[TimedText], style: CueStyle) -> list[CueUnits]:
    """The units of a passage, split into cues that fit, at the least cost (dynamic programming).

    A sentence that fits is never split. Words that belong together are split only if nothing else is
    possible. A single unit that does not fit is a cue of its own.
    """
    ends = _Cost(passage, style).ends_of_cues()
    return [tuple(passage[first:last]) for first, last in pairwise([0, *ends])]


def cost_of_shortness(length: int) -> int:
    """The cost of a cue that stays so many samples on the screen."""
    missing = _COMFORTABLE - length
    return _TOO_SHORT * missing // _COMFORTABLE if missing > 0 else 0


def cheapest_ends(total: int, parts: Callable[[int], Iterable[tuple[int, int]]]) -> list[int]:
    """Where the parts of `total` things end that cost least together (dynamic programming).

    `parts`: of those that may begin at a place, where each ends, and its cost. Of equal ones, the earlier
    parts are long. Empty if no parts lead to the end.
    """
    costs: list[int | None] = [0, *[None] * total]  # of the best parts up to each place
    begins = [0] * (total + 1)  # of the last of these parts
    for begin in range(total):
        before = costs[begin]
        if before is None:
            continue
        for end, cost in parts(begin):
            best = costs[end]
            if best is None or before + cost <= best:
                costs[end], begins[end] = before + cost, begin
    ends: list[int] = []
    end = total if costs[total] is not None else 0
    while end:
        ends.append(end)
        end = begins[end]
    return ends[::-1]


class _Cost:
    """What each cue costs that a passage could be split into."""

    def __init__(self, passage: Sequence[TimedText], style: CueStyle) -> None:
        self._units = passage
        self._style = style
        self._width = WidthIndex([unit.text for unit in passage]).between
        self._good_breaks = list(
            accumulate((unit.break_before < Break.POOR for unit in passage), initial=0)
        )  # for lines
        self._breaks = breaks = [unit.cue_break for unit in passage]
        # Before each unit and after the last: how many sentences have begun, and whether one does.
        self._sentences = list(accumulate((rating is Break.SENTENCE for rating in breaks), initial=0))
        self._is_edge = [True, *(rating is Break.SENTENCE for rating in breaks[1:]), True]
        self._begins_line = [begins_line(unit) for unit in passage]
        self._even: dict[int, int] = {}  # inside a sentence that does not fit: the even width of its cues

    def ends_of_cues(self) -> list[int]:
        """The number of units up to the end of each of the best cues."""
        edges = [at for at, is_edge in enumerate(self._is_edge) if is_edge]
        may_end = self._is_edge.copy()
        for begin, end in pairwise(edges):
            if not self._fits(begin, end):
                may_end[begin + 1 : end] = [rating < Break.POOR for rating in self._breaks[begin + 1 : end]]
        total, anywhere = len(self._units), [True] * len(may_end)
        return cheapest_ends(total, partial(self._possible_cues, may_end)) or cheapest_ends(
            total, partial(self._possible_cues, anywhere)
        )

    def _fits(self, begin: int, end: int) -> bool:
        """Whether a sentence fits one cue. If not, its cues get an even width."""
        units, style = self._units[begin:end], self._style
        if end == begin + 1:
            return True
        length, chars = units[-1].end - units[0].start, self._width(begin, end)
        if length <= style.max_samples and chars <= style.max_line_chars * style.max_lines:
            widths = WidthIndex([unit.text for unit in units])
            if count_lines(units, widths, style.max_line_chars) <= style.max_lines:
                return True
        by_chars = -(-chars // (style.max_line_chars * style.max_lines))
        even = max(chars // max(by_chars, -(-length // style.max_samples), 2), 1)
        self._even |= dict.fromkeys(range(begin, end), even)
        return False

    def _possible_cues(self, may_end: Sequence[bool], begin: int) -> Iterator[tuple[int, int]]:
        """Where a cue that begins at `begin` may end as long as it fits, and its cost."""
        units, style = self._units, self._style
        before = CUE_COST
        if begin:
            pause = min(units[begin].start - units[begin - 1].end, SAMPLE_RATE)
            before += max(_BREAK_COST[self._breaks[begin]] - _PAUSE * pause // SAMPLE_RATE, 0)
        latest = units[begin].start + style.max_samples
        lines, line_begin = 1, begin  # the number of its lines, and where the last one begins
        for end in range(begin + 1, len(units) + 1):
            if end > begin + 1:  # a single unit that does not fit is a cue
                if self._begins_line[end - 1] or self._width(line_begin, end) > style.max_line_chars:
                    lines, line_begin = lines + 1, end - 1
                if lines > style.max_lines or units[end - 1].end > latest:
                    return
            if may_end[end]:
                yield end, before + self._of_cue(begin, end, lines, line_begin)

    def _of_cue(self, begin: int, end: int, lines: int, last_line: int) -> int:
        units = self._units
        # A cue may stay until the next one.
        latest = units[end].start - self._style.min_gap if end < len(units) else units[end - 1].end + LINGER
        cost = cost_of_shortness(latest - units[begin].start)
        sentence_ends = self._sentences[end] - self._sentences[begin + 1]
        if sentence_ends:
            cost += _SENTENCES * sentence_ends
            cost += _MIXED * (not self._is_edge[begin] or not self._is_edge[end])
            starts = [begin, *(at for at in range(begin + 1, end) if self._is_edge[at])]
            are_sounds = {is_sound(units[at].text) for at in starts}
            return cost + _SOUND_WITH_SPEECH * (len(are_sounds) > 1)
        even = self._even.get(begin)
        if even is not None:
            cost += _UNEVEN * (self._width(begin, end) - even) ** 2 // even**2
        if lines == 2 and units[last_line].break_before is Break.POOR:
            cost += _POOR_LINE * self._has_poor_lines(begin, end, last_line)
        return cost

    def _has_poor_lines(self, begin: int, end: int, latest: int) -> bool:
        """Whether a cue of two lines has no good place for the line to break, up to `latest`."""
        limit, places = self._style.max_line_chars, range(begin + 1, latest)
        earliest = begin + 1 + bisect_left(places, -limit, key=lambda at: -self._width(at, end))
        return self._good_breaks[latest] == self._good_breaks[earliest]
