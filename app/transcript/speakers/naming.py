"""The names of speakers. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from app.transcript.edited import EditedSegment, speaker_of, split_turns
from app.transcript.speakers.splitting import listed_speakers
from app.transcript.speakers.voices import Embeddings, Voices, distance_scale, near_windows
from workers.messages import Segment, Word

K = TypeVar("K", int, str)

_FARTHEST = 0.2  # distance of a known voice and its speaker

_NUMBER = re.compile(r"S[1-9][0-9]*")


@dataclass(frozen=True, slots=True, eq=False)
class KnownSpeaker:
    """A voice with a name."""

    name: str
    embedding: Embeddings = field(repr=False)  # shape (values,), of length 1
    model: str  # identity of the model that embedded it


def is_number(speaker: str) -> bool:
    """Whether the speaker is `S1`, `S2`, … and has no name."""
    return _NUMBER.fullmatch(speaker) is not None


def numbers(used: Collection[str] = ()) -> Iterator[str]:
    """`S1`, `S2`, … without those in use."""
    return (speaker for number in count(1) if (speaker := f"S{number}") not in used)


def first_names(
    spoken: Sequence[int],
    voices: Voices,
    labels: npt.NDArray[np.int64],
    names: Sequence[str],
    known: Sequence[KnownSpeaker],
) -> dict[int, str]:
    """The name of each label that occurs in `spoken`, the labels of all words in order.

    `labels`: of the windows of `voices`. Known voices name the most similar labels, one each. The others get
    `names` in order of their first appearance, and when these are used up, `S1`, `S2`, ….
    """
    found = list(dict.fromkeys(spoken))
    speakers = _known_names(found, voices, labels, known)
    unused = [name for name in names if name not in speakers.values()]
    others = chain(unused, numbers({*names, *speakers.values()}))
    return speakers | {label: next(others) for label in found if label not in speakers}


def _known_names(
    found: Sequence[int],
    voices: Voices,
    labels: npt.NDArray[np.int64],
    known: Sequence[KnownSpeaker],
) -> dict[int, str]:
    """The names of labels that have a known voice."""
    pairs = []
    for label in found if known else ():
        voice = voices.embeddings[labels == label].sum(axis=0)
        voice /= max(float(np.linalg.norm(voice)), 1e-9)
        pairs += [(float(voice @ speaker.embedding), label, speaker.name) for speaker in known]
    speakers: dict[int, str] = {}
    least = 1 - distance_scale(near_windows(voices)) * _FARTHEST
    for cosine, label, name in sorted(pairs, reverse=True):
        if cosine >= least and label not in speakers and name not in speakers.values():
            speakers[label] = name
    return speakers


def new_names(
    segments: Sequence[EditedSegment], labels: Sequence[Sequence[int]], fixed: Mapping[int, str]
) -> dict[int, str]:
    """The name of each label, where the segments still have the speakers that they had before.

    `labels`: as from `label_words`; `fixed`: those whose name is known. A name stays with the label that has
    most of the speech of its speaker, if that is most of what the label has. All others are `S1`, `S2`, … by
    their first appearance.
    """
    shares: Counter[tuple[int, str]] = Counter()
    for segment, of_words in zip(segments, labels, strict=True):
        spans: Sequence[Word | Segment] = segment.words or (segment,)
        for span, label, speaker in zip(spans, of_words, listed_speakers(segment), strict=True):
            if speaker is not None:
                shares[label, speaker] += span.end - span.start
    names = dict(fixed)
    for label, speaker in most_of_each(shares):
        if not (is_number(speaker) or speaker in names.values()):
            names.setdefault(label, speaker)
    others = numbers(set(names.values()))
    found = dict.fromkeys(chain.from_iterable(labels))
    return names | {label: next(others) for label in found if label not in names}


def most_of_each(shares: Counter[tuple[K, str]]) -> Iterator[tuple[K, str]]:
    """Each label with the name that has most of it; those with most come first."""
    seen: set[K] = set()
    for (label, name), _ in shares.most_common():
        if label not in seen:
            seen.add(label)
            yield label, name


def names_by_time(before: Sequence[Segment], after: Sequence[Segment]) -> dict[str, str]:
    """The name of each speaker of `after`: that of whoever speaks at the same time in `before`.

    Both are ordered by their start. A name goes to the speaker who has most of its time, if it has most of
    that speaker's. The others keep the name that they have, or get `S1`, `S2`, … if `before` has that.
    """
    old = [segment for segment in split_turns(before) if speaker_of(segment) is not None]
    new = [segment for segment in split_turns(after) if speaker_of(segment) is not None]
    shares: Counter[tuple[str, str]] = Counter()
    first = 0
    for segment in new:
        while first < len(old) and old[first].end <= segment.start:
            first += 1
        at = first
        while at < len(old) and old[at].start < segment.end:
            overlap = min(segment.end, old[at].end) - max(segment.start, old[at].start)
            shares[speaker_of(segment) or "", speaker_of(old[at]) or ""] += max(overlap, 0)
            at += 1
    names: dict[str, str] = {}
    for speaker, name in most_of_each(+shares):
        if name not in names.values():
            names[speaker] = name
    found = dict.fromkeys(speaker_of(segment) or "" for segment in new)
    used = {*names.values(), *(speaker_of(segment) or "" for segment in old)}
    others = numbers({*used, *found})
    return names | {
        speaker: next(others) if speaker in used else speaker for speaker in found if speaker not in names
    }
