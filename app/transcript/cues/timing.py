"""When cues begin and end. Pure."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from app.transcript.cues.lines import SHORTEST_CUE, CueStyle, Lines
from app.transcript.cues.passages import PAUSE
from app.transcript.text.scripts import SPACES, width
from workers.messages import SAMPLE_RATE, Span


@dataclass(frozen=True, slots=True)
class Cue:
    """What is shown at one time. Times in samples of the recording."""

    start: int
    end: int
    lines: tuple[str, ...]  # in logical order, none empty
    units: Lines = field(default=(), compare=False)  # the timed text of each line

    @property
    def speakers(self) -> tuple[str | None, ...]:
        """Who speaks each line; empty if the units are not known."""
        return tuple(line[0].speaker for line in self.units if line)

    @property
    def language(self) -> str | None:
        """ISO 639-1 code of its text; None: that of all text."""
        return next((line[0].language for line in self.units if line), None)


def timed(cues: Iterable[Lines], style: CueStyle, samples: int) -> Iterator[Cue]:
    """The lines of each cue, from when to when they are shown, in order, at least `style.min_gap` apart.

    Each cue starts with its first unit, or later to leave the cue before it the shortest time. It ends once
    its text is spoken and people have had time to read it, or shortly before the next one; never after
    `samples`, the length of the recording.

    The cues of a segment timed by hand start and end exactly with it, and the times of others change. If the
    time is too short, it is divided among its cues, without gaps.
    """
    timing = _Timing(style, samples)
    for hand_times, block in _blocks(cues):
        yield from timing.add(block[0]) if hand_times is None else timing.add_exactly(block, hand_times)
    yield from timing.done(None)


def _blocks(cues: Iterable[Lines]) -> Iterator[tuple[Span | None, list[Lines]]]:
    """The cues of each segment timed by hand, with its times; each other cue alone."""
    block: list[Lines] = []
    for lines in cues:
        first = lines[0][0]
        if block and (first.begins_segment or first.hand_times is None):
            yield block[0][0][0].hand_times, block
            block = []
        block.append(lines)
        if first.hand_times is None:
            yield None, block
            block = []
    if block:
        yield block[0][0][0].hand_times, block


class _Timing:
    """Times in ticks: frames if the style has a frame rate, otherwise samples."""

    def __init__(self, style: CueStyle, samples: int) -> None:
        self._rate = style.fps or SAMPLE_RATE  # ticks per second
        self._style = style
        self._shortest = max(self._ticks(SHORTEST_CUE), 1)
        self._min = self._ticks(style.min_samples, math.ceil)
        self._max = max(self._ticks(style.max_samples, math.floor), 1)
        self._gap = max(self._ticks(style.min_gap), 1)
        self._pause = self._ticks(PAUSE)
        self._offset = self._ticks(style.start_offset)
        self._last = self._ticks(samples, math.floor)
        self._least = self._shortest  # the time that the last cue that waits must have
        self._waiting: list[Lines] = []  # cues whose times may change, each because of the one before it
        self._starts: list[int] = []  # of these
        self._end: int | None = None  # of the last cue that does not wait

    def add(self, lines: Lines) -> Iterator[Cue]:
        """The cues whose times the next one, which nobody timed by hand, leaves as they are."""
        previous = self._waiting[-1] if self._waiting else ()
        start = natural = self._wanted(lines, previous)
        earliest = 0
        if self._waiting:
            earliest = self._starts[-1] + self._least + self._gap
            if any(line[0].speaker != lines[0][0].speaker for line in previous):  # they may speak at once
                start = max(start, min(self._spoken_end(previous), self._last - self._min))
        elif self._end is not None:
            earliest = self._end + self._gap
        if start > earliest:
            yield from self.done(start)
        self._waiting.append(lines)
        self._starts.append(max(start, earliest))
        self._least = self._shortest if start == natural else max(self._min, self._shortest)

    def add_exactly(self, block: Sequence[Lines], times: Span) -> Iterator[Cue]:
        """The cues that wait, and those of a segment timed by hand."""
        start = self._ticks(times[0])
        if self._waiting:
            lower = 0 if self._end is None else self._end
            step = (self._shortest + self._gap) * len(self._waiting)
            if self._end is not None and self._end + self._gap + step <= start:
                lower = self._end + self._gap
            self._starts = self._fitted(self._starts, lower, start)
            start = max(start, self._starts[-1] + 1)
            yield from self.done(start)
        start = max(start, self._end or 0)
        end = max(min(self._ticks(times[1]), self._last), start + len(block))
        starts = [start]
        for previous, lines in pairwise(block):
            starts.append(max(self._wanted(lines, previous), starts[-1] + self._shortest + self._gap))
        self._waiting, self._starts = list(block), self._fitted(starts, start, end)
        yield from self.done(end, is_exact=True)

    def _wanted(self, lines: Lines, previous: Lines) -> int:
        """When a cue starts that follows `previous`, if there is time."""
        first = self._ticks(lines[0][0].start)
        start = max(first - self._offset, 0)
        return max(start, min(self._ticks(previous[-1][-1].end) + self._gap, first)) if previous else start

    def _fitted(self, starts: Sequence[int], lower: int, upper: int) -> list[int]:
        """The starts, earlier if needed, so that the last cue can end before `upper`; none before `lower`."""
        count, step = len(starts), self._shortest + self._gap
        if upper - lower < count * step:
            return [lower + max((upper - lower) * index // count, index) for index in range(count)]
        return [min(start, upper - (count - index) * step) for index, start in enumerate(starts)]

    def done(self, next_start: int | None, is_exact: bool = False) -> Iterator[Cue]:
        """The cues that wait, the last one before `next_start`. `is_exact`: it stays until then."""
        limits = [*self._starts, next_start][1:]
        for left, (lines, start, limit) in enumerate(
            zip(self._waiting, self._starts, limits, strict=True), 1
        ):
            texts = tuple("".join(unit.text for unit in line).strip(SPACES) for line in lines)
            is_last = left == len(limits)
            end = limit if limit and is_exact and is_last else self._end_of(lines, texts, start, limit)
            yield Cue(self._samples(start), self._samples(end), texts, lines)
            self._end = end
        self._waiting, self._starts = [], []

    def _spoken_end(self, lines: Lines) -> int:
        return self._ticks(max(line[-1].end for line in lines))

    def _end_of(self, lines: Lines, texts: Sequence[str], start: int, next_start: int | None) -> int:
        """When a cue ends. If the next one starts soon, it stays until then: a short gap flickers."""
        chars = sum(map(width, texts)) + len(texts) - 1
        chars_per_tick = self._style.of(lines[0][0].language).max_cps / self._rate
        reading = math.ceil(chars / chars_per_tick)
        end = max(self._spoken_end(lines), start + self._min, start + reading)
        if next_start is None:
            return max(min(end, start + self._max, self._last), start + self._shortest)
        limit = next_start - min(self._gap, max(next_start - start - self._shortest, 0))
        if next_start - end < self._pause:
            end = limit
        return max(min(end, start + self._max, limit), min(start + self._shortest, limit))

    def _ticks(self, samples: int, rounded: Callable[[float], int] = round) -> int:
        return samples if self._rate == SAMPLE_RATE else rounded(samples * self._rate / SAMPLE_RATE)

    def _samples(self, ticks: int) -> int:
        return ticks if self._rate == SAMPLE_RATE else round(ticks * SAMPLE_RATE / self._rate)
