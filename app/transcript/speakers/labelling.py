"""Gives each word of a transcript its speaker, and does so again with what people know. Pure."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, compress
from operator import attrgetter

import numpy as np

from app.common.errors import InvalidInput
from app.transcript.again import subtract_spans
from app.transcript.edited import EditedSegment, speaker_of, split_turns, with_ids
from app.transcript.speakers.clustering import SpeakerCount, find_speakers
from app.transcript.speakers.naming import KnownSpeaker, first_names, most_of_each, names_by_time, numbers
from app.transcript.speakers.relabelling import holders, relabelled
from app.transcript.speakers.splitting import listed_speakers, split, with_turns
from app.transcript.speakers.voices import Voices, unpack_all, window_parts
from app.transcript.speakers.word_labels import label_words
from app.transcript.timeline import Transcript, joined_spans
from workers.messages import Segment, Span

__all__ = [
    "KnownSpeaker",
    "SpeakerCount",
    "named_as",
    "relabelled",
    "renamed",
    "spoken_as",
    "spoken_in",
    "with_speakers",
]


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
    return replace(transcript, segments=_split(segments, labels, speakers))


def spoken_as(
    before: Sequence[Segment],
    segments: Sequence[EditedSegment],
    voices: tuple[Sequence[bytes], Sequence[bytes]],
    count: SpeakerCount,
) -> tuple[EditedSegment, ...]:
    """The segments of a part that was transcribed again, split where the speaker changes.

    `before`: the transcript of the whole recording so far, in order. `voices`: in the clips of the recording,
    and in those of the part, as far as they are known. Who speaks at a time in `before` does so again. Where
    nobody does, the voices are compared: it is who says most in that voice, or else a new speaker.
    """
    turns = [(turn, who) for turn in split_turns(before) if (who := speaker_of(turn)) is not None]
    of_part = unpack_all(voices[1])
    if not (turns or of_part.windows):
        return tuple(segments)
    people = {who for _, who in turns}
    spoken = _joined(unpack_all(voices[0]), of_part)
    parts = window_parts(spoken.windows).tolist()
    found = find_speakers(spoken, replace(count, least=max(count.least, len(people)))).tolist()
    speech = [((turn.start, turn.end), who) for turn, who in turns]
    known = joined_spans(span for span, _ in speech)
    shares: Counter[tuple[int, str]] = Counter()
    others: list[tuple[Span, int]] = []
    for (start, end), voice, at in zip(
        parts, found, holders(parts, [turn for turn, _ in turns]), strict=True
    ):
        if at is None:
            others += [(span, voice) for span in subtract_spans([(start, end)], known)]
        else:
            shares[voice, turns[at][1]] += end - start
    unused = numbers(people)
    owners = defaultdict(lambda: next(unused), most_of_each(shares))
    return _spoken_by(segments, sorted([*speech, *((span, owners[voice]) for span, voice in others)]))


def spoken_in(spoken: Sequence[Segment], segments: Sequence[EditedSegment]) -> tuple[EditedSegment, ...]:
    """The segments with the speakers of their time in another transcript, which has some.

    They are split where the speaker changes. A speaker that somebody chose stays.
    """
    turns = [((turn.start, turn.end), who) for turn in split_turns(spoken) if (who := speaker_of(turn))]
    chosen = [segment for segment in segments if segment.speaker_by_hand]
    others = [segment for segment in segments if not segment.speaker_by_hand]
    return tuple(sorted([*chosen, *_spoken_by(others, turns)], key=attrgetter("start")))


def _spoken_by(
    segments: Sequence[EditedSegment], speech: Sequence[tuple[Span, str]]
) -> tuple[EditedSegment, ...]:
    """The segments, split where the speaker changes. `speech`: who speaks when, in order."""
    speakers = list(dict.fromkeys(who for _, who in speech))
    labels = np.array([speakers.index(who) for _, who in speech], np.int64)
    of_words = label_words(segments, np.array([span for span, _ in speech], np.int64), labels)
    return _split(segments, of_words, dict(enumerate(speakers)))


def _joined(voices: Voices, of_part: Voices) -> Voices:
    """The voices of a part of a recording, between those outside of it.

    Those of another model cannot be compared: they are left out.
    """
    if not of_part.windows or voices.embeddings.shape[1] != of_part.embeddings.shape[1]:
        return of_part if of_part.windows else voices
    windows = np.array(voices.windows, np.int64)
    before, after = windows[:, 1] <= of_part.windows[0][0], windows[:, 0] >= of_part.windows[-1][1]
    return Voices(
        (*compress(voices.windows, before), *of_part.windows, *compress(voices.windows, after)),
        np.concatenate([voices.embeddings[before], of_part.embeddings, voices.embeddings[after]]),
    )


def _split(
    segments: Sequence[EditedSegment], labels: Sequence[Sequence[int]], speakers: Mapping[int, str]
) -> tuple[EditedSegment, ...]:
    """The segments, split where the speaker changes. `labels`: from `label_words`."""
    return tuple(
        part
        for segment, of_words in zip(segments, labels, strict=True)
        for part in split(segment, [speakers[label] for label in of_words])
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
