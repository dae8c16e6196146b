"""A part that is transcribed again has the speakers of the whole recording."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transcript.edited import EditedSegment, with_ids
from app.transcript.speakers.labelling import SpeakerCount, renamed, spoken_as, with_speakers
from app.transcript.speakers.voices import Voices, pack_voices
from tests.speakers.conversation import Conversation, Line, conversation

ANY = SpeakerCount()
SHORT, LONG = 3, 9  # words: half of the lines are too short to say how many people speak in a part
MADE = conversation(
    [Line(speaker, words) for speaker, words in zip("ABCADB" * 4, [LONG, SHORT] * 12, strict=True)]
)
OTHER_MODEL = pack_voices(Voices(MADE.voices.windows, np.eye(len(MADE.voices.windows), 64, dtype=np.float32)))


@pytest.fixture(scope="module")
def before() -> tuple[EditedSegment, ...]:
    return labelled(MADE)


def labelled(made: Conversation) -> tuple[EditedSegment, ...]:
    transcript = with_speakers(made.transcript, made.packed, ANY)
    return tuple(segment for segment in transcript.segments if isinstance(segment, EditedSegment))


def voices_of(start: int, end: int) -> list[bytes]:
    """The voices in a part of the recording."""
    inside = [start <= first and last <= end for first, last in MADE.voices.windows]
    windows = tuple(
        window for window, is_inside in zip(MADE.voices.windows, inside, strict=True) if is_inside
    )
    return [pack_voices(Voices(windows, MADE.voices.embeddings[inside]))] if windows else []


def again(
    before: Sequence[EditedSegment], first: int, last: int, voices: Sequence[bytes] = tuple(MADE.packed)
) -> list[str | None]:
    """Who speaks each word of some lines after they were transcribed again."""
    lines = list(with_ids(MADE.transcript.segments, ()))[first:last]
    found = spoken_as(before, lines, (voices, voices_of(lines[0].start, lines[-1].end)), ANY)
    assert "".join(segment.text for segment in found) == "".join(line.text for line in lines)
    assert not any(segment.turns for segment in found)
    return [segment.speaker for segment in found for _ in segment.words]


def speakers(before: Sequence[EditedSegment], first: int, last: int) -> list[str | None]:
    """Who spoke each of these words before."""
    lines = MADE.transcript.segments[first:last]
    return [
        segment.speaker
        for segment in before
        for word in segment.words
        if lines[0].start <= word.start and word.end <= lines[-1].end
    ]


parts = st.tuples(st.integers(0, 23), st.integers(1, 6)).map(lambda part: (part[0], min(sum(part), 24)))


@given(parts)
def test_everybody_stays_who_they_are_by_any_name(
    before: tuple[EditedSegment, ...], part: tuple[int, int]
) -> None:
    assert again(before, *part) == speakers(before, *part)
    known = renamed(before, {"S1": "Ann", "S4": "S2"})  # two that somebody has joined
    assert again(known, *part) == speakers(known, *part)


@pytest.mark.parametrize("voices", [[], [OTHER_MODEL]])
def test_without_voices_to_compare_it_is_who_spoke_at_that_time(
    before: tuple[EditedSegment, ...], voices: list[bytes]
) -> None:
    assert again(before, 3, 6, voices) == speakers(before, 3, 6)


def test_speakers_that_were_found_or_set_later_need_no_voices_of_the_part(
    before: tuple[EditedSegment, ...],
) -> None:
    lines = list(with_ids(MADE.transcript.segments, ()))[3:6]
    for voices in (MADE.packed, []):
        found = spoken_as(before, lines, (voices, []), ANY)
        assert [segment.speaker for segment in found for _ in segment.words] == speakers(before, 3, 6)
    nobody = [replace(segment, speaker=None) for segment in before]
    assert spoken_as(nobody, lines, (MADE.packed, []), ANY) == tuple(lines), "nobody asked"
    of_part = voices_of(lines[1].start, lines[-1].end)  # those of the first line are too short
    found = spoken_as(nobody, lines[:1], ([], of_part), ANY)
    assert {segment.speaker for segment in found} == {"S1"}, "the client asked, and nobody had spoken so far"


@pytest.mark.parametrize("first", range(22))
def test_where_nobody_had_a_line_the_voices_are_those_of_the_recording(
    before: tuple[EditedSegment, ...], first: int
) -> None:
    start, end = (MADE.transcript.segments[at].start for at in (first, first + 2))
    missed = [segment for segment in before if not start <= segment.start < end]
    assert again(missed, first, first + 2) == speakers(before, first, first + 2)


def test_somebody_new_has_a_new_label(before: tuple[EditedSegment, ...]) -> None:
    of_d = next(segment.speaker for segment in before if MADE.speakers[segment.words[0].text] == "D")
    others = [segment for segment in before if segment.speaker != of_d]
    found = again(others, 3, 6)
    assert found[SHORT:-SHORT] == ["S4"] * LONG
    assert "S4" not in {segment.speaker for segment in others}
    assert [*found[:SHORT], *found[-SHORT:]] == [*speakers(before, 3, 4), *speakers(before, 5, 6)]


def test_of_two_who_spoke_at_the_same_time_one_goes_on(before: tuple[EditedSegment, ...]) -> None:
    both = [*before[:4], replace(before[3], id="x", speaker="Eve"), *before[4:]]
    assert set(again(both, 3, 4)) <= {before[3].speaker, "Eve"}
    assert again(both, 4, 9) == speakers(before, 4, 9)
