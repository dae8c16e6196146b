"""Times for texts that have none, from their neighbours. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from workers.messages import Span

MaybeSpan = tuple[int | None, int | None]  # start and end in samples, as far as they are known


def fill_times(spans: Sequence[MaybeSpan], lengths: Sequence[int], first: int, last: int) -> list[Span]:
    """The spans of texts in a row, which lasts from `first` to `last`, with all times.

    Between two known times, texts take time in proportion to their `lengths`.
    """
    columns = [0, *accumulate(lengths)]
    edges: list[tuple[int, int | None]] = [(0, first)]  # `(column, time)`
    for (start, end), begins, ends in zip(spans, columns[:-1], columns[1:], strict=True):
        edges += (begins, start), (ends, end)
    edges.append((columns[-1], last))
    known = [index for index, (_, time) in enumerate(edges) if time is not None]
    times = [_time(index, edges, known) for index in range(1, len(edges) - 1)]
    return list(zip(times[0::2], times[1::2], strict=True))


def _time(index: int, edges: Sequence[tuple[int, int | None]], known: Sequence[int]) -> int:
    column, time = edges[index]
    if time is not None:
        return time
    after = bisect_left(known, index)
    (left, begins), (right, ends) = edges[known[after - 1]], edges[known[after]]
    assert begins is not None
    assert ends is not None
    return begins + (ends - begins) * (column - left) // max(right - left, 1)
