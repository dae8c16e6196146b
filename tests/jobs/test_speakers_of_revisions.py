"""Transcripts with speakers on their way into the database and back, and corrections of speakers alone."""

import json
import zlib
from dataclasses import replace
from typing import Any

from app.jobs.corrections import Segments, apply_edits
from app.jobs.serialization import (
    PackedTranscript,
    identified,
    pack_transcript,
    summary,
    unpack_transcript,
)
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
    spoken, plain = (
        summary(replace(TRANSCRIPT, segments=segments)) for segments in (SEGMENTS, TRANSCRIPT.segments)
    )
    assert (plain.speakers, spoken.speakers) == ([], ["S1", "S2"])
    assert spoken._replace(speakers=[]) == plain


def test_a_speaker_set_by_hand_is_stored_as_such() -> None:
    edits = [
        SegmentEdit(milliseconds(part.start), milliseconds(part.end), part.text, part.id, "Ann")
        for part in SEGMENTS
    ]
    correction, _ = apply_edits(BASE, edits)
    assert correction is not None
    stored = unpack_transcript(correction.transcript.content)
    assert [(part.speaker, part.speaker_by_hand, part.turns) for part in identified(stored)] == [
        ("Ann", True, ())
    ] * 2
    assert stored.samples == 5 * SAMPLE_RATE
