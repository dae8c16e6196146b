"""Neighbouring windows of one voice, joined, so that long recordings have few items to cluster. Pure."""

import heapq
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from app.speakers.voices import Embeddings


def turns(embeddings: Embeddings, weights: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.int64]:
    """The turn of each window, numbered in order: at most `most`. Few windows are a turn each.

    `weights`: shape (n,), how much each window counts. Of all neighbours, the two whose average pair of
    windows is most similar become one, again and again. A turn that is twice as long as the average may no
    longer grow, so that no similar neighbours become one that holds all of the recording.
    """
    count = len(weights)
    sums = embeddings * weights[:, None].astype(np.float32)
    totals = weights.tolist()
    longest = 2 * sum(totals) / max(most, 1)
    after = list(range(1, count + 1))
    before = list(range(-1, count - 1))
    version = [0] * count  # of each turn: how often it has grown; -1: it is part of an earlier one

    def similarity(one: int, other: int) -> float:
        return float(sums[one] @ sums[other] / (totals[one] * totals[other]))

    # Distances of neighbours, smallest first; out of date if one of them has grown since.
    queue = [(-similarity(one, other), one, 0, other, 0) for one, other in pairwise(range(count))]
    heapq.heapify(queue)
    left = count
    while left > most and queue:
        _, one, version_of_one, other, version_of_other = heapq.heappop(queue)
        if version[one] != version_of_one or version[other] != version_of_other:
            continue
        if totals[one] + totals[other] > longest:
            continue
        sums[one] += sums[other]
        totals[one] += totals[other]
        version[one] += 1
        version[other] = -1
        left -= 1
        after[one] = after[other]
        for first, second in ((before[one], one), (one, after[one])):
            if first >= 0 and second < count:
                before[second] = first
                heapq.heappush(
                    queue, (-similarity(first, second), first, version[first], second, version[second])
                )
    return np.cumsum(np.array(version) >= 0, dtype=np.int64) - 1
