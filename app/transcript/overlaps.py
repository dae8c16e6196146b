"""Segments that overlap in time, as those of different speakers may, one after the other. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from app.transcript.edited import is_timed_by_hand
from app.transcript.lines import SHORTEST_CUE
from app.transcript.timeline import moved
from workers.messages import Segment


def without_overlap(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The segments, ordered by their start, none overlapping the next.

    A segment ends when the next one starts. It stays to its end if someone chose that, and if the next one,
    which nobody timed by hand, can start later. Segments that start together share their time.
    """
    together: list[Segment] = []  # segments that start at nearly the same time
    end = 0  # of the last of them
    for segment in segments:
        if together and segment.start < end:
            waits = is_timed_by_hand(together[-1]) and not is_timed_by_hand(segment)
            if waits and segment.end - end >= SHORTEST_CUE:
                segment = moved(segment, end, segment.end)
            elif segment.start < together[0].start + SHORTEST_CUE * len(together):
                together.append(segment)
                end = max(end, segment.end)
                continue
        yield from _shared(together, min(end, segment.start))
        together, end = [segment], segment.end
    yield from _shared(together, end)


def _shared(segments: Sequence[Segment], end: int) -> Iterator[Segment]:
    """The segments from the start of the first one to `end`: equal parts of this time for several."""
    if len(segments) <= 1 and all(segment.end <= end for segment in segments):
        yield from segments
        return
    start, count = segments[0].start, len(segments)
    edges = [start + (end - start) * index // count for index in range(count + 1)]
    for segment, first, last in zip(segments, edges, edges[1:], strict=False):
        yield moved(segment, first, last)
