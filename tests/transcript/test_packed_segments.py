"""Packed segments read like a list of segments."""

import pickle
from collections.abc import Sequence

import pytest

from app.transcript.edited import EditedSegment
from app.transcript.packed import PackedSegments, pack_result, unpacked
from app.transcript.timeline import ClipResult, Transcript
from workers.messages import Segment, Word

SEGMENTS = [
    Segment(n, n + 1, f" text {n}", (n, n + 1), 0.0, -0.5, 1.2, 0.1, (Word(f" text {n}", n, n + 1, 0.9),))
    for n in range(10)
]


def pack(*parts: Sequence[Segment]) -> PackedSegments:
    packed = PackedSegments()
    for segments in parts:
        packed.extend(segments)
    return packed


@pytest.fixture
def packed() -> PackedSegments:
    return pack(SEGMENTS[:1], SEGMENTS[1:4], (), SEGMENTS[4:])


def test_unpacked_segments_equal_the_packed_ones(packed: PackedSegments) -> None:
    assert list(packed) == SEGMENTS
    assert list(packed) == SEGMENTS, "more than once"
    assert len(packed) == 10
    assert packed == SEGMENTS
    assert packed == pack(SEGMENTS)
    assert packed != SEGMENTS[1:]


@pytest.mark.parametrize("index", [0, 1, 3, 4, 9, -1, slice(2, 6), slice(None, None, -3)])
def test_indexes_and_slices(packed: PackedSegments, index: int | slice) -> None:
    wanted = SEGMENTS[index]
    assert packed[index] == (tuple(wanted) if isinstance(wanted, list) else wanted)


def test_segments_with_more_fields_are_packed_with_them() -> None:
    values = (getattr(SEGMENTS[3], name) for name in Segment.__match_args__)
    edited = EditedSegment(*values, id="0-3", speaker="Ann", turns=((1, None),))
    assert list(pack([edited])) == [edited]


def test_no_segment_beyond_the_last(packed: PackedSegments) -> None:
    assert len(PackedSegments()) == 0
    assert not PackedSegments()
    with pytest.raises(IndexError):
        packed[10]


def test_a_transcript_in_memory_has_unpacked_each_clip_once() -> None:
    placed: list[ClipResult] = []

    def place(result: ClipResult) -> tuple[Segment, ...]:
        placed.append(result)
        return result.segments

    packed, result = PackedSegments(), ClipResult("en", (), tuple(SEGMENTS))
    packed.add(pack_result(result), place)
    transcript = unpacked(Transcript("transcribe", "demo", "en", 10, (), packed))
    assert transcript.segments == result.segments
    assert placed == [result]


def test_an_hour_of_segments_takes_little_memory() -> None:
    words = tuple(Word(f" word{n}", 1000 * n, 1000 * n + 900, 0.5 + n / 1000) for n in range(10))
    packed = PackedSegments()
    for _ in range(120):  # clips, ten segments in each
        packed.extend([Segment(0, 9, " words", tuple(range(10)), 0.0, -0.5, 1.2, 0.1, words)] * 10)
    assert len(pickle.dumps(packed)) < 200_000
