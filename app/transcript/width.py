"""The width of text in columns. Pure."""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from app.transcript.scripts import strip_spaces

_INVISIBLE = {"Mn", "Me", "Cf", "Cc"}  # marks on the character before, format and control characters


def width(text: str) -> int:
    """Columns of the text, by East Asian Width (UAX #11): wide characters 2, combining ones 0, others 1."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_char_width, text))


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if unicodedata.category(char) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class WidthIndex:
    """The width of any run of units, without the spaces at its ends, each in constant time."""

    def __init__(self, units: Sequence[str]) -> None:
        self._ends = list(accumulate((width(unit) for unit in units), initial=0))
        self._leads = [width(unit) - width(strip_spaces(unit)) for unit in units]

    def between(self, first: int, last: int) -> int:
        """Width of the units from `first` up to, not including, `last`; at least one unit."""
        return self._ends[last] - self._ends[first] - self._leads[first]
