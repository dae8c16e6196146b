"""Split a segment that is too long for one cue, at the best places. Pure."""

from collections.abc import Iterator, Sequence

from app.transcript.break_points import Break, break_between
from app.transcript.lines import CueStyle, WidthIndex, count_lines
from app.transcript.timed_text import TimedText
from workers.messages import SAMPLE_RATE

CueUnits = tuple[TimedText, ...]  # the units of one cue; at least one

# One scale for everything that makes a split good or bad. A cue twice as wide as the average, or empty,
# costs `_UNEVEN`. A break after a sentence is worth much unevenness. Another cue is worth its cost only
# if it avoids a poor break.
_CUE = 60
_UNEVEN = 80
_TOO_SHORT = 50
_BREAK_COST = {Break.SENTENCE: 0, Break.CLAUSE: 60, Break.PHRASE: 110, Break.PLAIN: 150, Break.POOR: 250}
_INSIDE_WORD = 100
_PAUSE = 80  # subtracted for a pause of a second or more, in proportion for a shorter one


def fits(units: Sequence[TimedText], style: CueStyle) -> bool:
    """Whether the units can be one cue, by its lines and its time."""
    lines = count_lines(WidthIndex([unit.text for unit in units]), len(units), style.max_line_chars)
    return lines <= style.max_lines and units[-1].end - units[0].start <= style.max_samples


def split(units: Sequence[TimedText], style: CueStyle, language: str) -> list[CueUnits]:
    """The units of a segment, split into cues that fit, at the least cost (dynamic programming).

    A single unit that does not fit is a cue of its own.
    """
    if not units:
        return []
    if fits(units, style):
        return [tuple(units)]
    widths = WidthIndex([unit.text for unit in units])
    even = _even_chars(units, widths, style)
    total = len(units)
    costs: list[int | None] = [0, *[None] * total]  # of the best cues that end before each unit
    begins = [0] * (total + 1)  # of the last of these cues
    for begin in range(total):
        before = (costs[begin] or 0) + _CUE + (_break_cost(units, begin, language) if begin else 0)
        for end in _fitting_ends(units, widths, begin, style):
            cost = before + _UNEVEN * (widths.between(begin, end) - even) ** 2 // even**2
            cost += _TOO_SHORT * (units[end - 1].end - units[begin].start < style.min_samples)
            best = costs[end]
            if best is None or cost < best:
                costs[end], begins[end] = cost, begin
    return _back_track(units, begins)


def _fitting_ends(
    units: Sequence[TimedText], widths: WidthIndex, begin: int, style: CueStyle
) -> Iterator[int]:
    """Where a cue that begins at `begin` may end: after one unit always, then as long as it fits."""
    yield begin + 1
    lines, line_begin = 1, begin
    latest = units[begin].start + style.max_samples
    for end in range(begin + 2, len(units) + 1):
        if widths.between(line_begin, end) > style.max_line_chars:
            lines, line_begin = lines + 1, end - 1
        if lines > style.max_lines or units[end - 1].end > latest:
            return
        yield end


def _back_track(units: Sequence[TimedText], begins: Sequence[int]) -> list[CueUnits]:
    """The cues, found from the last one back."""
    cues: list[CueUnits] = []
    end = len(units)
    while end:
        cues.append(tuple(units[begins[end] : end]))
        end = begins[end]
    return cues[::-1]


def _even_chars(units: Sequence[TimedText], widths: WidthIndex, style: CueStyle) -> int:
    """Width of each cue if all were equally wide."""
    chars = widths.between(0, len(units))
    by_chars = -(-chars // (style.max_line_chars * style.max_lines))
    by_time = -(-(units[-1].end - units[0].start) // style.max_samples)
    return max(chars // max(by_chars, by_time, 2), 1)


def _break_cost(units: Sequence[TimedText], position: int, language: str) -> int:
    before, after = units[position - 1], units[position]
    pause = min(after.start - before.end, SAMPLE_RATE)
    cost = _BREAK_COST[break_between(before.text, after.text, language)] - _PAUSE * pause // SAMPLE_RATE
    return max(cost + _INSIDE_WORD * after.inside_word, 0)
