"""Gives each word of a transcript its speaker, and does so again with what people know. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from app.common.errors import InvalidInput
from app.transcript.edited import EditedSegment, with_ids
from app.transcript.speakers.clustering import SpeakerCount, find_speakers
from app.transcript.speakers.naming import KnownSpeaker, first_names, names_by_time
from app.transcript.speakers.relabelling import relabelled
from app.transcript.speakers.splitting import listed_speakers, split, with_turns
from app.transcript.speakers.voices import unpack_all, window_parts
from app.transcript.speakers.word_labels import label_words
from app.transcript.timeline import Transcript
from workers.messages import Segment

__all__ = ["KnownSpeaker", "SpeakerCount", "named_as", "relabelled", "renamed", "with_speakers"]


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
    segments = list(with_ids(transcript.segments, transcript.clips))
    spoken = unpack_all(voices)
    if not segments or not spoken.windows:
        return replace(transcript, segments=tuple(segments))
    parts = window_parts(spoken.windows)
    clusters = find_speakers(spoken, count)
    labels = label_words(segments, parts, clusters)
    speakers = first_names(list(chain.from_iterable(labels)), spoken, clusters, names, known)
    return replace(
        transcript,
        segments=tuple(
            part
            for segment, of_words in zip(segments, labels, strict=True)
            for part in split(segment, [speakers[label] for label in of_words])
        ),
    )


def named_as(before: Sequence[Segment], segments: Sequence[EditedSegment]) -> tuple[EditedSegment, ...]:
    """The segments with the names that their speakers have in an earlier transcript of the recording.

    See `names_by_time`.
    """
    return renamed(segments, names_by_time(before, segments))


def renamed(segments: Sequence[EditedSegment], names: Mapping[str, str]) -> tuple[EditedSegment, ...]:
    """The segments with other names for their speakers. Two speakers with one name become one.

    Raises InvalidInput for a label that no segment has.
    """
    speakers = [listed_speakers(segment) for segment in segments]
    known = {speaker for of_words in speakers for speaker in of_words if speaker is not None}
    if unknown := sorted(names.keys() - known):
        speakers_are = f"The speakers are {', '.join(sorted(known))}." if known else "No speaker is known."
        raise InvalidInput(f"No segment has the speaker {unknown[0]!r}. {speakers_are}", param="names")
    return tuple(
        with_turns(segment, [names.get(speaker or "", speaker) for speaker in of_words])
        for segment, of_words in zip(segments, speakers, strict=True)
    )
