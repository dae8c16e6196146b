"""Cues of several speakers: whose words are on which line, and when."""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import ALL, STYLE, letters, samples, segment, shown_cues, span, spoken, words_by_speaker

from app.transcript.cues.lines import CueStyle
from app.transcript.cues.shaping import shape_cues
from app.transcript.cues.timing import Cue
from app.transcript.edited import EditedSegment, speaker_of
from app.transcript.text.scripts import width
from app.transcript.text.speaker_text import SpeakerPrefix
from workers.messages import SAMPLE_RATE, Segment

NAMES = SpeakerPrefix()
WHISPERX = SpeakerPrefix("[{name}]: ", {"Ann": "SPEAKER_00", "Bob": "SPEAKER_01"}, is_repeated=True)


def by(speaker: str | None, part: Segment) -> EditedSegment:
    values = {field.name: getattr(part, field.name) for field in fields(Segment)}
    return EditedSegment(**values, speaker=speaker)


def ann(start: float, end: float, text: str) -> EditedSegment:
    return by("Ann", spoken(start, end, text))


def bob(start: float, end: float, text: str) -> EditedSegment:
    return by("Bob", spoken(start, end, text))


def cues_of(
    *segments: Segment, prefix: SpeakerPrefix | None = None, style: CueStyle = STYLE, language: str = "en"
) -> list[Cue]:
    return list(shape_cues(segments, ALL, style, language, samples(1000), prefix))


def shaped(
    *segments: Segment, prefix: SpeakerPrefix | None = None, style: CueStyle = STYLE, language: str = "en"
) -> str:
    return shown_cues(cues_of(*segments, prefix=prefix, style=style, language=language))


QUICK = (ann(0, 0.9, "Are you coming?"), bob(1, 1.6, "In a minute."))
SLOW = (ann(0, 2, "I think that you"), bob(2, 4, "should come with us."))
MONOLOGUE = ann(
    0, 9, "Nobody knows how these machines work inside, and yet we all use them every single day."
)


def test_a_change_of_speaker_ends_a_cue_and_a_sentence() -> None:
    assert shaped(*SLOW) == dedent(
        """\
        0.00 1.92 I think that you
        2.00 4.00 should come with us.
        """
    )
    assert shaped(by(None, SLOW[0]), by(None, SLOW[1])) == "0.00 4.00 I think that you should come with us.\n"


def test_two_quick_turns_share_a_cue_with_a_line_each() -> None:
    (cue,) = cues_of(*QUICK)
    assert cue.lines == ("-Are you coming?", "-In a minute.")
    assert cue.speakers == ("Ann", "Bob")


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("fr", ("- Are you coming?", "- In a minute.")),
        ("nl", ("Are you coming?", "-In a minute.")),
        ("bg", ("Are you coming?", "- In a minute.")),
        ("xx", ("-Are you coming?", "-In a minute.")),
    ],
)
def test_dashes_follow_the_language(language: str, lines: tuple[str, ...]) -> None:
    (cue,) = cues_of(*QUICK, language=language)
    assert cue.lines == lines


def test_a_dash_of_the_text_is_not_doubled() -> None:
    parts = ann(0, 0.9, "– Are you coming?"), bob(1, 1.6, "In a minute.")
    assert shaped(*parts) == "0.00 1.60 – Are you coming? | -In a minute.\n"


def test_a_dash_before_a_negative_number_stands_apart() -> None:
    parts = ann(0, 0.9, "-5 degrees?"), bob(1, 1.6, "In a minute.")
    assert shaped(*parts) == "0.00 1.60 - -5 degrees? | -In a minute.\n"


@pytest.mark.parametrize("style", [replace(STYLE, max_lines=1), replace(STYLE, max_line_chars=14)])
def test_turns_that_have_no_line_each_do_not_share_a_cue(style: CueStyle) -> None:
    assert all(len(set(cue.speakers)) == 1 for cue in cues_of(*QUICK, style=style))


def test_the_description_of_a_sound_shares_no_cue() -> None:
    parts = (ann(0, 0.5, "[SIGHS]"), bob(0.6, 1, "What?"))
    assert [cue.speakers for cue in cues_of(*parts)] == [("Ann",), ("Bob",)]


def test_people_who_speak_at_once_are_one_cue() -> None:
    parts = (
        ann(0, 3, "I never said that."),
        bob(1, 4, "You did say it to me."),
        ann(4, 6, "No, not at all."),
    )
    assert shaped(*parts, prefix=NAMES) == dedent(
        """\
        0.00 3.92 Ann: I never said that. | Bob: You did say it to me.
        4.00 6.00 Ann: No, not at all.
        """
    )


def test_a_word_within_a_monologue_joins_a_short_cue_and_follows_a_long_one() -> None:
    assert shaped(ann(0, 2, "Nobody knows how."), bob(1, 1.3, "Yes.")) == (
        "0.00 2.00 -Nobody knows how. | -Yes.\n"
    )
    long = (MONOLOGUE, bob(2, 2.3, "Yes."), ann(9, 11, "Good night, everybody."))
    texts = [" ".join(cue.lines) for cue in cues_of(*long)]
    at = texts.index("Yes.")
    cues = cues_of(*long)
    assert cues[at - 1].units[-1][-1].end <= cues[at].start < cues[at].end <= cues[at + 1].start
    assert cues[at].end - cues[at].start >= STYLE.min_samples


def test_a_sentence_goes_on_around_an_interjection() -> None:
    parts = (ann(0, 2, "I think that"), bob(1.5, 1.8, "Yes."), ann(2.1, 4, "we should go home now."))
    (sentence,) = [cue for cue in cues_of(*parts, style=replace(STYLE, max_lines=1)) if "Ann" in cue.speakers]
    assert sentence.lines == ("I think that we should go home now.",)


