"""The sentences that a search finds in a transcript."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.jobs.passages import MOST_MATCHES, find_sentences, pack_passages
from app.jobs.search_terms import comparable_texts, query_terms
from app.transcript.edited import with_ids
from tests.jobs.samples import SEGMENT

TEXTS = st.lists(
    st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("aÄ 天気ไทย\t\n"))),
    min_size=1,
    max_size=8,
)


def passages(*texts: str) -> bytes:
    segments = (replace(SEGMENT, start=16_000 * place, text=text) for place, text in enumerate(texts))
    return pack_passages(with_ids(segments, [(0, 16_000)]))


def found(query: str, *texts: str) -> list[str]:
    return [sentence.text for sentence in find_sentences(passages(*texts), query_terms(query))]


@given(TEXTS)
def test_every_text_is_found_by_its_own_words(texts: list[str]) -> None:
    content = passages(*texts)
    for text in texts:
        terms = query_terms(text)
        sentences = find_sentences(content, terms)
        assert bool(sentences) is bool(terms)
        for sentence in sentences:  # each has all words, as this one has
            (words,) = comparable_texts([sentence.text])
            assert all(term in words for term in terms)


def test_those_with_most_words_come_first_in_their_order() -> None:
    texts = ("Budget.", "The new budget!", "No money.", "A new budget", "Budget, new", "new budget")
    assert found("new budget", *texts) == [texts[1], texts[3], texts[4]]
    assert len(found("new budget", *texts)) == MOST_MATCHES
    assert found("money budget", *texts) == ["No money."]
    assert found("udget", *texts) == found("elephant", *texts) == found("", *texts) == []


def test_words_begin_where_scripts_have_spaces_and_are_anywhere_where_they_have_none() -> None:
    texts = ("Die Straße.", "今天天气很好", "ไปโรงเรียน", "L'été à Łódź")
    assert found("stras", *texts) == [texts[0]]
    assert found("rasse", *texts) == []
    assert found("天气", *texts) == [texts[1]]
    assert found("โรง", *texts) == [texts[2]]
    assert found("ete lodz", *texts) == [texts[3]]
