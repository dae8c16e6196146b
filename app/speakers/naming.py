"""The names of speakers. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
import numpy.typing as npt

from app.speakers.voices import Embeddings

_SAME_VOICE = 0.75  # cosine of a known voice and a speaker, at least

_NUMBER = re.compile(r"S[1-9][0-9]*")


@dataclass(frozen=True, slots=True, eq=False)
class KnownSpeaker:
    """A voice with a name."""

    name: str
    embedding: Embeddings  # shape (values,), of length 1


def is_number(speaker: str) -> bool:
    """Whether the speaker is `S1`, `S2`, … and has no name."""
    return _NUMBER.fullmatch(speaker) is not None


def numbers(used: Collection[str] = ()) -> Iterator[str]:
    """`S1`, `S2`, … without those in use."""
    return (speaker for number in count(1) if (speaker := f"S{number}") not in used)


def first_names(
    spoken: Sequence[int],
    embeddings: Embeddings,
    labels: npt.NDArray[np.int64],
    names: Sequence[str],
    known: Sequence[KnownSpeaker],
) -> dict[int, str]:
    """The name of each label that occurs in `spoken`, the labels of all words in order.

    Known voices name the most similar labels, one each. The others get `names` in order of their first
    appearance, and when these are used up, `S1`, `S2`, ….
    """
    found = list(dict.fromkeys(spoken))
    speakers = _known_names(found, embeddings, labels, known)
    unused = [name for name in names if name not in speakers.values()]
    others = chain(unused, numbers({*names, *speakers.values()}))
    return speakers | {label: next(others) for label in found if label not in speakers}


def _known_names(
    found: Sequence[int],
    embeddings: Embeddings,
    labels: npt.NDArray[np.int64],
    known: Sequence[KnownSpeaker],
) -> dict[int, str]:
    """The names of labels that have a known voice."""
    pairs = []
    for label in found if known else ():
        voice = embeddings[labels == label].sum(axis=0)
        voice /= max(float(np.linalg.norm(voice)), 1e-9)
        pairs += [(float(voice @ speaker.embedding), label, speaker.name) for speaker in known]
    speakers: dict[int, str] = {}
    for likeness, label, name in sorted(pairs, reverse=True):
        if likeness >= _SAME_VOICE and label not in speakers and name not in speakers.values():
            speakers[label] = name
    return speakers


def kept_names(shares: Mapping[tuple[int, str], int], used: Collection[str]) -> dict[int, str]:
    """Which labels keep a name that a speaker had before.

    `shares`: how much speech a label has in common with an earlier speaker. A label keeps the name if it has
    most in common with that speaker, and more than other labels have.
    """
    most: dict[int, tuple[int, str]] = {}
    for (label, speaker), share in shares.items():
        most[label] = max(most.get(label, (0, "")), (share, speaker))
    kept: dict[int, str] = {}
    for label, (_, speaker) in sorted(most.items(), key=lambda item: (-item[1][0], item[0])):
        if not is_number(speaker) and speaker not in used and speaker not in kept.values():
            kept[label] = speaker
    return kept
