"""Where a subtitler of each language would break, and would not."""

from itertools import accumulate

import pytest
from transcript_cases import BREAKS

from app.transcript.text.breaks import Break, break_between, break_units, rate_breaks

EXPECTED = {
    "_": {Break.POOR},
    "|": {Break.CLAUSE, Break.PHRASE, Break.PLAIN},
    "/": {Break.SENTENCE},
    "": set(Break) - {Break.SENTENCE},
}


def words_and_marks(text: str) -> tuple[list[str], list[str]]:
    """The words of the text, and the mark before each one."""
    words, marks = [], []
    mark = ""
    for part in text.replace("_", " _ ").split():
        if part in EXPECTED:
            mark = part
        else:
            words.append(f" {part}")
            marks.append(mark)
            mark = ""
    return words, marks


@pytest.mark.parametrize(("language", "text"), BREAKS["sentences"])
def test_breaks(language: str, text: str) -> None:
    words, marks = words_and_marks(text)
    units = break_units("".join(words), language)
    ratings = dict(zip(accumulate(map(len, units), initial=0), rate_breaks(units, language), strict=False))
    starts = accumulate(map(len, words), initial=0)
    for word, mark, start in list(zip(words, marks, starts, strict=False))[1:]:
        rating = ratings.get(start, Break.POOR)  # within a unit: never broken
        assert rating in EXPECTED[mark], (word, rating)


@pytest.mark.parametrize(("before", "after", "language"), BREAKS["ends_of_sentences"])
def test_ends_of_sentences(before: str, after: str, language: str) -> None:
    assert break_between(before, after, language, starts_sentence=False) is Break.SENTENCE


@pytest.mark.parametrize(("before", "after", "language"), BREAKS["no_ends_of_sentences"])
def test_what_ends_no_sentence(before: str, after: str, language: str) -> None:
    assert break_between(before, after, language, starts_sentence=False) is not Break.SENTENCE


@pytest.mark.parametrize(("language", "text", "rated"), BREAKS["without_spaces"])
def test_breaks_without_spaces(language: str, text: str, rated: str) -> None:
    units = break_units(text, language)
    marks = ["_" if rating is Break.POOR else "|" for rating in rate_breaks(units, language)]
    assert "".join(mark + unit for mark, unit in zip(marks, units, strict=True))[1:] == rated
