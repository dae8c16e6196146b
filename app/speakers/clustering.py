"""Finds the speakers of a recording: which windows have one voice. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.speakers.linkage import Merge, average_linkage, joined, root
from app.speakers.turns import turns
from app.speakers.voices import Embeddings
from workers.messages import SAMPLE_RATE

MOST_ITEMS = 4000  # that are compared with each other: a matrix of 64 MB

_FARTHEST = 0.25  # distance of two clusters with one voice
_LEAST_SPEECH = 5 * SAMPLE_RATE  # samples; less is no speaker of its own, but an odd sound of another one
_LEAST_SHARE = 0.04  # of all speech, likewise, in short recordings

Labels = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SpeakerCount:
    """How many people speak."""

    least: int = 1
    most: int | None = None  # None: the voices decide


def find_speakers(
    embeddings: Embeddings,
    weights: Weights,
    count: SpeakerCount,
    together: Sequence[Sequence[int]] = (),
    apart: Sequence[tuple[int, int]] = (),
) -> Labels:
    """The speaker of each window, numbered from 0 by their first windows.

    `weights`: the speech that each window stands for, in samples. `together`: groups of windows with one
    speaker each; no window is in two. `apart`: pairs of groups (their numbers) with different speakers. The
    result depends on nothing but the windows in order.
    """
    if not len(embeddings):
        return np.zeros(0, np.int64)
    items = _items(embeddings, weights, together)
    speech = np.bincount(items, weights).astype(np.float64)
    sums = _sums(embeddings * weights[:, None].astype(np.float32), items)
    merges = average_linkage(sums, speech, apart)
    sure = speech.copy()
    sure[[group for pair in apart for group in pair]] = np.inf  # however little they speak
    labels, is_speaker = _cut(merges, sure, count.least)
    labels = _without_small(labels, is_speaker, sums)
    labels = _at_most(labels, sums, speech, apart, count.most)
    return _by_first(labels[items])


def _items(embeddings: Embeddings, weights: Weights, together: Sequence[Sequence[int]]) -> Labels:
    """The item of each window: first the groups, then turns of all other windows."""
    items = np.full(len(embeddings), -1, np.int64)
    for group, windows in enumerate(together):
        items[list(windows)] = group
    free = items < 0
    most = max(MOST_ITEMS - len(together), 1)
    items[free] = len(together) + turns(embeddings[free], weights[free], most)
    return items


def _sums(vectors: Embeddings, labels: Labels) -> Embeddings:
    """The sum of the vectors with each label. All labels from 0 up occur."""
    order = np.argsort(labels, kind="stable")
    firsts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    sums: Embeddings = np.add.reduceat(vectors[order], firsts, axis=0)
    return sums


def _cut(merges: Sequence[Merge], speech: Weights, least: int) -> tuple[Labels, npt.NDArray[np.bool_]]:
    """The cluster of each item, and which clusters speak enough to be speakers.

    All that are near enough are merged; fewer, if there were not `least` speakers then.
    """
    near = sum(merge.distance <= _FARTHEST for merge in merges)
    enough = min(_LEAST_SPEECH, _LEAST_SHARE * float(speech[np.isfinite(speech)].sum()))
    while True:
        counts = _counts(merges[:near], speech, enough)
        applied = next((done for done in range(near, -1, -1) if counts[done] >= least), None)
        if applied is None and enough:
            enough = enough / 2 if enough > 1 else 0
            continue
        labels = joined(len(speech), merges[: applied or 0])
        return labels, np.bincount(labels, speech) >= enough


def _counts(merges: Sequence[Merge], speech: Weights, enough: float) -> list[int]:
    """How many clusters speak enough: before the first merge, after it, after the second, …"""
    total = speech.tolist()
    parents = list(range(len(total)))
    counts = [int((speech >= enough).sum())]
    for merge in merges:
        first, second = root(parents, merge.first), root(parents, merge.second)
        parents[second] = first
        parts = (total[first], total[second])
        total[first] = sum(parts)
        counts.append(counts[-1] + (total[first] >= enough) - sum(part >= enough for part in parts))
    return counts


def _without_small(labels: Labels, is_speaker: npt.NDArray[np.bool_], sums: Embeddings) -> Labels:
    """The cluster of each item, after the items of small clusters have gone to the nearest speakers."""
    voices = _of_length_1(_sums(sums, labels)[is_speaker])
    renumbered = np.where(is_speaker, np.cumsum(is_speaker) - 1, -1)[labels]
    strays = renumbered < 0
    renumbered[strays] = np.argmax(sums[strays] @ voices.T, axis=1)
    return renumbered


def _at_most(
    labels: Labels, sums: Embeddings, speech: Weights, apart: Sequence[tuple[int, int]], most: int | None
) -> Labels:
    """The speaker of each item, after the most similar ones have become one until there are `most`."""
    count = int(labels.max()) + 1
    if most is None or count <= most:
        return labels
    pairs = [(int(labels[one]), int(labels[other])) for one, other in apart]
    totals = np.bincount(labels, speech).astype(np.float64)
    merges = average_linkage(_sums(sums, labels), totals, pairs)
    return joined(count, merges[: count - most])[labels]


def _by_first(labels: Labels) -> Labels:
    """The labels, numbered by their first appearance."""
    _, firsts, numbers = np.unique(labels, return_index=True, return_inverse=True)
    ranks = np.empty(len(firsts), np.int64)
    ranks[np.argsort(firsts)] = np.arange(len(firsts))
    ordered: Labels = ranks[numbers]
    return ordered


def _of_length_1(vectors: Embeddings) -> Embeddings:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Embeddings = vectors / np.maximum(lengths, np.float32(1e-9))
    return unit
