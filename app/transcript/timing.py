"""When cues begin and end. Pure."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from app.transcript.lines import SHORTEST_CUE, CueStyle, Lines
from app.transcript.passages import PAUSE
from app.transcript.scripts import strip_spaces
from app.transcript.width import width
from workers.messages import SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class Cue:
    """What is shown at one time. Times in samples of the recording."""

    start: int
    end: int
    lines: tuple[str, ...]  # in logical order, none empty
    units: Lines = field(default=(), compare=False)  # the timed text of each line


def timed(cues: Iterable[Lines], style: CueStyle, samples: int) -> Iterator[Cue]:
    """The lines of each cue, from when to when they are shown, in order, at least `style.min_gap` apart.

    Each cue starts with its first unit, or later to leave the cue before it the shortest time. It ends once
    its text is spoken and people have had time to read it, or shortly before the next one; never after
    `samples`, the length of the recording.
    """
    timing = _Timing(style, samples)
    previous: Lines = ()
    start = 0
    for lines in cues:
        next_start = timing.start(lines, previous, start)
        if previous:
            yield timing.cue(previous, start, next_start)
        previous, start = lines, next_start
    if previous:
        yield timing.cue(previous, start, None)


class _Timing:
    """Times in ticks: frames if the style has a frame rate, otherwise samples."""

    def __init__(self, style: CueStyle, samples: int) -> None:
        self._rate = style.fps or SAMPLE_RATE  # ticks per second
        self._chars_per_tick = style.max_cps / self._rate
        self._shortest = max(self._ticks(SHORTEST_CUE), 1)
        self._min = self._ticks(style.min_samples, math.ceil)
        self._max = max(self._ticks(style.max_samples, math.floor), 1)
        self._gap = max(self._ticks(style.min_gap), 1)
        self._pause = self._ticks(PAUSE)
        self._offset = self._ticks(style.start_offset)
        self._last = self._ticks(samples, math.floor)

    def start(self, lines: Lines, previous: Lines, previous_start: int) -> int:
        """When a cue starts that follows `previous`."""
        first = self._ticks(lines[0][0].start)
        start = max(first - self._offset, 0)
        if not previous:
            return start
        spoken = self._ticks(previous[-1][-1].end) + self._gap
        return max(start, min(spoken, first), previous_start + self._shortest + self._gap)

    def cue(self, lines: Lines, start: int, next_start: int | None) -> Cue:
        """The cue from `start` on. If the next one starts soon, it stays until then: a short gap flickers."""
        texts = tuple(strip_spaces("".join(unit.text for unit in line)) for line in lines)
        chars = sum(map(width, texts)) + len(texts) - 1
        reading = math.ceil(chars / self._chars_per_tick)
        end = max(self._ticks(lines[-1][-1].end), start + self._min, start + reading)
        limit = self._last if next_start is None else next_start - self._gap
        if next_start is not None and next_start - end < self._pause:
            end = limit
        end = max(min(end, start + self._max, limit), start + self._shortest)
        return Cue(self._samples(start), self._samples(end), texts, lines)

    def _ticks(self, samples: int, rounded: Callable[[float], int] = round) -> int:
        return samples if self._rate == SAMPLE_RATE else rounded(samples * self._rate / SAMPLE_RATE)

    def _samples(self, ticks: int) -> int:
        return ticks if self._rate == SAMPLE_RATE else round(ticks * SAMPLE_RATE / self._rate)
