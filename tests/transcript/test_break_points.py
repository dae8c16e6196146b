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


def lines_of(text: str, max_chars: int = 42, language: str = "en") -> tuple[str, ...]:
    units = break_units(text, language, max_chars)
    timed = [
        TimedText(unit, 0, 0, rating)
        for unit, rating in zip(units, rate_breaks(units, language), strict=True)
    ]
    return tuple("".join(unit.text for unit in line).strip() for line in break_lines(timed, max_chars))


def test_a_short_text_is_one_line() -> None:
    assert lines_of(" Good morning.") == ("Good morning.",)
    assert lines_of(" x" * 21) == (("x " * 21).strip(),)


def test_lines_break_after_punctuation() -> None:
    assert lines_of(" When he came home, his mother was not there yet.") == (
        "When he came home,",
        "his mother was not there yet.",
    )


def test_lines_break_before_conjunctions_and_prepositions() -> None:
    assert lines_of(" The little boy is standing alone near the old wooden bridge.") == (
        "The little boy is standing alone",
        "near the old wooden bridge.",
    )


def test_lines_are_balanced() -> None:
    assert lines_of(" aaaa bbbb cccc dddd eeee ffff", 25) == ("aaaa bbbb cccc", "dddd eeee ffff")


def test_a_word_wider_than_a_line_is_not_broken() -> None:
    assert lines_of(" a Donaudampfschifffahrt is", 10) == ("a", "Donaudampfschifffahrt", "is")


def test_chinese_lines_never_begin_with_a_full_stop() -> None:
    assert lines_of("我今天去了北京，天气很好。", 16, "zh") == ("我今天去了北京，", "天气很好。")
    assert lines_of("一二三四五六七八。", 16, "zh") == ("一二三四", "五六七八。")
    assert lines_of("一二三。", 6, "zh") == ("一", "二三。")


def test_right_to_left_text_stays_in_logical_order() -> None:
    text = " السلام عليكم ورحمة الله وبركاته يا أصدقائي"
    assert " ".join(lines_of(text, 24, "ar")) == text.strip()


@given(st.lists(st.text("ab你。", min_size=1, max_size=12), min_size=1, max_size=12), st.integers(4, 30))
def test_lines_hold_all_text_and_keep_their_width(words: list[str], max_chars: int) -> None:
    text = "".join(f" {word}" for word in words)
    lines = lines_of(text, max_chars)
    assert "".join(lines).replace(" ", "") == "".join(words)
    widest_unit = max(width(unit.strip()) for unit in break_units(text))
    assert all(width(line) <= max(max_chars, widest_unit) for line in lines)
    assert all(line == line.strip() and line for line in lines)
