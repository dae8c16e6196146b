"""Phrases in scripts written without spaces, by BudouX. Pure.

A line breaks between phrases, not inside one. BudouX has models for Japanese, Chinese and Thai; text of other
such scripts may break wherever `scripts` allows it.
"""

from functools import cache
from itertools import accumulate

import budoux
from budoux.parser import Parser

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
