"""The form in which the tables list a word, and how a table of text becomes sets of words."""

import re
import unicodedata
from collections.abc import Mapping

# Vowel points that Arabic and Hebrew texts may leave out, Arabic's stretching sign, and marks of direction.
_OPTIONAL_SIGNS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
    "\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_QUOTES = str.maketrans({"’": "'", "ʼ": "'", "‘": "'", "׳": "'", "״": '"', "”": '"', "“": '"'})


def word_form(word: str) -> str:
    """The word as the tables list it: casefolded, composed, with plain quotes, without vowel points.

    The Turkish capital İ becomes a plain i. Punctuation around the word stays.
    """
    plain = _OPTIONAL_SIGNS.sub("", unicodedata.normalize("NFC", word)).translate(_QUOTES)
    return unicodedata.normalize("NFC", plain.casefold().replace("i\u0307", "i"))


def word_sets(table: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """For each language, the set of the words that its text lists between spaces."""
    return {language: frozenset(map(word_form, words.split())) for language, words in table.items()}