def test_names_stand_where_the_speaker_changes_and_count_for_the_line() -> None:
    parts = (ann(0, 3, "It is late."), ann(4, 6, "We go home."), bob(7, 9, "Good night."))
    assert [cue.lines for cue in cues_of(*parts, prefix=NAMES)] == [
        ("Ann: It is late.",), ("We go home.",), ("Bob: Good night.",)
    ]  # fmt: skip
    wide = ann(0, 3, "x" * 20 + " " + "y" * 20)
    assert [cue.lines for cue in cues_of(wide)] == [("x" * 20 + " " + "y" * 20,)]
    assert [cue.lines for cue in cues_of(wide, prefix=NAMES)] == [("Ann: " + "x" * 20, "y" * 20)]


def test_names_for_programs_stand_in_every_cue_and_are_not_shortened() -> None:
    parts = (ann(0, 3, "It is late."), ann(4, 6, "We go home."), bob(7, 9, "Good night."))
    style = replace(STYLE, max_line_chars=16)
    lines = [cue.lines[0] for cue in cues_of(*parts, prefix=WHISPERX, style=style)]
    assert all(line.startswith(("[SPEAKER_00]: ", "[SPEAKER_01]: ")) for line in lines)


def test_a_long_name_is_shortened_to_half_a_line() -> None:
    ((line,),) = (cue.lines for cue in cues_of(by("A" * 100, spoken(0, 2, "Good night.")), prefix=NAMES))
    assert line == "A" * 18 + "…: Good night."
    assert width(line.partition(": ")[0]) < 21


@pytest.mark.parametrize(
    ("name", "text"), [("Ann:\n1", "Ann: 1: "), ("\u202eAnn\u2066", "Ann: "), ("\x00\u2028", ""), (" ", "")]
)
def test_names_stand_on_one_line_and_keep_their_direction(name: str, text: str) -> None:
    assert NAMES.of(name) == text


def test_a_segment_of_several_speakers_is_split_between_words() -> None:
    words = spoken(0, 4, "I am late. So am I.").words
    one = replace(by("Ann", segment(0, 4, " I am late. So am I.")), words=words, turns=((3, "Bob"),))
    assert shaped(one, prefix=NAMES) == dedent(
        """\
        0.00 1.92 Ann: I am late.
        2.00 4.00 Bob: So am I.
        """
    )
    by_hand = cues_of(replace(one, timed_by_hand=True))
    assert [(cue.start, cue.end) for cue in by_hand] == [span(0, 2), span(2, 4)]


styles = st.builds(
    CueStyle,
    max_line_chars=st.integers(20, 42),
    max_lines=st.integers(1, 3),
    max_cps=st.floats(10, 30),
    min_samples=st.integers(samples(0.1), samples(2)),
    max_samples=st.integers(samples(2), samples(10)),
    min_gap=st.integers(0, samples(0.3)),
    fps=st.sampled_from([None, 25]),
)
WORDS = st.sampled_from(["the", "end.", "of", "a,", "and", "But", "York?", "extraordinary", "when", "I"])


@st.composite
def conversations(draw: st.DrawFn) -> list[EditedSegment]:
    """Segments of up to three speakers, ordered by their start; only those of different ones overlap."""
    parts: list[EditedSegment] = []
    for speaker in ("Ann", "Bob", None):
        at = draw(st.floats(0, 3))
        for text in draw(st.lists(st.lists(WORDS, min_size=1, max_size=15).map(" ".join), max_size=4)):
            end = at + draw(st.floats(0.2, 6))
            part = by(speaker, spoken(at, end, text))
            if speaker and len(part.words) > 3 and draw(st.booleans()):
                part = replace(part, turns=((2, draw(st.sampled_from(["Ann", "Bob", "Eve"]))),))
            parts.append(part)
            at = end + draw(st.sampled_from([0, 0.2, 0.6, 4]))
    return sorted(parts, key=lambda part: part.start)


@given(conversations(), styles, st.sampled_from([None, NAMES, WHISPERX]))
def test_any_conversation_makes_valid_cues(
    parts: Sequence[EditedSegment], style: CueStyle, prefix: SpeakerPrefix | None
) -> None:
    cues = cues_of(*parts, style=style, prefix=prefix)
    for cue in cues:
        assert 0 <= cue.start < cue.end
        assert cue.end - cue.start <= style.max_samples + SAMPLE_RATE // 25
        assert len(cue.lines) <= style.max_lines
        assert len(set(cue.speakers)) <= 2
        assert len(set(cue.speakers)) == 1 or len(cue.lines) == 2
        assert all(unit.speaker == line[0].speaker for line in cue.units for unit in line)
        if prefix is None:
            assert all(width(line) <= style.max_line_chars for line in cue.lines)
    for before, after in pairwise(cues):
        assert after.start - before.end >= (style.min_gap if style.fps is None else 1)
    if not any(part.turns for part in parts) and prefix is None:
        wanted: dict[str | None, str] = {}
        for part in parts:
            wanted[part.speaker] = wanted.get(part.speaker, "") + letters([part.text])
        assert words_by_speaker(cues) == wanted


@given(conversations(), styles)
def test_without_speakers_nothing_changes(parts: Sequence[EditedSegment], style: CueStyle) -> None:
    nobody = [replace(part, speaker=None, turns=()) for part in parts]
    plain = [Segment(*(getattr(part, field.name) for field in fields(Segment))) for part in parts]
    assert cues_of(*nobody, style=style, prefix=NAMES) == cues_of(*plain, style=style)
    assert all(speaker_of(part) is None for part in plain)
