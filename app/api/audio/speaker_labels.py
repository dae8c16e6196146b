"""The labels of speakers as some clients expect them. Elsewhere they are `S1`, `S2`, … and names."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count

from app.transcript.edited import EditedSegment
from app.transcript.timeline import Transcript

Label = Callable[[int], str]  # of a speaker by number, from 0

_NUMBERED = re.compile(r"S([1-9][0-9]*)")


def letters(number: int) -> str:
    """As OpenAI has them: `A` to `Z`, then `AA`, `AB`, …"""
    label = ""
    while number >= 0:
        number, digit = divmod(number, 26)
        label = chr(ord("A") + digit) + label
        number -= 1
    return label


def speaker_00(number: int) -> str:
    """As whisperX has them: `SPEAKER_00`, `SPEAKER_01`, …"""
    return f"SPEAKER_{number:02}"


def with_labels(transcript: Transcript, label: Label) -> Transcript:
    """The transcript with `label` instead of `S1`, `S2`, …; names stay."""
    edited = [segment for segment in transcript.segments if isinstance(segment, EditedSegment)]
    turns = {speaker for segment in edited for _, speaker in segment.turns}
    labels = _labels(turns | {segment.speaker for segment in edited}, label)

    def labelled(segment: EditedSegment) -> EditedSegment:
        turns = tuple((first, labels.get(speaker, speaker)) for first, speaker in segment.turns)
        return replace(segment, speaker=labels.get(segment.speaker, segment.speaker), turns=turns)

    segments = (
        labelled(segment) if isinstance(segment, EditedSegment) else segment
        for segment in transcript.segments
    )
    return replace(transcript, segments=tuple(segments))


def _labels(speakers: Iterable[str | None], label: Label) -> dict[str | None, str]:
    """The label of each numbered speaker, in order of the numbers; none is another speaker's name."""
    numbers = {
        speaker: int(found[1]) for speaker in speakers if (found := _NUMBERED.fullmatch(speaker or ""))
    }
    names = {speaker for speaker in speakers if speaker not in numbers}
    free = (text for number in count() if (text := label(number)) not in names)
    return dict(zip(sorted(numbers, key=lambda speaker: numbers[speaker]), free, strict=False))
