"""Which limits a cue breaks, and what would cure it. Pure."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from app.transcript.cues.lines import CueStyle
from app.transcript.cues.timing import Cue
from app.transcript.text.scripts import width
from workers.messages import SAMPLE_RATE, seconds

# To shorten the text; to begin a cue inside this one; to make one of it and a neighbour; to move an edge.
Cure = Literal["shorten", "split", "join", "start", "end"]

_ROUNDING = 1  # samples: frames are no whole number of them
_WORTH_A_MOVE = SAMPLE_RATE // 25  # samples: less time cures nothing


class Problem(NamedTuple):
    """A limit that a cue breaks, by the name of its option; or `join`, a mark before it in vain."""

    limit: str
    value: float | None
    allowed: float | None
    cures: tuple[Cure, ...]  # best first


def limits(style: CueStyle) -> dict[str, float]:
    """The limits of a style by the names of their options: columns, columns per second, and seconds."""
    return {
        "max_line_chars": style.max_line_chars,
        "max_lines": style.max_lines,
        "max_cps": style.max_cps,
        "min_cue_s": seconds(style.min_samples),
        "max_cue_s": seconds(style.max_samples),
        "min_gap_s": seconds(style.min_gap),
    }


def columns_per_second(cue: Cue) -> float:
    """How fast people must read: the end of a line takes a column, too."""
    columns = sum(map(width, cue.lines)) + len(cue.lines) - 1
    return columns * SAMPLE_RATE / (cue.end - cue.start)


def problems(cue: Cue, style: CueStyle, before: Cue | None, after: Cue | None) -> Iterator[Problem]:
    """`style`: of the cue's language; `before` and `after`: its neighbours."""
    allowed, length = limits(style), cue.end - cue.start
    units = [unit for line in cue.units for unit in line]
    may_split: tuple[Cure, ...] = ("split",) if len(units) > 1 else ()
    longer: list[Cure] = []  # edges that can move away from each other
    if length + _WORTH_A_MOVE <= style.max_samples:
        if after is None or after.start - cue.end >= style.min_gap + _WORTH_A_MOVE:
            longer.append("end")
        if cue.start - (before.end + style.min_gap if before else 0) >= _WORTH_A_MOVE:
            longer.append("start")
    cps, widest = columns_per_second(cue), max(map(width, cue.lines))
    gap = style.min_gap if after is None else after.start - cue.end
    found: list[tuple[str, bool, float, tuple[Cure, ...]]] = [
        ("max_line_chars", widest > style.max_line_chars, widest, ("shorten", *may_split)),
        ("max_lines", len(cue.lines) > style.max_lines, len(cue.lines), (*may_split, "shorten")),
        ("max_cps", cps * length > style.max_cps * (length + _ROUNDING), round(cps, 1), ("shorten", *longer)),
        ("min_cue_s", length + _ROUNDING < style.min_samples, seconds(length), (*longer, "join")),
        ("max_cue_s", length - _ROUNDING > style.max_samples, seconds(length), (*may_split, "end", "start")),
        ("min_gap_s", gap + _ROUNDING < style.min_gap, seconds(gap), ("end",)),
    ]
    for name, is_broken, value, cures in found:
        if is_broken:
            yield Problem(name, value, allowed[name], cures)
    if before is not None and units and units[0].mark == "join":
        yield Problem("join", None, None, ("join", "shorten"))
