"""Transcripts with speakers on their way into the database and back, and corrections of speakers alone."""

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest

from app.errors import InvalidInput
from app.jobs.corrections import Segments, apply_edits, relabel, restore
from app.jobs.serialization import (
    PackedTranscript,
    identified,
    pack_transcript,
    pack_with_words,
    unpack_transcript,
)
from app.speakers.labelling import SpeakerCount
from app.speakers.relabelling import SpeakerCorrection
from app.transcript.corrections import SegmentEdit
from app.transcript.formats.common import milliseconds
from tests.jobs.samples import TRANSCRIPT
from workers.messages import SAMPLE_RATE


def with_speakers() -> Segments:
    first, second = identified(TRANSCRIPT)
    return (
        replace(first, speaker="S1", turns=((1, "S2"),)),
        replace(second, speaker="S1", speaker_by_hand=True, timed_by_hand=True),
    )


SEGMENTS = with_speakers()
BASE = PackedTranscript(4, pack_transcript(replace(TRANSCRIPT, segments=SEGMENTS)))


def lines(packed: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in zlib.decompress(packed).split(b"\n")[1:]]


def test_speakers_are_unpacked_as_they_were() -> None:
    assert unpack_transcript(BASE.content).segments == SEGMENTS
    assert identified(unpack_transcript(BASE.content)) == SEGMENTS


def test_what_no_segment_has_takes_no_space() -> None:
    plain = tuple(replace(segment, speaker="S1", turns=(), speaker_by_hand=False) for segment in SEGMENTS)
    stored = lines(pack_transcript(replace(TRANSCRIPT, segments=plain)))
    assert not {"turns", "speaker_by_hand"} & {name for line in stored for name in line}
    assert {line["speaker"] for line in stored} == {"S1"}


def test_transcripts_of_a_version_without_these_fields_are_read() -> None:
    head, *rest = zlib.decompress(BASE.content).split(b"\n")
    new = ("turns", "speaker_by_hand")
    old = [{name: value for name, value in json.loads(line).items() if name not in new} for line in rest]
    content = zlib.compress(b"\n".join([head, *(json.dumps(line).encode() for line in old)]))
    expected = tuple(replace(segment, turns=(), speaker_by_hand=False) for segment in SEGMENTS)
    assert unpack_transcript(content).segments == expected


def test_a_job_is_found_by_the_same_words_with_and_without_speakers() -> None:
    spoken = pack_with_words(replace(TRANSCRIPT, segments=SEGMENTS), "talk.flac")[1]
    assert spoken == pack_with_words(TRANSCRIPT, "talk.flac")[1]


def test_speakers_are_renamed_without_voices() -> None:
    correction, segments = relabel(BASE, [], SpeakerCorrection(names={"S1": "Ann"}), "talk.flac")
    assert [(segment.speaker, segment.turns) for segment in segments] == [("Ann", ((1, "S2"),)), ("Ann", ())]
    assert correction is not None
    assert correction.transcript.revision == 5
    assert unpack_transcript(correction.transcript.content).segments == segments
    assert (correction.changed, correction.words) == (2, pack_with_words(TRANSCRIPT, "talk.flac")[1])


def test_the_same_names_are_no_correction() -> None:
    names = {"S1": "S1", "S2": "S2"}
    assert relabel(BASE, [], SpeakerCorrection(names=names), "talk.flac") == (None, SEGMENTS)


def test_speakers_are_found_again_before_they_are_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def relabelled(segments: Segments, *how: object) -> Segments:
        asked.append(how)
        return (segments[0], replace(segments[1], speaker="S3"))

    monkeypatch.setattr("app.speakers.labelling.relabelled", relabelled)
    wanted = SpeakerCorrection(SpeakerCount(2, 2), (("0-0", "0-1"),), (("0-0",),), {"S3": "Ann"})
    correction, segments = relabel(BASE, [b"voices"], wanted, "talk.flac")
    assert asked == [([b"voices"], SpeakerCount(2, 2), (("0-0", "0-1"),), (("0-0",),))]
    assert [segment.speaker for segment in segments] == ["S1", "Ann"]
    assert correction is not None
    assert correction.changed == 1
    relabel(BASE, [b"voices"], SpeakerCorrection(same=(("0-0", "0-1"),)), "talk.flac")
    assert asked[1][1] == SpeakerCount(), "the voices decide how many there are"


def test_a_speaker_that_nobody_has_cannot_be_renamed() -> None:
    with pytest.raises(InvalidInput, match="S9"):
        relabel(BASE, [], SpeakerCorrection(names={"S9": "Ann"}), "talk.flac")


def test_an_earlier_revision_brings_back_its_speakers() -> None:
    renamed, _ = relabel(BASE, [], SpeakerCorrection(names={"S1": "Ann"}), "talk.flac")
    assert renamed is not None
    correction, segments = restore(renamed.transcript, BASE, "talk.flac")
    assert segments == SEGMENTS
    assert correction is not None
    assert (correction.changed, correction.transcript.revision) == (2, 6)
    assert unpack_transcript(correction.transcript.content).segments == SEGMENTS


def test_a_speaker_set_by_hand_is_stored_as_such() -> None:
    edits = [
        SegmentEdit(milliseconds(part.start), milliseconds(part.end), part.text, part.id, "Ann")
        for part in SEGMENTS
    ]
    correction, _ = apply_edits(BASE, edits, "talk.flac")
    assert correction is not None
    stored = unpack_transcript(correction.transcript.content)
    assert [(part.speaker, part.speaker_by_hand, part.turns) for part in identified(stored)] == [
        ("Ann", True, ())
    ] * 2
    assert stored.samples == 5 * SAMPLE_RATE
