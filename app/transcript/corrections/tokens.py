"""The tokens of a text, which a correction keeps or changes one by one. Pure.

A token is a word between spaces. In a script without spaces it is one character, so that a changed character
leaves the others their times.
"""

import re
import unicodedata

from app.transcript.scripts import is_unspaced

_TEXT_MARKS = "\u0300-\u036f\u200d\ufe00-\ufe0f"  # combining marks, joiner, variants
_PLANE = range(0x0E00, 0xFFA0)  # has all marks of scripts without spaces


def _pattern() -> re.Pattern[str]:
    chars = [chr(code) for code in _PLANE if is_unspaced(chr(code)) and not chr(code).isspace()]
    unspaced = f"{_ranges(chars)}\U00020000-\U0003ffff"
    marks = _ranges([char for char in chars if unicodedata.category(char)[0] == "M"]) + _TEXT_MARKS
    return re.compile(f"[{unspaced}][{marks}]*|[^\\s{unspaced}]+")


def _ranges(chars: list[str]) -> str:
    """The characters, ordered, as ranges of a character class."""
    ranges: list[list[str]] = []
    for char in chars:
        if ranges and ord(char) == ord(ranges[-1][1]) + 1:
            ranges[-1][1] = char
        else:
            ranges.append([char, char])
    return "".join(f"{first}-{last}" for first, last in ranges)


_TOKEN = _pattern()


def token_starts(text: str) -> tuple[list[str], list[int]]:
    """The tokens of the text, without the spaces between them, and where they begin."""
    tokens, starts = [], []
    for match in _TOKEN.finditer(text):
        tokens.append(match[0])
        starts.append(match.start())
    return tokens, starts
