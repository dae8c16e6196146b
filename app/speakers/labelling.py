"""Gives each word of a transcript its speaker, and does so again with what people know. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.speakers.voices import Embeddings
from app.transcript.edited import EditedSegment
from app.transcript.timeline import Transcript


@dataclass(frozen=True, slots=True)
class SpeakerCount:
    """How many people speak."""

    least: int = 1
    most: int | None = None  # None: the voices decide


@dataclass(frozen=True, slots=True, eq=False)
class KnownSpeaker:
    """A voice with a name."""

    name: str
    embedding: Embeddings  # shape (values,), of length 1


def with_speakers(
    transcript: Transcript,
    voices: Sequence[bytes],
    count: SpeakerCount,
    names: Sequence[str] = (),
    known: Sequence[KnownSpeaker] = (),
) -> Transcript:
    """The transcript with `EditedSegment`s that have ids and speakers, split where the speaker changes.

    `voices`: of each clip, in order, from `pack_voices`. Speakers have the names of `known` voices, else
    `names` in order of their first appearance, else `S1`, `S2`, … likewise.
    """
    raise NotImplementedError


def relabelled(
    segments: Sequence[EditedSegment],
    voices: Sequence[bytes],
    count: SpeakerCount,
    same: Sequence[Sequence[str]] = (),
    different: Sequence[Sequence[str]] = (),
) -> tuple[EditedSegment, ...]:
    """The segments with new speakers. Ids, texts and times stay, and so do speakers set by hand.

    `same`: ids of segments of one speaker each; `different`: ids of segments of which each has another
    speaker. The speakers of all these count as set by hand from now on. Raises InvalidInput for an id that is
    not there, and for what contradicts itself or the speakers set by hand.
    """
    raise NotImplementedError


def renamed(segments: Sequence[EditedSegment], names: Mapping[str, str]) -> tuple[EditedSegment, ...]:
    """The segments with other names for their speakers. Two speakers with one name become one.

    Raises InvalidInput for a label that no segment has.
    """
    raise NotImplementedError
