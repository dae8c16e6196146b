"""Who speaks, in corrections: what people say of that counts from then on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from correction_cases import CLIPS, RECORDING, edits_of
from transcript_cases import spoken

from app.common.errors import InvalidInput
from app.transcript.corrections import SegmentEdit, correct
from app.transcript.edited import EditedSegment, with_ids, word_speakers


def by_speakers() -> tuple[EditedSegment, ...]:
    """Two segments by S1; in the first one, S2 says the last two words."""
    first, second = with_ids([spoken(1, 3, "I see the dog"), spoken(3, 5, "The cat sat down")], CLIPS)
    return replace(first, speaker="S1", turns=((2, "S2"),)), replace(second, speaker="S1")


BASE = by_speakers()


def corrected(edits: Sequence[SegmentEdit], base: Sequence[EditedSegment] = BASE) -> list[EditedSegment]:
    return list(correct(base, edits, 1, RECORDING, CLIPS).segments)


def test_an_unedited_transcript_keeps_its_speakers_and_nobody_chose_them() -> None:
    assert word_speakers(BASE[0]) == ["S1", "S1", "S2", "S2"]
    assert correct(BASE, edits_of(BASE), 1, RECORDING, CLIPS) == correct(
        BASE, edits_of(BASE), 2, RECORDING, CLIPS
    )
    assert corrected(edits_of(BASE)) == list(BASE)


@pytest.mark.parametrize("speaker", ["S3", "Ann", None])
def test_another_speaker_is_chosen_and_says_the_whole_segment(speaker: str | None) -> None:
    edits = edits_of(BASE)
    edits[0] = replace(edits[0], speaker=speaker)
    result = correct(BASE, edits, 1, RECORDING, CLIPS)
    first, second = result.segments
    assert first == replace(BASE[0], speaker=speaker, speaker_by_hand=True, turns=())
    assert second == BASE[1]
    assert result.changed == 1


def test_a_chosen_speaker_stays_chosen_in_later_corrections() -> None:
    edits = [replace(edit, speaker="Ann") for edit in edits_of(BASE)]
    chosen = corrected(edits)
    later = [replace(edit, text="Another text") for edit in edits_of(chosen)]
    assert [(part.speaker, part.speaker_by_hand) for part in corrected(later, chosen)] == [("Ann", True)] * 2


def test_a_new_text_ends_the_turns_inside_since_its_words_are_others() -> None:
    edits = edits_of(BASE)
    edits[0] = replace(edits[0], text="I saw the big dog")
    first, _ = corrected(edits)
    assert (first.speaker, first.turns, first.speaker_by_hand) == ("S1", (), False)


def test_new_times_keep_the_turns_inside() -> None:
    edits = edits_of(BASE)
    edits[0] = replace(edits[0], start_ms=1200)
    first, _ = corrected(edits)
    assert (first.turns, first.timed_by_hand, first.speaker_by_hand) == (((2, "S2"),), True, False)


@pytest.mark.parametrize(
    ("speaker", "is_chosen"), [("S1", False), ("S2", False), ("Ann", True), (None, False)]
)
def test_a_part_of_a_split_segment_has_a_chosen_speaker_only_if_it_is_not_one_of_the_whole(
    speaker: str | None, is_chosen: bool
) -> None:
    edits = [
        SegmentEdit(1000, 2000, "I see", BASE[0].id, "S1"),
        SegmentEdit(2000, 3000, "the dog", None, speaker),
        edits_of(BASE)[1],
    ]
    first, second, third = corrected(edits)
    assert (first.speaker, first.turns, first.speaker_by_hand) == ("S1", (), False)
    assert (second.speaker, second.turns, second.speaker_by_hand) == (speaker, (), is_chosen)
    assert third == BASE[1]


def test_the_parts_of_a_segment_with_a_chosen_speaker_have_one_too() -> None:
    base = (replace(BASE[0], turns=(), speaker_by_hand=True),)
    edits = [
        SegmentEdit(1000, 2000, "I see", BASE[0].id, "S1"),
        SegmentEdit(2000, 3000, "the dog", None, "S1"),
    ]
    assert [part.speaker_by_hand for part in corrected(edits, base)] == [True, True]


def test_a_segment_where_nobody_spoke_has_the_speaker_that_was_chosen() -> None:
    edits = [*edits_of(BASE), SegmentEdit(70_000, 71_000, "New", None, "Ann")]
    assert [part.speaker_by_hand for part in corrected(edits)] == [False, False, True]


AT_ONCE = [
    replace(segment, speaker="S1")  # those of S2 before two speakers became one
    for segment in with_ids(
        [spoken(1, 9, "I see the dog"), spoken(3, 4, "Yes"), spoken(5, 6, "The cat"), spoken(9, 10, "No")],
        CLIPS,
    )
]


def test_segments_of_speakers_that_became_one_keep_their_times() -> None:
    edits = edits_of(AT_ONCE)
    assert corrected(edits, AT_ONCE) == AT_ONCE
    edits[1] = replace(edits[1], text="Oh yes")
    edits[3] = replace(edits[3], end_ms=11_000, speaker="Ann")
    result = corrected([replace(edit, speaker="Ann") for edit in edits], AT_ONCE)
    assert [part.text.strip() for part in result] == ["I see the dog", "Oh yes", "The cat", "No"]
    assert [part.start for part in result] == [part.start for part in AT_ONCE]
    assert [part.end for part in result[:3]] == [part.end for part in AT_ONCE[:3]]


@pytest.mark.parametrize(
    ("index", "change", "refused"),
    [(0, {"end_ms": 8000}, 1), (1, {"start_ms": 3100}, 1), (2, {"id": None}, 2), (2, {"end_ms": 9500}, 2)],
)
def test_new_times_may_not_overlap_although_the_old_ones_do(
    index: int, change: dict[str, Any], refused: int
) -> None:
    edits = edits_of(AT_ONCE)
    edits[index] = replace(edits[index], **change)
    with pytest.raises(InvalidInput, match=r"before segments\[0\] of the same speaker") as error:
        corrected(edits, AT_ONCE)
    assert error.value.param == f"segments[{refused}]"
