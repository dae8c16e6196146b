"""Finds the speakers of a recording: which windows have one voice. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, compress, product

import numpy as np
import numpy.typing as npt

from app.transcript.speakers.alternation import joined_speakers, spread, transitions
from app.transcript.speakers.linkage import Merge, average_linkage, centroids, joined, root, sums_of
from app.transcript.speakers.voices import (
    WINDOW,
    Embeddings,
    Voices,
    distance_scale,
    lengths,
    near_windows,
    usual_distance,
    window_parts,
)
from workers.messages import SAMPLE_RATE

MOST_ITEMS = 4000  # that are compared with each other: a matrix of 64 MB

# Distance of clusters that have one voice for sure, relative to that of near windows; more are joined
# afterwards. People vary more than synthetic voices: a fixed distance leaves too little of them in clusters.
_FARTHEST = 1.24
_FOUNDING = SAMPLE_RATE  # samples: all shorter windows are similar, whoever speaks
_MOST_CLUSTERS = 300  # that are joined one by one
_LEAST_SPEECH = 5 * SAMPLE_RATE  # samples; less is no speaker of its own, but an odd sound of another one
_LEAST_SHARE = 0.045  # of all speech, likewise, in short recordings
_TURN = 3  # windows in a row: two people are in one or two windows where one follows the other
_LEAST_IN_TURNS = 1 / 3  # of a speaker's speech

Labels = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]
SpeakerWindows = Sequence[Sequence[int]]  # of one speaker, in parts


@dataclass(frozen=True, slots=True)
class SpeakerCount:
    """How many people speak."""

    least: int = 1
    most: int | None = None  # None: the voices decide


def find_speakers(
    voices: Voices,
    count: SpeakerCount,
    together: Sequence[SpeakerWindows] = (),
    apart: Sequence[tuple[int, int]] = (),
) -> Labels:
    """The speaker of each window, numbered from 0 by their first windows.

    `together`: groups of windows with one speaker each, in parts that sound alike; none is empty, and no
    window is in two. `apart`: pairs of groups (their numbers) with different speakers. The result depends on
    nothing but the arguments.

    Average linkage makes clusters of one voice each, but often several of a speaker, whose sounds differ. So
    those with little speech are divided among the others, and the others are joined (`alternation`). Then
    those that have no turns are divided too (`_have_turns`). Short windows follow the speakers that are left.
    """
    if not voices.windows:
        return np.zeros(0, np.int64)
    founding = np.diff(np.array(voices.windows, np.int64))[:, 0] >= _FOUNDING
    founding[[window for group in together for part in group for window in part]] = True
    if not founding.any():
        founding[:] = True
    places = np.cumsum(founding) - 1
    speakers = _speakers(
        Voices(tuple(compress(voices.windows, founding)), voices.embeddings[founding]),
        count,
        [[places[list(part)].tolist() for part in group] for group in together],
        apart,
    )
    means = _of_length_1(sums_of(voices.embeddings[founding], speakers))
    labels = np.empty(len(founding), np.int64)
    labels[founding] = speakers
    labels[~founding] = np.argmax(voices.embeddings[~founding] @ means.T, axis=1)
    return _by_first(labels)


def _speakers(
    voices: Voices, count: SpeakerCount, together: Sequence[SpeakerWindows], apart: Sequence[tuple[int, int]]
) -> Labels:
    """The speaker of each window."""
    weights = lengths(window_parts(voices.windows))
    items, owners = _items(voices.embeddings, weights, together)
    speech = np.bincount(items, weights).astype(np.float64)
    sums = sums_of(voices.embeddings * weights[:, None].astype(np.float32), items)
    is_sure = np.isin(owners, [group for pair in apart for group in pair])  # however little they speak
    sure = np.where(is_sure, np.inf, speech)
    near = near_windows(voices)
    usual = usual_distance(near)
    least = count.least + sum(len(group) - 1 for group in together)  # parts of a group become one afterwards
    labels, is_speaker = _cut(average_linkage(sums, speech, owners), sure, _FARTHEST * usual, least)
    labels = _without_small(labels, is_speaker, sums)

    def join(labels: Labels, most: int | None) -> Labels:
        of_windows = labels[items]
        of_groups = [np.unique(labels[owners == group]).tolist() for group in range(len(together))]
        joined_to = joined_speakers(
            sums_of(sums, labels),
            np.bincount(labels, speech).astype(np.float64),
            np.bincount(of_windows, weights**2).astype(np.float64),
            transitions(of_windows, voices.windows),
            spread(of_windows, near),
            count.least,
            most,
            of_groups,
            [pair for one, other in apart for pair in product(of_groups[one], of_groups[other])],
            usual,
            distance_scale(near),
        )
        return joined_to[labels]

    labels = join(labels, None)
    is_speaker = _have_turns(labels[items], weights, count.least)
    is_speaker[labels[owners >= 0]] = True
    return join(_without_small(labels, is_speaker, sums), count.most)[items]


def _have_turns(labels: Labels, weights: Weights, least: int) -> npt.NDArray[np.bool_]:
    """Which speakers are people, by when they speak; `least` or more are.

    `labels`, `weights`: of the windows, in order of time. Windows that have two voices are similar too. The
    longer a recording is, the more there are, but each is by itself, whereas people have turns. Speakers
    with much of all speech need none, but at least as much as a window has: one odd window is nobody.
    """
    speech = np.bincount(labels, weights)
    firsts = np.flatnonzero(np.diff(labels, prepend=-1))
    is_turn = np.diff(firsts, append=len(labels)) >= _TURN
    in_turns = np.bincount(labels[firsts], np.add.reduceat(weights, firsts) * is_turn)
    share = _LEAST_SHARE * float(speech.sum())
    least_in_turns = np.maximum(min(_LEAST_SPEECH, share), _LEAST_IN_TURNS * speech)
    is_speaker: npt.NDArray[np.bool_] = (in_turns >= least_in_turns) | (speech >= max(share, WINDOW))
    is_speaker[np.lexsort((speech, in_turns))[::-1][:least]] = True
    return is_speaker


def _items(
    embeddings: Embeddings, weights: Weights, together: Sequence[SpeakerWindows]
) -> tuple[Labels, Labels]:
    """The item of each window, and the group of each item, or -1.

    The parts of groups are items, and so are all other windows, similar ones together if they are many.
    """
    items = np.full(len(embeddings), -1, np.int64)
    owners = [number for number, group in enumerate(together) for _ in group]
    for item, windows in enumerate(chain.from_iterable(together)):
        items[list(windows)] = item
    free = items < 0
    most = max(MOST_ITEMS - len(owners), 1)
    items[free] = len(owners) + centroids(embeddings[free], weights[free], most)
    return items, np.array(owners + [-1] * (int(items.max()) + 1 - len(owners)), np.int64)


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
