"""Similar windows of long recordings, joined, so that few items are left to compare. Pure."""

import numpy as np
import numpy.typing as npt

from app.speakers.linkage import average_linkage, joined
from app.speakers.voices import Embeddings

_BLOCK = 1000  # windows that are compared with each other: over ten minutes


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
