"""Finds the speakers of a recording: which windows have one voice. Pure."""

from collections.abc import Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

from app.speakers.alternation import SpeakerCount, joined_speakers, transitions
from app.speakers.centroids import centroids
from app.speakers.linkage import Merge, average_linkage, joined, root, sums_of
from app.speakers.voices import Embeddings, Voices
from app.speakers.windows import lengths, window_parts
from workers.messages import SAMPLE_RATE

MOST_ITEMS = 4000  # that are compared with each other: a matrix of 64 MB

_FARTHEST = 0.21  # distance of clusters that have one voice for sure; more are joined afterwards
_FOUNDING = SAMPLE_RATE  # samples: all shorter windows are similar, whoever speaks
_MOST_CLUSTERS = 300  # that are joined one by one
_LEAST_SPEECH = 5 * SAMPLE_RATE  # samples; less is no speaker of its own, but an odd sound of another one
_LEAST_SHARE = 0.045  # of all speech, likewise, in short recordings

# Distance of two windows of one voice near each other, with the bundled model: usual, and the most.
_NEAR = 0.165
_FARTHEST_NEAR = 0.3

Labels = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


def find_speakers(
    voices: Voices,
    count: SpeakerCount,
    together: Sequence[Sequence[int]] = (),
    apart: Sequence[tuple[int, int]] = (),
) -> Labels:
    """The speaker of each window, numbered from 0 by their first windows.

    `together`: groups of windows with one speaker each; none is empty, and no window is in two. `apart`:
    pairs of groups (their numbers) with different speakers. The result depends on nothing but the arguments.

    Average linkage makes clusters of one voice each, but often several of a speaker, whose sounds differ. So
    those with little speech are divided among the others, and the others are joined (`alternation`). Short
    windows follow the speakers that are found then.
    """
    if not voices.windows:
        return np.zeros(0, np.int64)
    founding = np.diff(np.array(voices.windows, np.int64))[:, 0] >= _FOUNDING
    founding[[window for group in together for window in group]] = True
    if not founding.any():
        founding[:] = True
    places = np.cumsum(founding) - 1
    speakers = _speakers(
        Voices(tuple(compress(voices.windows, founding)), voices.embeddings[founding]),
        count,
        [places[list(group)].tolist() for group in together],
        apart,
    )
    means = _of_length_1(sums_of(voices.embeddings[founding], speakers))
    labels = np.empty(len(founding), np.int64)
    labels[founding] = speakers
    labels[~founding] = np.argmax(voices.embeddings[~founding] @ means.T, axis=1)
    return _by_first(labels)


def _speakers(
    voices: Voices, count: SpeakerCount, together: Sequence[Sequence[int]], apart: Sequence[tuple[int, int]]
) -> Labels:
    """The speaker of each window."""
    weights = lengths(window_parts(voices.windows))
    items = _items(voices.embeddings, weights, together)
    speech = np.bincount(items, weights).astype(np.float64)
    sums = sums_of(voices.embeddings * weights[:, None].astype(np.float32), items)
    sure = speech.copy()
    sure[[group for pair in apart for group in pair]] = np.inf  # however little they speak
    scale = _scale(voices)
    labels, is_speaker = _cut(average_linkage(sums, speech, apart), sure, scale * _FARTHEST, count.least)
    labels = _without_small(labels, is_speaker, sums)
    of_windows = labels[items]
    joined_to = joined_speakers(
        sums_of(sums, labels),
        np.bincount(labels, speech).astype(np.float64),
        transitions(of_windows, voices.windows),
        count,
        [(int(labels[one]), int(labels[other])) for one, other in apart],
        scale,
    )
    return joined_to[of_windows]


def _scale(voices: Voices) -> float:
    """What the limits of distances are multiplied by: 1 for the model that is bundled, more for others.

    Most models put the windows of one voice further apart. The windows next but one to each other show it:
    they share no sound, but nearly always the voice.
    """
    spans = np.array(voices.windows, np.int64)
    near = np.flatnonzero((spans[1:-1, 0] < spans[:-2, 1]) & (spans[2:, 0] < spans[1:-1, 1]))
    if not len(near):
        return 1.0
    cosines = np.einsum("ij,ij->i", voices.embeddings[near], voices.embeddings[near + 2])
    distance = 1 - float(np.median(cosines))
    return distance / _NEAR if distance > _FARTHEST_NEAR else 1.0


def _items(embeddings: Embeddings, weights: Weights, together: Sequence[Sequence[int]]) -> Labels:
    """The item of each window: first the groups, then the others, joined where they are many."""
    items = np.full(len(embeddings), -1, np.int64)
    for group, windows in enumerate(together):
        items[list(windows)] = group
    free = items < 0
    most = max(MOST_ITEMS - len(together), 1)
    items[free] = len(together) + centroids(embeddings[free], weights[free], most)
    return items


def _cut(
    merges: Sequence[Merge], speech: Weights, farthest: float, least: int
) -> tuple[Labels, npt.NDArray[np.bool_]]:
    """The cluster of each item, and which clusters speak enough to be speakers.

    All that are near enough are merged; fewer, if there were not `least` speakers then.
    """
    near = sum(merge.distance <= farthest for merge in merges)
    enough = min(_LEAST_SPEECH, _LEAST_SHARE * float(speech[np.isfinite(speech)].sum()))
    while True:
        counts = _counts(merges, speech, enough)
        while near < len(merges) and counts[near] > _MOST_CLUSTERS:
            near += 1
        applied = next((done for done in range(near, -1, -1) if counts[done] >= least), None)
        if applied is not None or not enough:
            labels = joined(len(speech), merges[: applied or 0])
            return labels, np.bincount(labels, speech) >= enough
        enough = enough / 2 if enough > 1 else 0


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
    voices = _of_length_1(sums_of(sums, labels)[is_speaker])
    renumbered = np.where(is_speaker, np.cumsum(is_speaker) - 1, -1)[labels]
    strays = renumbered < 0
    renumbered[strays] = np.argmax(sums[strays] @ voices.T, axis=1)
    return renumbered


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
