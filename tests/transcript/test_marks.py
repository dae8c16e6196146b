"""Marks in the text of segments: edits keep them, and cues begin and go on where they say."""

from dataclasses import replace
from itertools import pairwise

import pytest
from correction_cases import CLIPS, RECORDING, edits_of
from hypothesis import given
from test_hand_times import corrected
from transcript_cases import ALL, STYLE, samples, segment, spoken, styles

from app.common.errors import InvalidInput
from app.transcript.corrections import SegmentEdit, correct
from app.transcript.cues.lines import CueStyle
from app.transcript.cues.problems import problems
from app.transcript.cues.shaping import shape_cues
from app.transcript.edited import (
    EditedSegment,
    Mark,
    count_letters,
    listed_marks,
    split_turns,
    with_ids,
)
from workers.messages import Segment

SIGNS: dict[str, Mark] = {"|": "break", "+": "join"}


def with_signs(*texts: str) -> tuple[list[str], list[tuple[tuple[int, Mark], ...]]]:
    """The texts without `|` and `+`, and the marks that these stand for, by characters."""
    bare, marks = [], []
    for text in texts:
        places: list[tuple[int, Mark]] = []
        plain = ""
        for char in text:
            if char in SIGNS:
                places.append((len(plain), SIGNS[char]))
            else:
                plain += char
        bare.append(plain)
        marks.append(tuple(places))
    return bare, marks


def signed(part: EditedSegment) -> str:
    """The reverse."""
    text = part.text.strip()
    for at, kind in reversed(listed_marks(part)):
        sign = next(sign for sign, mark in SIGNS.items() if mark == kind)
        text = text[:at] + sign + text[at:]
    return text


def marked(*parts: Segment | EditedSegment) -> tuple[EditedSegment, ...]:
    """Segments whose text may have signs: `spoken` words, of which none is a sign."""
    bare, marks = with_signs(*(part.text.strip() for part in parts))
    plain = [
        spoken(part.start / 16_000, part.end / 16_000, text) for part, text in zip(parts, bare, strict=True)
    ]
    base = tuple(with_ids(plain, CLIPS))
    edits = [replace(edit, marks=places) for edit, places in zip(edits_of(base), marks, strict=True)]
    return correct(base, edits, 1, RECORDING, CLIPS).segments


BASE = marked(segment(0, 4, "One |two three +four"), segment(4, 8, "|five six seven"))


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (["One two three four", "five six seven"], ["One |two three +four", "|five six seven"]),
        (["One, er, two three four", "five six seven"], ["One, er, |two three +four", "|five six seven"]),
        (["One tow three four", "fife six seven"], ["One |tow three +four", "|fife six seven"]),
        (["One three four", "six seven"], ["One |three +four", "|six seven"]),
        (["two three", "four five six seven"], ["|two three", "+four |five six seven"]),
        (["Entirely other", "text"], ["Entirely other", "text"]),
        (["One two three four", "text"], ["One |two three +four", "|text"]),
    ],
)
def test_edits_keep_the_marks_that_they_do_not_touch(texts: list[str], kept: list[str]) -> None:
    edits = [replace(edit, text=text) for edit, text in zip(edits_of(BASE), texts, strict=True)]
    assert [signed(part) for part in correct(BASE, edits, 2, RECORDING, CLIPS).segments] == kept


def test_marks_of_a_transcript_without_words() -> None:
    wordless = [replace(part, words=()) for part in BASE]
    edits = [replace(edits_of(BASE)[0], text="One tow three four"), edits_of(BASE)[1]]
    first, second = correct(wordless, edits, 2, RECORDING, CLIPS).segments
    assert (signed(first), signed(second)) == ("One |tow three +four", "|five six seven")
    assert not first.words


def test_joined_and_split_segments_keep_them() -> None:
    (joined,) = correct(
        BASE, [SegmentEdit(0, 8000, "One two three four five six seven", "0-0")], 2, RECORDING, CLIPS
    ).segments
    assert signed(joined) == "One |two three +four |five six seven"
    halves = [SegmentEdit(0, 2000, "One two three", "0-0"), SegmentEdit(2000, 8000, "four five six seven")]
    split = correct([joined], halves, 3, RECORDING, CLIPS).segments
    assert [signed(part) for part in split] == ["One |two three", "+four |five six seven"]


@pytest.mark.parametrize(
    ("text", "marks", "kept"),
    [
        ("One two", ((3, "break"),), "One |two"),  # a space
        ("One two", ((6, "join"),), "One +two"),  # inside a word
        ("One two", ((4, "join"), (0, "break"), (5, "break")), "|One |two"),
        ("𝄞 One two", ((2, "join"),), "𝄞 +One two"),  # code points
        ("今日は晴れ。", ((2, "break"),), "今日|は晴れ。"),
        ("  One two ", ((4, "break"),), "One |two"),
        ("One two", (), "One two"),
    ],
)
def test_marks_stand_before_words(text: str, marks: tuple[tuple[int, Mark], ...], kept: str) -> None:
    (part,) = correct((), [SegmentEdit(0, 4000, text, marks=marks)], 1, RECORDING, CLIPS).segments
    assert signed(part) == kept


