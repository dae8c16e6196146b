"""Which lines need to be declared right-to-left, so that players show them in the right order. Pure."""

import re
import unicodedata
from collections.abc import Iterable

# Of Whisper's, those written right to left.
_LANGUAGES = frozenset({"ar", "fa", "he", "ps", "sd", "ur", "yi"})
_LETTERS = frozenset({"R", "AL"})
_FORMATTED = re.compile("[\u202a-\u202e\u2066-\u2069]")  # the text already says its direction
# At these ends, a line in a left-to-right paragraph has the same order as in a right-to-left one (UAX #9).
_SAFE_FIRST = frozenset({"R", "AL", "AN", "NSM"})
_SAFE_LAST = _SAFE_FIRST | {"EN"}

# Embeddings, not isolates: players with older bidi code draw a box for RLI and PDI. A mark such as RLM is
# not enough: most players lay out each line left to right, and then swap the parts around a Latin word.
_RLE, _PDF = "\u202b", "\u202c"


def is_right_to_left(language: str) -> bool:
    """Whether a language of Whisper's (ISO 639-1 code) is written right to left."""
    return language in _LANGUAGES


def is_mixed(line: str, language: str) -> bool:
    """Whether the line is right-to-left, and has left-to-right letters in it.

    `language`: ISO 639-1 code of the text.
    """
    return _has_right_to_left(line, language) and any(unicodedata.bidirectional(char) == "L" for char in line)


def is_ambiguous(line: str, language: str) -> bool:
    """Whether the line is mixed, or right-to-left with digits or punctuation at an end.

    Players that lay it out left to right move these to the wrong end.
    """
    return is_mixed(line, language) or (
        _has_right_to_left(line, language)
        and (
            unicodedata.bidirectional(line[0]) not in _SAFE_FIRST
            or unicodedata.bidirectional(line[-1]) not in _SAFE_LAST
        )
    )


def _has_right_to_left(line: str, language: str) -> bool:
    """Whether the line has right-to-left letters, and its language or its first letter decides for them."""
    if line.isascii() or _FORMATTED.search(line):
        return False
    strong = [kind for kind in map(unicodedata.bidirectional, line) if kind == "L" or kind in _LETTERS]
    return not _LETTERS.isdisjoint(strong) and (language in _LANGUAGES or strong[0] in _LETTERS)


def embed_ambiguous(plain_lines: Iterable[str], lines: Iterable[str], language: str) -> list[str]:
    """The lines of a file, embedded where the plain line, without the marks of the format, is ambiguous."""
    return [
        embed(line) if is_ambiguous(plain, language) else line
        for plain, line in zip(plain_lines, lines, strict=True)
    ]


def embed_name(name: str, language: str) -> str:
    """A name that begins a line, embedded so that it does not decide on the direction of text after it."""
    is_foreign = language not in _LANGUAGES and _has_right_to_left(name, language)
    return embed(name) if is_foreign else name


def embed(line: str) -> str:
    """The line with characters around it that make players lay it out right to left."""
    return f"{_RLE}{line}{_PDF}"
