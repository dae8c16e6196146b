"""Joins the clusters of one speaker, by their distances and how they alternate inside speech. Pure."""

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from app.transcript.speakers.voices import NEAR, Embeddings, NearWindows
from workers.messages import SAMPLE_RATE, Span

# Two clusters are one speaker if `distance - _WORTH * alternation` is below this, or a little above it if one
# has little speech: an average of few windows is not exact.
_LIMIT = 0.2
_WORTH = 0.15
_DOUBT = 0.2 * SAMPLE_RATE  # divided by the samples of the smaller cluster
# They are also one speaker if their distance exceeds the mean distance of two windows inside each of them by
# less than this: whole sentences of a speaker may be in one cluster and others in the other, and then nothing
# alternates.
_MOST_EXCESS = 0.045
# People vary more than synthetic voices, within a sentence already: where the windows next but one to each
# other are further apart than this, two clusters are also one speaker if their distance is below so many
# times that of such windows.
_VARIED = 1.12 * NEAR
_MOST_VARIED = 1.55
_SPREAD_PRIOR = 10.0  # as if each cluster had so many more of these windows, as far apart as all of them
# Few transitions say little: as if so many more had been seen, with so much alternation (smoothing).
_PRIOR_COUNT = 2.0
_PRIOR = 0.5

Matrix = npt.NDArray[np.float64]


def transitions(labels: npt.NDArray[np.int64], windows: Sequence[Span]) -> Matrix:
    """How often two clusters follow each other inside a span of speech, in either order: symmetric.

    `labels`: of each window. Windows of one span of speech overlap.
    """
    count = int(labels.max()) + 1
    spans = np.array(windows, np.int64)
    inside = np.flatnonzero(spans[1:, 0] < spans[:-1, 1])
    follows = np.zeros((count, count))
    np.add.at(follows, (labels[inside], labels[inside + 1]), 1)
    return follows + follows.T


def spread(labels: npt.NDArray[np.int64], near: NearWindows) -> Matrix:
    """The distances of near windows by their clusters: shape (2, n, n), sums and counts, each symmetric.

    `labels`: of each window.
    """
    count = int(labels.max()) + 1
    pairs = (labels[near.first], labels[near.first + 2])
    found = np.zeros((2, count, count))
    np.add.at(found[0], pairs, near.distances)
    np.add.at(found[1], pairs, 1)
    return found + found.transpose(0, 2, 1)


def joined_speakers(
    sums: Embeddings,
    speech: npt.NDArray[np.float64],
    squares: npt.NDArray[np.float64],
    follows: Matrix,
    near: Matrix,
    least: int,
    most: int | None,
    together: Sequence[Sequence[int]],
    apart: Sequence[tuple[int, int]],
    scale: float,
) -> npt.NDArray[np.int64]:
    """The speaker of each cluster, of which each is one voice.

    `sums`: of the vectors in each cluster, weighted by their speech; `squares`: of the weights, likewise;
    `follows`: from `transitions`; `near`: from `spread`;
    `together`: clusters of one speaker each; `apart`: pairs of clusters of different speakers, which stay so;
    `scale`: of the distances, relative to those of the bundled model. The two clusters that are most likely
    one speaker are joined again and again: while that is likely enough and more than `least` speakers are
    left, and in any case while there are more than `most`.
    """
    products = (sums @ sums.T).astype(np.float64)  # of two clusters' vectors, all pairs
    follows, near, speech, squares = follows.copy(), near.copy(), speech.copy(), squares.copy()
    excluded = np.eye(len(speech), dtype=bool)
    for one, other in apart:
        excluded[one, other] = excluded[other, one] = True
    speakers = np.arange(len(speech))

    def join(first: int, second: int) -> None:
        for matrix in (products, follows, *near):
            matrix[first] += matrix[second]
            matrix[:, first] += matrix[:, second]
        speech[first] += speech[second]
        squares[first] += squares[second]
        excluded[first] |= excluded[second]
        excluded[:, first] = excluded[first]
        excluded[second] = excluded[:, second] = True
        speakers[speakers == second] = first

    for one, other in chain.from_iterable(map(pairwise, together)):
        first, second = sorted((int(speakers[one]), int(speakers[other])))
        if not excluded[first, second]:
            join(first, second)
    left = len(set(speakers.tolist()))
    while left > 1:
        distances = 1 - products / np.outer(speech, speech)
        widths = _widths(products.diagonal(), speech, squares)
        excess = distances - (widths[:, None] + widths[None, :]) / 2
        doubts = _DOUBT / np.minimum(speech[:, None], speech[None, :])
        costs = distances - scale * (_WORTH * _alternation(follows) + doubts)
        costs = np.minimum(costs, excess + scale * (_LIMIT - _MOST_EXCESS))
        costs = np.minimum(costs, scale * _LIMIT * distances / _farthest(near, scale))
        costs[excluded] = np.inf
        first, second = sorted(map(int, np.unravel_index(costs.argmin(), costs.shape)))
        is_likely = costs[first, second] < scale * _LIMIT and left > least
        is_too_many = most is not None and left > most
        if not np.isfinite(costs[first, second]) or not (is_likely or is_too_many):
            break
        join(first, second)
        left -= 1
    return np.unique(speakers, return_inverse=True)[1].astype(np.int64)


def _widths(
    products: npt.NDArray[np.float64], speech: npt.NDArray[np.float64], squares: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The mean distance of two different windows of each cluster; 0 if it has one window.

    `products`: of each cluster's sum with itself, which has each window with itself as well: at distance 0.
    """
    pairs = speech**2 - squares
    found: npt.NDArray[np.float64] = np.where(pairs > 0, 1 - (products - squares) / np.maximum(pairs, 1), 0)
    return found


def _farthest(near: Matrix, scale: float) -> Matrix:
    """Below which distance two clusters are one speaker by how much they vary: shape (n, n)."""
    sums, counts = near
    usual = sums.sum() / max(counts.sum(), 1)
    # Inside of a cluster, each pair of windows is there twice.
    spreads = (sums.diagonal() / 2 + _SPREAD_PRIOR * usual) / (counts.diagonal() / 2 + _SPREAD_PRIOR)
    spreads_of_both = (spreads[:, None] + spreads[None, :]) / 2
    farthest: Matrix = np.where(
        spreads_of_both > scale * _VARIED, _MOST_VARIED * spreads_of_both, scale * _LIMIT
    )
    return farthest


def _alternation(follows: Matrix) -> Matrix:
    """How often two clusters follow each other, relative to windows of both in random order: shape (n, n).

    About 1 for two kinds of sound of one speaker, and near 0 for two speakers.
    """
    stays = follows.diagonal()
    windows = stays[:, None] + stays[None, :] + 2 * follows
    share = (stays[:, None] + follows) / np.maximum(windows, 1)
    expected = share * (1 - share) * windows
    found: Matrix = (follows + _PRIOR * _PRIOR_COUNT) / (expected + _PRIOR_COUNT)
    return found
