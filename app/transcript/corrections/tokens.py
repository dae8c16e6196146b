"""The tokens of a text, which a correction keeps or changes one by one. Pure.

A token is a word between spaces. In a script without spaces it is one character, so that a changed character
leaves the others their times.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence

from app.transcript.scripts import UNSPACED, is_unspaced

_MARKS = "\u0300-\u036f\u200d\ufe00-\ufe0f"  # combining marks, joiner, variants
_CODES = (*range(0x0E00, 0x3100), *range(0xA9E0, 0xAA80))  # with all marks of scripts without spaces


def _pattern() -> re.Pattern[str]:
    marks = [chr(code) for code in _CODES if unicodedata.category(chr(code))[0] == "M"]
    of_unspaced = "".join(mark for mark in marks if is_unspaced(mark))
    return re.compile(rf"\s*(?:(?!\s)[{UNSPACED}][{of_unspaced}{_MARKS}]*|[^\s{UNSPACED}]+)")


_TOKEN = _pattern()


def tokens_of(text: str) -> list[str]:
    """The tokens of the text, each with the spaces before it. Spaces at the end belong to none."""
    found: list[str] = _TOKEN.findall(text)
    return found


class TokenRow:
    """The tokens of texts in a row."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.spaced: list[str] = []  # with the spaces before each
        self.owners = array("L")  # of each token: the number of its text
        self.edges = array("L", [0])  # tokens before the first text, the second, ..., and of all texts
        for number, text in enumerate(texts):
            tokens = tokens_of(text)
            self.spaced += tokens
            self.owners.extend([number] * len(tokens))
            self.edges.append(len(self.spaced))
        self.tokens: Sequence[str] = [token.strip() for token in self.spaced]

    def __len__(self) -> int:
        return len(self.spaced)
