"""The words of texts and queries."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobs.search_terms import MAX_BYTES, MAX_WORD_CHARS, query_words, text_words
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


def test_limits() -> None:
    long = "a" * 1000
    assert text_words(long) == "a" * MAX_WORD_CHARS
    assert matches(long, long)
    words = text_words("name.mp3", " ".join(f"{number}é中文" for number in range(100_000)))
    assert MAX_BYTES - 100 < len(words.encode()) <= MAX_BYTES
    assert words.startswith("name mp3 0e 中文 文 1e 2e")
