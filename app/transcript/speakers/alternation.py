"""Joins the clusters of one speaker, by their distances and how they alternate inside speech. Pure."""

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from app.transcript.speakers.voices import Embeddings, NearWindows
from workers.messages import SAMPLE_RATE, Span

# Two clusters are one speaker if the distance of their means is below a limit. People vary more than
# synthetic voices, and show it within a sentence, in how far windows next but one to each other are apart.
# Where that is the first of these distances, the limit is the first one, and so on, with a line between.
_SPREADS = (0.165, 0.2)
_LIMITS = (0.055, 0.16)
# Added to the limit: the mean of few windows is not exact, and kinds of sound of one speaker alternate.
_DOUBT = 0.27  # divided by the root of the seconds of the smaller cluster
_WORTH = 0.01  # of the logarithm of the alternation
_SPREAD_PRIOR = 10.0  # as if each cluster had so many more of these windows, as far apart as usual
_LEAST_COSINE = 0.01  # inside of a cluster; those of several people may have less
# Few transitions say little: as if so many more had been seen, with so much alternation (smoothing).
_PRIOR_COUNT = 2.0
_PRIOR = 0.15

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
    usual: float,
    scale: float,
) -> npt.NDArray[np.int64]:
    """The speaker of each cluster, of which each is one voice.

    `sums`: of the vectors in each cluster, weighted by their speech; `squares`: of the weights, likewise;
    `follows`: from `transitions`; `near`: from `spread`;
    `together`: clusters of one speaker each; `apart`: pairs of clusters of different speakers, which stay so;
    `usual`: from `usual_distance`; `scale`: of the distances, relative to those of the bundled model. The two
    clusters that are most likely one speaker are joined again and again: while that is likely enough and more
    than `least` speakers are left, and in any case while there are more than `most`.

    How likely that is: a logistic regression of pairs of clusters whose speakers are known, by the cosine
    distance of their means, how much they vary, how little the smaller one says, and how they alternate.
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
        lengths = speech * _lengths(products.diagonal(), speech, squares)
        distances = 1 - products / np.outer(lengths, lengths)
        spreads = _spreads(near, usual) / scale
        limits = np.interp((spreads[:, None] + spreads[None, :]) / 2, _SPREADS, _LIMITS)
        doubts = _DOUBT / np.sqrt(np.minimum(speech[:, None], speech[None, :]) / SAMPLE_RATE)
        costs = distances - scale * (limits + doubts + _WORTH * np.log(_alternation(follows)))
        costs[excluded] = np.inf
        first, second = sorted(map(int, np.unravel_index(costs.argmin(), costs.shape)))
        is_likely = costs[first, second] < 0 and left > least
        is_too_many = most is not None and left > most
        if not np.isfinite(costs[first, second]) or not (is_likely or is_too_many):
            break
        join(first, second)
        left -= 1
    return np.unique(speakers, return_inverse=True)[1].astype(np.int64)


def _lengths(
    products: npt.NDArray[np.float64], speech: npt.NDArray[np.float64], squares: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The length of the mean vector of each cluster, if it had many windows; 1 if it has one.

    `products`: of each cluster's sum with itself, which has each window with itself as well: that is left
    out, since it makes the mean of few windows longer, and so further from others than it is.
    """
    pairs = speech**2 - squares
    cosines = np.where(pairs > 0, (products - squares) / np.maximum(pairs, 1), 1)
    found: npt.NDArray[np.float64] = np.sqrt(np.maximum(cosines, _LEAST_COSINE))
    return found


def _spreads(near: Matrix, usual: float) -> npt.NDArray[np.float64]:
    """The mean distance of near windows inside each cluster: shape (n,)."""
    # Inside of a cluster, each pair of windows is there twice.
    sums, counts = near[0].diagonal() / 2, near[1].diagonal() / 2
    found: npt.NDArray[np.float64] = (sums + _SPREAD_PRIOR * usual) / (counts + _SPREAD_PRIOR)
    return found


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
