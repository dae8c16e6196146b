"""The words of texts and queries."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobs.search_terms import MAX_BYTES, MAX_WORD_CHARS, query_words, text_words


def matches(query: str, text: str) -> bool:
    """Whether a text matches a query, as the databases decide it."""
    words = text_words(text).split(" ")
    return all(any(word.startswith(term) for word in words) for term in query_words(query))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        (" … !!! 🎉 ❤\ufe0f _", ""),
        ("The THE the", "the"),
        ("my_talk-2024.final.MP3", "my talk 2024 final mp3"),
        ("Crème brûlée, Ελλάδα, ёлка", "creme brulee ελλαδα елка"),
        ("Łódź Ørsted straße STRASSE", "lodz orsted strasse"),
        ("İstanbul IŞIK ışık", "istanbul isik"),
        ("don't l’eau п\u02bcять", "don t l eau п ять"),
        ("trans\u00adkript ﬁn ２０２４", "transkript fin 2024"),
        ("हिन्दी में", "हिन्दी में"),
        ("한국어 검색", "한국어 검색"),
        ("今天天气", "今天 天天 天气 气"),
        ("ガム", "ガム ム"),
        ("ｶﾞﾑ", "ガム ム"),
        ("AI模型3回", "ai 模型 型 3 回"),
        ("葛\U000e0100城", "葛城 城"),
        ("ទឹក\u200bកក", "ទឹ ឹក កក ក"),
    ],
)
def test_words_of_a_text(text: str, words: str) -> None:
    assert text_words(text) == words
    assert text_words(unicodedata.normalize("NFD", text)) == words


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("quick fo", "The quick brown fox"),
        ("FOX quick", "The quick brown fox"),
        ("creme", "Crème"),
        ("crème", "creme"),
        ('"qu" AND fox* NOT', "Quick, and not foxes"),
        ("dont", "dont"),
        ("don't", "I don’t"),
        ("eau", "l'eau"),
        ("天", "今天天气"),
        ("气", "今天天气"),
        ("今天天气", "「今天天气」很好"),
        ("ภาษา", "นี่คือภาษาไทย"),
        ("模型3", "AI模型3回"),
        ("हिन्द", "हिन्दी"),
        ("", "anything"),
    ],
)
def test_matches(query: str, text: str) -> None:
    assert matches(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [("ox", "fox"), ("quick slow", "quick"), ("天今", "今天"), ("か", "が"), ("हिन्दी", "हिन्दू"), ("x", "")],
)
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