def test_a_mark_after_the_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has a mark at 7, and its text has 7 characters") as caught:
        correct((), [SegmentEdit(0, 4000, "One two", marks=((7, "join"),))], 1, RECORDING, CLIPS)
    assert caught.value.param == "segments[0]"


def test_marks_sent_back_with_both_parts_of_a_segment_stay_with_their_words() -> None:
    (base,) = marked(segment(0, 4, "One two three |four"))
    (whole,) = edits_of([base])
    parts = [replace(whole, end_ms=2000, text="One two"), replace(whole, start_ms=2000, text="three four")]
    corrected = correct([base], parts, 2, RECORDING, CLIPS).segments
    assert [listed_marks(part) for part in corrected] == [(), ((6, "break"),)]


def test_a_mark_alone_is_a_change() -> None:
    edits = [replace(edit, marks=()) for edit in edits_of(BASE)]
    without = correct(BASE, edits, 2, RECORDING, CLIPS)
    assert without.changed == 2
    assert [part.words for part in without.segments] == [part.words for part in BASE]


def shown(*parts: EditedSegment, style: CueStyle = STYLE) -> list[str]:
    return [" / ".join(cue.lines) for cue in shape_cues(parts, ALL, style, "en", RECORDING)]


SENTENCES = "We left early. It was cold that day."


def test_cues_begin_where_a_break_is_and_go_on_over_a_join() -> None:
    assert shown(*marked(segment(0, 6, SENTENCES))) == ["We left early.", "It was cold that day."]
    assert shown(*marked(segment(0, 6, "We left early. +It was cold that day."))) == [
        "We left early. It was cold that day."
    ]
    assert shown(*marked(segment(0, 6, "We left |early. It was cold |that day."))) == [
        "We left",
        "early. It was cold",
        "that day.",
    ]


def test_a_join_crosses_segments_pauses_and_people() -> None:
    parts = (segment(0, 2, "We left early"), segment(4, 6, "+and it was cold."))
    assert shown(*marked(*parts)) == ["We left early and it was cold."]
    assert len(shown(*marked(parts[0], segment(4, 6, "and it was cold.")))) == 2
    people = [replace(part, speaker=who) for part, who in zip(marked(*parts), ("Ann", "Bob"), strict=True)]
    assert shown(*people) == ["-We left early / -and it was cold."]
    apart = [replace(part, marks=((0, "break"),)) for part in people]
    assert shown(*apart) == ["We left early", "and it was cold."]


def test_limits_are_harder_than_a_join() -> None:
    parts = marked(segment(0, 2, "We left early"), segment(8, 9, "+and it was cold."))
    cues = list(shape_cues(parts, ALL, STYLE, "en", RECORDING))
    (problem,) = problems(cues[1], STYLE, cues[0], None)
    assert (problem.limit, problem.value, problem.cures) == ("join", None, ("join", "shorten"))
    assert not list(problems(cues[0], STYLE, None, cues[1]))


def test_a_break_may_part_a_phrase_of_a_script_without_spaces() -> None:
    base = correct(
        (), [SegmentEdit(0, 4000, "新しい本を読みました。", marks=((1, "break"),))], 1, RECORDING, CLIPS
    )
    cues = list(shape_cues(base.segments, ALL, STYLE, "ja", RECORDING))
    assert [cue.lines for cue in cues] == [("新",), ("しい本を読みました。",)]


@given(corrected(), styles)
def test_every_break_begins_a_cue_and_every_letter_has_its_place(
    segments: tuple[EditedSegment, ...], style: CueStyle
) -> None:
    cues = list(shape_cues(segments, ALL, style, "en", RECORDING))
    begins = {(cue.units[0][0].segment, cue.units[0][0].letters[0]) for cue in cues}
    places: dict[str, list[tuple[int, int]]] = {}
    for cue in cues:
        for unit in (unit for line in cue.units for unit in line):
            places.setdefault(unit.segment, []).append(unit.letters)
    for part in segments:
        breaks = {(part.id, letter) for letter, mark in part.marks if mark == "break"}
        assert breaks <= begins
        spans = sorted(places[part.id])
        assert (spans[0][0], spans[-1][1]) == (0, count_letters(part.text))
        assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_the_turns_of_a_segment_count_its_letters_on() -> None:
    (part,) = with_ids([spoken(0, 4, "One two three four")], CLIPS)
    part = replace(part, speaker="A", turns=((2, "B"),), marks=((6, "break"), (11, "break")))
    assert [turn.letters_before for turn in split_turns([part])] == [0, 6]
    cues = list(shape_cues([part], ALL, STYLE, "en", samples(10)))
    assert [cue.lines for cue in cues] == [("One two",), ("three",), ("four",)]
