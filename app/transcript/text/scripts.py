"""Scripts: which ones have no spaces, where their text must not break, and how wide text is. Pure.

The rules for Japanese and Chinese (kinsoku) follow JIS X 4051 and UAX #14; those for Thai and Lao keep
a syllable's vowels with its consonant. BudouX finds phrases in Japanese, Chinese and Thai: a line breaks
between phrases, not inside one. Text of other such scripts may break wherever these rules allow it.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import accumulate

import budoux
from budoux.parser import Parser

# Lines may end at these, and are stripped of them: all white space but the no-break spaces, and the
# zero-width space that Khmer, Burmese and Thai texts put between words.
SPACES = (
    " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000\u200b"
)

# No line begins with one of these ...
CLOSING = frozenset(
    "。、，．・：；？！）］｝〉》」』】〕〗〙〟＞％‰℃々〻ーゝゞヽヾ〜～…‥"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶ"
    "｡､｣ｧｨｩｪｫｬｭｮｯｰ"
    ",.;:!?)]}%’”»›՝՞։،؛؟।॥၊။។៕ๆฯໆ"
)
# ... and none ends with one of these.
OPENING = frozenset("（［｛〈《「『【〔〖〘〝＜｢([{‘“«‹¿¡＄￥£$#＃")

# As in a character class of a regular expression.
UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u2e80-\u2fdf\u3000-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han, kana, their punctuation
    "\uff00-\uff9f"  # fullwidth and halfwidth forms, but for hangul
    "\U00020000-\U0003ffff"  # Han, further planes
)
_UNSPACED = re.compile(f"[{UNSPACED}]")

_VOWELS_BEFORE = frozenset("เแโใไເແໂໃໄ")  # written before the consonant that they follow in speech
_VOWELS_AFTER = frozenset("ะาำๅะາຳ")
_JOINERS = frozenset("\u200d\u2060\ufeff\u1039\u17d2")  # with the signs that stack Burmese and Khmer letters


def is_unspaced(char: str) -> bool:
    return _UNSPACED.match(char) is not None


def may_break_between(before: str, after: str) -> bool:
    """Whether text may break between two neighbouring characters that have no space between them."""
    if not (is_unspaced(before) or is_unspaced(after)):
        return False
    if before in OPENING or before in _VOWELS_BEFORE or before in _JOINERS:
        return False
    if after in CLOSING or after in _VOWELS_AFTER or after in _JOINERS:
        return False
    return unicodedata.category(after)[0] != "M"


def joined_lines(lines: Iterable[str]) -> str:
    """The lines, none empty, joined by spaces, or by nothing where the text may break without a space."""
    joined = ""
    for line in lines:
        joined += line if not joined or may_break_between(joined[-1], line[0]) else f" {line}"
    return joined


MOST_MARKS = 30  # on a character: no language has more (UAX #15, 13)


def with_few_marks(text: str) -> str:
    """The text with at most `MOST_MARKS` combining marks in a row: to sort more takes far too long."""
    marks = re.escape("".join(char for char in set(text) if not char.isascii() and _is_mark(char)))
    return re.sub(f"([{marks}]{{{MOST_MARKS}}})[{marks}]+", r"\1", text) if marks else text


def _is_mark(char: str) -> bool:
    """Whether the character, or the first of those that it stands for, combines with the one before it."""
    return unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) > 0


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
        self._leads = [width(unit) - width(unit.strip(SPACES)) for unit in units]

    def between(self, first: int, last: int) -> int:
        """Width of the units from `first` up to, not including, `last`; at least one unit."""
        return self._ends[last] - self._ends[first] - self._leads[first]


# Frequent characters that only traditional Chinese has. One of them is in almost every sentence.
_TRADITIONAL = frozenset(
    "們這個來對時會過說學國沒還後從麼嗎樣點開發問關裡間實現經與為東車長門見話請讓應該當無"
)


def phrase_starts(text: str, language: str) -> frozenset[int] | None:
    """Where phrases begin in the text; None if there is no model for the language."""
    parser = _parser(language, not _TRADITIONAL.isdisjoint(text))
    if parser is None:
        return None
    return frozenset(accumulate(map(len, parser.parse(text)), initial=0))


@cache
def _parser(language: str, traditional: bool) -> Parser | None:
    if language == "ja":
        return budoux.load_default_japanese_parser()
    if language == "th":
        return budoux.load_default_thai_parser()
    if language == "yue" or (language == "zh" and traditional):
        return budoux.load_default_traditional_chinese_parser()
    return budoux.load_default_simplified_chinese_parser() if language == "zh" else None
