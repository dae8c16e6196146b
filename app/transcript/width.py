"""How wide text is shown. Pure."""

import unicodedata
from functools import lru_cache

_INVISIBLE = {"Mn", "Me", "Cf", "Cc"}  # marks on the character before, format and control characters


def width(text: str) -> int:
    """Columns that the text takes, by East Asian Width (UAX #11): wide 2, combining 0, all else 1."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_char_width, text))


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if unicodedata.category(char) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
