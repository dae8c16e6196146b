"""Counts of values by size."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """How many values were at most each of some bounds, and the sum of all values."""

    def __init__(self, *bounds: float) -> None:
        """`bounds` are in ascending order."""
        self.bounds = bounds
        self.sum = 0.0
        self._counts = [0] * (len(bounds) + 1)  # the values above the bound before, up to this one

    def add(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def cumulative(self) -> Sequence[int]:
        """The number of values up to each bound, and then the number of all."""
        return list(accumulate(self._counts))
