"""Scripts written without spaces: their characters, and where their text must not break. Pure.

The rules for Japanese and Chinese (kinsoku) follow JIS X 4051 and UAX #14; those for Thai and Lao keep
a syllable's vowels with its consonant.
"""

import re
import unicodedata

# Lines may end at these: all white space but the no-break spaces, and the zero-width space that Khmer,
# Burmese and Thai texts put between words.
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


def strip_spaces(text: str) -> str:
    """The text without spaces at its ends. No-break spaces stay."""
    return text.strip(SPACES)


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
