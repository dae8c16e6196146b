"""Agglomerative clustering with average linkage; of long recordings, in blocks first. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.transcript.speakers.voices import Embeddings

Vectors = npt.NDArray[np.float32]

_BLOCK = 1000  # windows that are compared with each other: over ten minutes


@dataclass(frozen=True, slots=True, order=True)
class Merge:
    """Two clusters become one. Each is named by one of its items."""

    distance: float
    first: int
    second: int


def average_linkage(
    sums: Vectors, weights: npt.NDArray[np.float64], owners: npt.NDArray[np.int64] | None = None
) -> list[Merge]:
    """The merges of items, nearest first, until only one is left, or only items that must stay apart.

    `sums`: shape (n, values), of the vectors of length 1 in each item, weighted; `weights`: shape (n,), their
    total weight; `owners`: items with different numbers from 0 up stay apart, those with -1 are free. The
    distance of two clusters is the average of 1 - cosine over their pairs of vectors. For sums, that is one
    product: mean(a)·mean(b). Nearest-neighbour chain (Murtagh 1983): n² steps.
    """
    means = sums / weights[:, None].astype(np.float32)
    distances = means @ means.T
    np.subtract(1, distances, out=distances)
    np.fill_diagonal(distances, np.inf)
    if owners is not None:
        owned = np.flatnonzero(owners >= 0)
        one, other = np.nonzero(owners[owned][:, None] != owners[owned][None, :])
        distances[owned[one], owned[other]] = np.inf
    sizes = weights.astype(np.float64)
    merges: list[Merge] = []
    open_items = np.ones(len(sums), bool)
    chain: list[int] = []
    while True:
        if not chain:
            if not open_items.any():
                return sorted(merges)
            chain = [int(open_items.argmax())]
        last = chain[-1]
        nearest = int(distances[last].argmin())
        distance = distances[last, nearest]
        if not np.isfinite(distance):  # it may join none of those that are left
            open_items[chain.pop()] = False
            continue
        if len(chain) < 2 or distances[last, chain[-2]] > distance:
            chain.append(nearest)
            continue
        kept, gone = sorted((chain.pop(), chain.pop()))
        merges.append(Merge(float(distance), kept, gone))
        share = np.float32(sizes[kept] / (sizes[kept] + sizes[gone]))
        joined = share * distances[kept] + (1 - share) * distances[gone]
        joined[kept] = np.inf
        distances[kept] = distances[:, kept] = joined
        distances[gone] = distances[:, gone] = np.inf
        sizes[kept] += sizes[gone]
        open_items[gone] = False


def root(parents: list[int], item: int) -> int:
    """The item that stands for the cluster of this one. Shortens the way to it."""
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item


def joined(count: int, merges: Sequence[Merge]) -> npt.NDArray[np.int64]:
    """The cluster of each of `count` items after these merges, numbered from 0 by their first items."""
    parents = list(range(count))
    for merge in merges:
        first, second = sorted((root(parents, merge.first), root(parents, merge.second)))
        parents[second] = first
    roots = [root(parents, item) for item in range(count)]
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)


def sums_of(vectors: Vectors, labels: npt.NDArray[np.int64]) -> Vectors:
    """The sum of the vectors with each label. All labels from 0 up occur."""
    order = np.argsort(labels, kind="stable")
    firsts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    sums: Vectors = np.add.reduceat(vectors[order], firsts, axis=0)
    return sums


def centroids(embeddings: Embeddings, weights: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.int64]:
    """The item of each window, numbered from 0: at most `most`, at least 1. Few windows are an item each.

    `weights`: shape (n,), how much each window counts. The most similar windows of each block become one
    item, until the blocks have equal parts of `most`.
    """
    count = len(weights)
    if count <= most:
        return np.arange(count)
    sums = embeddings * weights[:, None].astype(np.float32)
    blocks = min(-(-count // _BLOCK), most)
    items, used = np.empty(count, np.int64), 0
    for block in range(blocks):
        first, end = block * count // blocks, (block + 1) * count // blocks
        quota = (block + 1) * most // blocks - block * most // blocks
        merges = average_linkage(sums[first:end], weights[first:end])
        items[first:end] = used + joined(end - first, merges[: max(end - first - quota, 0)])
        used = int(items[first:end].max()) + 1
    return items
