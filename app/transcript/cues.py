"""Segments to cues: what is shown, in which lines, from when to when. Pure.

A segment gives its cues their time: they begin and end with it, within the speech in it. Word times matter
only where a segment is split.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from app.transcript.break_points import ends_sentence, may_join
from app.transcript.lines import MIN_GAP, SAMPLES_PER_MS, SHORTEST_CUE, CueStyle, break_lines, width
from app.transcript.split import CueUnits, fits, split
from app.transcript.timed_text import TimedText, timed_units
from workers.messages import SAMPLE_RATE, Segment, Span

__all__ = ["Cue", "CueStyle", "shape_cues"]

# Neighbours are joined only across a shorter gap, and only if one of them has so few units.
_JOIN_GAP = SAMPLE_RATE // 5  # samples
_JOIN_UNITS = 2


@dataclass(frozen=True, slots=True)
class Cue:
    """What is shown at one time. Times in samples of the recording."""

    start: int
    end: int
    lines: tuple[str, ...]  # in logical order, none empty
    units: tuple[tuple[TimedText, ...], ...] = field(default=(), compare=False)  # the timed text of each line


def shape_cues(
    segments: Iterable[Segment], speech: Sequence[Span], style: CueStyle, language: str, samples: int
) -> Iterator[Cue]:
    """The cues of a recording, made one by one, in order, at least two frames apart.

    `segments` as `timeline.merge` gives them; `speech`: where the recording has speech, ordered, in samples;
    `language`: ISO 639-1 code of the text; `samples`: length of the recording. No cue stays after its end.
    Each word of the segments is in one cue, in order. No cue is longer than `style.max_samples`. A cue that
    is short, or too fast to read, stays into the silence after it, by `style.min_samples` and
    `style.max_cps`.
    """
    split_units = (
        cue_units
        for segment in segments
        for cue_units in split(timed_units(segment, speech), style, language)
    )
    return _timed(_join_fragments(split_units, style), style, language, samples)


def _join_fragments(all_units: Iterable[CueUnits], style: CueStyle) -> Iterator[CueUnits]:
    """The units of each cue; fragments of a sentence are joined to their neighbour."""
    joined: CueUnits = ()
    for units in all_units:
        if joined and _belong_together(joined, units, style):
            joined += units
            continue
        if joined:
            yield joined
        joined = units
    if joined:
        yield joined


def _belong_together(before: CueUnits, after: CueUnits, style: CueStyle) -> bool:
    """Whether one is a fragment, both fit one cue, and no sentence end and no pause is between them."""
    return (
        after[0].start - before[-1].end <= _JOIN_GAP
        and (_is_fragment(before, style) or _is_fragment(after, style))
        and not ends_sentence(before[-1].text)
        and may_join(before[-1].text, after[0].text)
        and fits(before + after, style)
    )


def _is_fragment(units: CueUnits, style: CueStyle) -> bool:
    return len(units) <= _JOIN_UNITS and units[-1].end - units[0].start < style.min_samples


def _timed(all_units: Iterable[CueUnits], style: CueStyle, language: str, samples: int) -> Iterator[Cue]:
    """The cues. Each starts with its first unit, or later to leave the cue before it the shortest time."""
    previous: CueUnits = ()
    previous_start = 0
    for units in all_units:
        start = units[0].start
        if previous:
            start = max(start, previous_start + SHORTEST_CUE + MIN_GAP)
            yield _cue(previous, previous_start, start - MIN_GAP, style, language)
        previous, previous_start = units, start
    if previous:
        yield _cue(previous, previous_start, samples, style, language)


def _cue(units: CueUnits, start: int, limit: int, style: CueStyle, language: str) -> Cue:
    """A cue that ends once its text is spoken and people have had time to read it, or at `limit`."""
    lines = break_lines([unit.text for unit in units], style.max_line_chars, language)
    chars = sum(map(width, lines)) + len(lines) - 1
    reading = math.ceil(chars * 1000 / style.max_cps) * SAMPLES_PER_MS
    wanted = max(units[-1].end, start + style.min_samples, start + reading)
    end = max(min(wanted, start + style.max_samples, limit), start + SHORTEST_CUE)
    return Cue(start, end, lines)
