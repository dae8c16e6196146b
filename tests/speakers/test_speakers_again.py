"""Speakers are found again, with what people know of them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.common.errors import InvalidInput
from app.transcript.edited import EditedSegment
from app.transcript.speakers.labelling import SpeakerCount, relabelled, renamed, with_speakers
from tests.speakers.conversation import Conversation, Line, conversation

ANY = SpeakerCount()


@pytest.fixture(scope="module")
def made() -> Conversation:
    """Four speakers by turns: segments 0, 4, … are A's."""
    return conversation([Line(speaker, 8) for speaker in "ABCD" * 5])


@pytest.fixture(scope="module")
def segments(made: Conversation) -> tuple[EditedSegment, ...]:
    transcript = with_speakers(made.transcript, made.packed, ANY)
    found = tuple(segment for segment in transcript.segments if isinstance(segment, EditedSegment))
    assert speakers(found) == ["S1", "S2", "S3", "S4"] * 5
    return found


def speakers(segments: Sequence[EditedSegment]) -> list[str | None]:
    return [segment.speaker for segment in segments]


def by_hand(segments: Sequence[EditedSegment], changes: dict[int, str | None]) -> tuple[EditedSegment, ...]:
    return tuple(
        replace(segment, speaker=changes[number], speaker_by_hand=True) if number in changes else segment
        for number, segment in enumerate(segments)
    )


def test_nothing_else_changes(made, segments):
    assert relabelled(segments, made.packed, ANY) == segments
    again = relabelled(segments, made.packed, SpeakerCount(2, 2))
    assert len(set(speakers(again))) == 2
    assert [replace(segment, speaker=None) for segment in again] == [
        replace(segment, speaker=None) for segment in segments
    ]


def test_texts_may_have_changed_since(made, segments):
    edited = [replace(segment, text="x", words=()) for segment in segments]
    assert relabelled(edited, made.packed, ANY) == tuple(edited)


def test_segments_of_one_speaker_join_their_clusters(made, segments):
    again = relabelled(segments, made.packed, ANY, same=[["0-0", "0-1"]])
    assert speakers(again) == ["S1", "S1", "S2", "S3"] * 5
    assert [segment.speaker_by_hand for segment in again] == [True, True] + [False] * 18


def test_segments_that_differ_are_in_no_cluster_together(made, segments):
    again = relabelled(segments, made.packed, SpeakerCount(1, 3), different=[["0-0", "0-1", "0-2"]])
    assert len({again[0].speaker, again[1].speaker, again[2].speaker}) == len(set(speakers(again))) == 3
    # Two segments of one voice, which someone hears as two speakers.
    apart = relabelled(segments, made.packed, ANY, different=[["0-0", "0-4"]])
    assert apart[0].speaker != apart[4].speaker


def test_labels_set_by_hand_stay_and_lead_the_others(made, segments):
    known = by_hand(segments, {1: "Bea", 6: "S1", 3: "Bea", 8: None})
    again = relabelled(known, made.packed, ANY)
    assert speakers(again)[8] is None
    assert [again[number].speaker for number in (1, 3, 6)] == ["Bea", "Bea", "S1"]
    # B and D are one speaker, and segment 6 is the only one of C's that is A's.
    others = ["S1", "Bea", "S2", "Bea"]
    assert speakers(again) == [*others, "S1", "Bea", "S1", "Bea", None, *others[1:], *others * 2]
    joined = relabelled(known, made.packed, ANY, same=[["0-1", "0-6"]])
    assert {joined[number].speaker for number in (1, 3, 6)} == {"Bea"}


def test_a_segment_that_sounds_like_another_speaker_takes_none_of_the_others_along(made, segments):
    named = renamed(segments, {"S1": "Ann", "S2": "Bea", "S3": "Cem", "S4": "Dora"})
    for given in ({4: "Bea"}, {0: "Bea", 4: "Bea"}):  # segments of Ann
        known = by_hand(named, dict(given))
        assert relabelled(known, made.packed, ANY) == known


def test_names_survive(made, segments):
    named = renamed(segments, {"S1": "Ann", "S4": "Dora"})
    assert speakers(relabelled(named, made.packed, ANY)) == ["Ann", "S1", "S2", "Dora"] * 5
    two = relabelled(named, made.packed, ANY, same=[["0-0", "0-1"], ["0-2", "0-3"]])
    assert speakers(two)[0] == speakers(two)[1] == "Ann"
    assert speakers(two)[2] == speakers(two)[3]
    assert set(speakers(two)) <= {"Ann", "Dora", "S1"}


def test_words_of_another_speaker_inside_a_segment_are_turns(made, segments):
    first, second = segments[:2]
    merged = replace(
        first, end=second.end, text=first.text + second.text, words=(*first.words, *second.words), tokens=()
    )
    again = relabelled([merged, *segments[2:]], made.packed, ANY)
    assert (again[0].speaker, again[0].turns) == ("S1", ((8, "S2"),))
    whole = relabelled(
        [replace(merged, speaker="Ann", speaker_by_hand=True), *segments[2:]], made.packed, ANY
    )
    assert (whole[0].speaker, whole[0].turns) == ("Ann", ())


def test_segments_too_short_for_a_voice_may_be_named(made, segments):
    short = replace(segments[0], id="new", start=0, end=100, words=())
    again = relabelled([short, *segments], made.packed, ANY, different=[["new", "0-0", "0-1"]])
    assert len({segment.speaker for segment in again[:3]}) == 3
    same = relabelled([short, *segments], made.packed, ANY, same=[["new", "0-2"]])
    assert same[0].speaker == same[3].speaker


@pytest.mark.parametrize(
    ("same", "different", "message"),
    [
        ([["0-0", "9-9"]], [], "No segment has the id '9-9'"),
        ([], [["9-9"]], "No segment has the id '9-9'"),
        ([["0-0", "0-1"], ["0-1", "0-2"]], [["0-2", "0-0"]], "have different speakers: they are joined"),
        ([], [["0-3", "0-3"]], "'0-3' and '0-3' cannot have different speakers: they are one"),
        ([], [["0-5", "0-9"]], "someone chose 'Bea' for both"),
        ([], [["0-0", "0-1", "0-2", "0-3"]], "4 speakers are different, and 3 may speak"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(made, segments, same, different, message):
    known = by_hand(segments, {5: "Bea", 9: "Bea"})
    with pytest.raises(InvalidInput, match=message) as raised:
        relabelled(known, made.packed, SpeakerCount(1, 3), same, different)
    assert raised.value.param == ("same" if same and not different else "different")


def test_more_speakers_by_hand_than_may_speak_are_refused(made, segments):
    known = by_hand(segments, {0: "Ann", 1: "Bea", 2: "Cem"})
    with pytest.raises(InvalidInput, match=r"3 speakers are different \(Ann, Bea, Cem are set by hand\)"):
        relabelled(known, made.packed, SpeakerCount(1, 2))
    assert len(set(speakers(relabelled(known, made.packed, SpeakerCount(1, 3))))) == 3


def test_the_order_of_requests_does_not_matter(made, segments):
    one = relabelled(
        segments, made.packed, ANY, [["0-0", "0-1"], ["0-2", "0-3"]], [["0-1", "0-2"], ["0-5", "0-7"]]
    )
    other = relabelled(
        segments, made.packed, ANY, [["0-3", "0-2"], ["0-1", "0-0"]], [["0-7", "0-5"], ["0-2", "0-1"]]
    )
    assert one == other
