"""Segments of one speaker that overlap in time, one after the other. Pure.

Those of different speakers stay as they are: people speak at once. Whoever times a segment by hand wants its
text alone on the screen, so a segment timed by hand shares its time with nobody.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.transcript.edited import is_timed_by_hand, speaker_of
from app.transcript.lines import SHORTEST_CUE
from app.transcript.timeline import moved
from workers.messages import Segment


@dataclass(slots=True, eq=False)
class _Group:
    """Segments that start at nearly the same time, and share it."""

    segments: list[Segment]
    end: int

    def competes_with(self, segment: Segment) -> bool:
        """Whether one of the two must give way where they overlap."""
        if self.end <= segment.start:
            return False
        is_one_speaker = speaker_of(self.segments[-1]) == speaker_of(segment)
        return is_one_speaker or is_timed_by_hand(segment) or is_timed_by_hand(self.segments[-1])

    def is_joined_by(self, segment: Segment) -> bool:
        return segment.start < self.segments[0].start + SHORTEST_CUE * len(self.segments)


def without_overlap(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The segments, ordered by their start. Only those of different speakers overlap, if nobody timed them.

    A segment ends when the next one starts. It stays to its end if someone chose that, and if the next one,
    which nobody timed by hand, can start later. Segments that start together share their time.
    """
    groups: list[_Group] = []  # segments of different speakers, whose ends are open
    done: list[Segment] = []  # segments that start after one whose end is open
    for segment in segments:
        rivals = [group for group in groups if group.competes_with(segment)]
        if not is_timed_by_hand(segment):
            ends = [group.end for group in rivals if is_timed_by_hand(group.segments[-1])]
            if ends and segment.end - max(ends) >= SHORTEST_CUE:
                segment = moved(segment, max(ends), segment.end)
                rivals = [group for group in rivals if group.competes_with(segment)]
        joined = [group for group in rivals if group.is_joined_by(segment)]
        others = [group for group in groups if group not in rivals and group.end > segment.start]
        for group in groups:
            if group not in joined and group not in others:
                done += _shared(group.segments, min(group.end, segment.start))
        together = [part for group in joined for part in group.segments]
        end = max([segment.end, *(group.end for group in joined)])
        groups = [*others, _Group([*together, segment], end)]
        if done:
            done.sort(key=_start)
            latest = min(_start(group.segments[0]) for group in others) if others else math.inf
            while done and done[0].start <= latest:
                yield done.pop(0)
    for group in groups:
        done += _shared(group.segments, group.end)
    yield from sorted(done, key=_start)


def _start(segment: Segment) -> int:
    return segment.start


def _shared(segments: Sequence[Segment], end: int) -> Iterator[Segment]:
    """The segments from the start of the first one to `end`: equal parts of this time for several."""
    if len(segments) <= 1 and all(segment.end <= end for segment in segments):
        yield from segments
        return
    start, count = segments[0].start, len(segments)
    edges = [start + (end - start) * index // count for index in range(count + 1)]
    for segment, first, last in zip(segments, edges, edges[1:], strict=False):
        yield moved(segment, first, last)
