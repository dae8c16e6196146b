import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import BREAKS

from app.transcript.cues.lines import break_lines
from app.transcript.cues.timed_text import TimedText
from app.transcript.text.breaks import Break, break_between, break_units, may_join, rate_breaks
from app.transcript.text.scripts import width


@pytest.mark.parametrize(("text", "columns"), BREAKS["widths"])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(("text", "expected"), BREAKS["units"])
def test_units(text: str, expected: list[str]) -> None:
    assert break_units(text) == expected


@given(st.text())
def test_units_hold_all_of_the_text(text: str) -> None:
    assert "".join(break_units(text)) == text


@pytest.mark.parametrize(("before", "after", "language", "expected"), BREAKS["ratings"])
def test_quality_of_breaks(before: str, after: str, language: str, expected: str) -> None:
    assert break_between(before, after, language) is Break[expected]


def test_a_name_is_kept_together_but_not_the_first_word_of_a_sentence() -> None:
    assert break_between(" Marie", " Curie", "en", starts_sentence=False) is Break.POOR
    assert break_between(" Yesterday", " Marie", "en", starts_sentence=True) is Break.PLAIN
    assert break_between(" grünen", " Wald", "de", starts_sentence=False) is Break.PLAIN
    assert break_between(" Haus", " Wald", "de", starts_sentence=False) is Break.PLAIN
    assert break_between(" Haben", " Sie", "de", starts_sentence=True) is Break.PLAIN
    assert break_between(" Anna", " I", "en", starts_sentence=False) is Break.PLAIN


@pytest.mark.parametrize(("text", "language", "phrases"), BREAKS["phrases"])
def test_phrases_of_scripts_without_spaces(text: str, language: str, phrases: list[str]) -> None:
    assert break_units(text, language) == phrases


def test_a_phrase_wider_than_a_line_is_broken_inside() -> None:
    units = break_units("作り続けている。", "ja", max_width=8)
    assert len(units) > 1
    assert all(width(unit) <= 8 for unit in units)


@pytest.mark.parametrize(("text", "expected"), BREAKS["dashes_and_notes"])
def test_dashes_and_notes_belong_to_a_word(text: str, expected: list[str]) -> None:
    assert break_units(text) == expected


def test_texts_join_only_if_no_space_is_missing() -> None:
    assert may_join(" one", " two")
    assert may_join("你好", "世界")
    assert not may_join("one", "two")


def lines_of(text: str, max_chars: int, language: str = "en") -> tuple[str, ...]:
    units = break_units(text, language, max_chars)
    timed = [
        TimedText(unit, 0, 0, rating)
        for unit, rating in zip(units, rate_breaks(units, language), strict=True)
    ]
    return tuple("".join(unit.text for unit in line).strip() for line in break_lines(timed, max_chars))


@pytest.mark.parametrize(("text", "columns", "language", "lines"), BREAKS["lines"])
def test_lines(text: str, columns: int, language: str, lines: list[str]) -> None:
    assert lines_of(text, columns, language) == tuple(lines)
