"""Which words of a growing text are certain: those on which two drafts in a row agree. Pure.

Local agreement with n = 2, as by Liu, Spanakis and Niehues (2020) and in whisper_streaming (Machacek, Dabre
and Bojar, 2023). Drafts may differ in case and punctuation, which often change with the next word.
"""

import re
import unicodedata
from collections.abc import Sequence

from app.transcript.text.scripts import UNSPACED

# A word with the space before it; in scripts without spaces, a character.
_WORDS = re.compile(rf"\s*(?:[{UNSPACED}]|[^\s{UNSPACED}]+)")


def split_words(text: str) -> list[str]:
    """The words of a text, each with the space before it. Joined, they are the text up to its last word."""
    return _WORDS.findall(text)


class Agreement:
    """What the drafts of one clip agree on."""

    def __init__(self) -> None:
        self._before: list[str] = []  # the words of the draft before
        self.words: list[str] = []  # that two drafts agreed on, as they were returned

    def add(self, draft: str) -> list[str]:
        """Add the text of a draft. Returns the words that are certain now, with the spaces before them."""
        words = split_words(draft)
        common = _common_prefix(words, self._before)
        self._before = words
        certain = words[_end_of(self.words, words) : common]
        self.words += certain
        return certain


def rest_of(agreed: Sequence[str], text: str) -> str | None:
    """What a text has behind words that were agreed on; None if it does not begin with them."""
    words = split_words(text)
    if _common_prefix(words, agreed) < len(agreed):
        return None
    return "".join(words[len(agreed) :])


def _common_prefix(words: Sequence[str], others: Sequence[str]) -> int:
    """How many words two texts have in common at their beginning."""
    for count, (word, other) in enumerate(zip(words, others, strict=False)):
        if folded(word) != folded(other):
            return count
    return min(len(words), len(others))


def _end_of(agreed: Sequence[str], words: Sequence[str]) -> int:
    """Where words that were agreed on end in a draft, which may have other words in some places.

    The beginning of the draft that takes the fewest changes; of equal ones, that with as many words.
    """
    if _common_prefix(words, agreed) == len(agreed):
        return len(agreed)
    # Levenshtein's distance of the agreed words from each beginning of the draft.
    keys = [folded(word) for word in words]
    distances = list(range(len(words) + 1))
    for row, word in enumerate(map(folded, agreed), start=1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(keys, start=1):
            changed = diagonal + (word != other)
            diagonal = distances[column]
            distances[column] = min(changed, diagonal + 1, distances[column - 1] + 1)
    return min(range(len(words) + 1), key=lambda end: (distances[end], abs(end - len(agreed))))


def folded(word: str) -> str:
    """The letters and digits of a word, without case; the word itself if it has none."""
    letters = "".join(char for char in word.casefold() if unicodedata.category(char)[0] in "LNM")
    return letters or word.strip()
