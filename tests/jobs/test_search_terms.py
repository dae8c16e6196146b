"""The words of texts and queries."""

import unicodedata
from itertools import groupby
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobs.search_terms import MAX_BYTES, MAX_WORD_CHARS, query_words, text_words
from app.transcript.text.scripts import MOST_MARKS
from tests.cases import read_cases

TABLES = read_cases("search")


def matches(query: str, text: str) -> bool:
    """Whether a text matches a query, as the databases decide it."""
    words = text_words(text).split(" ")
    return all(any(word.startswith(term) for word in words) for term in query_words(query))


@pytest.mark.parametrize(("text", "words"), TABLES["words"])
def test_words_of_a_text(text: str, words: str) -> None:
    assert text_words(text) == words
    assert text_words(unicodedata.normalize("NFD", text)) == words


@pytest.mark.parametrize(("query", "text"), TABLES["matches"])
def test_matches(query: str, text: str) -> None:
    assert matches(query, text)


@pytest.mark.parametrize(("query", "text"), TABLES["no_matches"])
def test_does_not_match(query: str, text: str) -> None:
    assert not matches(query, text)


@given(st.text(), st.text(), st.text())
def test_every_text_is_found_by_its_own_words_and_these_are_no_syntax(
    before: str, text: str, after: str
) -> None:
    assert matches(text, f"{before} {text} {after}")
    for word in query_words(text):
        assert word
        assert all(unicodedata.category(char)[0] in "LNM" for char in word)


@given(st.text(st.sampled_from("今天気がภาษไ"), min_size=1), st.text(st.sampled_from("今天気がภาษไ")))
def test_any_part_of_a_text_without_spaces_finds_it(part: str, other: str) -> None:
    assert matches(part, other + part + other)


def test_marks_in_a_row_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting them takes the square of the time: a megabyte of them would take hours."""
    longest = 0
    normalize = unicodedata.normalize

    def spy(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
        nonlocal longest
        is_mark = [unicodedata.combining(char) > 0 for char in text]
        longest = max(longest, *(len([*run]) for has_marks, run in groupby(is_mark) if has_marks), 0)
        return normalize(form, text)

    with monkeypatch.context() as patches:
        patches.setattr(unicodedata, "normalize", spy)
        for marks in ("\u0327\u0301", "ุ่", "\u0f73", "\u0344\u0327"):
            assert text_words(f"talk a{marks * 5000} ก{marks * 5000}").startswith("talk ")
    assert 2 <= longest <= 3 * MOST_MARKS
    assert text_words("Việt Nam") == "viet nam"


def test_limits() -> None:
    long = "a" * 1000
    assert text_words(long) == "a" * MAX_WORD_CHARS
    assert matches(long, long)
    words = text_words("name.mp3 " + " ".join(f"{number}é中文" for number in range(100_000)))
    assert MAX_BYTES - 100 < len(words.encode()) <= MAX_BYTES
    assert words.startswith("name mp3 0e 中文 文 1e 2e")
