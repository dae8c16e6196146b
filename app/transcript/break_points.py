"""Where text may break, and how good each break is. Pure.

A unit is the smallest stretch of text that is never broken: a word with the space before it, or a single
character of a script without spaces, each with the punctuation that belongs to it.
"""

import re
from enum import IntEnum

from app.transcript.function_words import FUNCTION_WORDS
from app.transcript.scripts import CLOSING, OPENING, is_unspaced, may_break_between

# Lines may end at these: all white space but the no-break spaces, and the zero-width space that Khmer,
# Burmese and Thai texts put between words.
SPACES = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000\u200b"

_SPACE = re.compile(f"[{SPACES}]")
_EDGES = re.compile(f"^[{SPACES}]+|[{SPACES}]+$")
# French and some transcripts put a space before a mark; it still belongs to the word before it.
_LONE_MARKS = re.compile(f"[{SPACES}]*[{re.escape(''.join(sorted(CLOSING)))}]+(?=[{SPACES}]|$)")

_QUOTES_AND_BRACKETS = "\"'’”»›)]}」』）］｝】〉》〕"
_SENTENCE_ENDS = frozenset(".!?。！？．｡؟।॥։။។៕…‼⁇⁈⁉")
_CLAUSE_ENDS = frozenset(",;:，、；：､،؛၊·–—")
_PUNCTUATION = "\"'’‘”“»«›‹()[]{}.,;:!?¿¡…-–—"
_ABBREVIATIONS = frozenset(
    {"mr.", "mrs.", "ms.", "dr.", "prof.", "st.", "vs."}
    | {"sr.", "sra.", "srta.", "hr.", "nr.", "bzw.", "mme.", "mlle.", "sig.", "dott.", "dhr.", "mevr."}
)
_INITIAL = re.compile(r"[A-HJ-Z]\.")  # not I: an English sentence may end with it


class Break(IntEnum):
    """How good a break is, best first."""

    SENTENCE = 0  # after a sentence
    CLAUSE = 1  # after a comma, a colon, a dash; at a space in a script that has none between words
    PHRASE = 2  # before a function word, such as a conjunction or an article
    PLAIN = 3  # between any two words
    POOR = 4  # after a function word or an abbreviation


def strip_spaces(text: str) -> str:
    """The text without spaces at its ends. No-break spaces stay."""
    return _EDGES.sub("", text)


def break_units(text: str) -> list[str]:
    """The units of the text, each with the space before it. Joined, they are the text again."""
    units: list[str] = []
    begin = 0
    for position in range(1, len(text)):
        if _may_break(text, begin, position):
            units.append(text[begin:position])
            begin = position
    if text:
        units.append(text[begin:])
    return units


def _may_break(text: str, begin: int, position: int) -> bool:
    """Whether the unit that begins at `begin` may end before the character at `position`."""
    before, after = text[position - 1], text[position]
    if _SPACE.match(before):
        return False  # spaces belong to the next unit
    if not _SPACE.match(after):
        return may_break_between(before, after)
    if _LONE_MARKS.match(text, position) or not text[position:].strip():
        return False
    return not OPENING.issuperset(strip_spaces(text[begin:position]))


def may_join(before: str, after: str) -> bool:
    """Whether two texts can be joined as they are: no space is missing between them."""
    return len(break_units(before + after)) == len(break_units(before)) + len(break_units(after))


def break_between(before: str, after: str, language: str) -> Break:
    """How good a break is between two neighbouring units."""
    word = strip_spaces(before)
    last = word.rstrip(_QUOTES_AND_BRACKETS)[-1:]
    if last in _SENTENCE_ENDS:
        return Break.SENTENCE if ends_sentence(word) else Break.POOR
    if last in _CLAUSE_ENDS or word == "-":
        return Break.CLAUSE
    if last and is_unspaced(last) and _SPACE.match(after):
        return Break.CLAUSE
    function_words = FUNCTION_WORDS.get(language, frozenset())
    if _bare(word) in function_words:
        return Break.POOR
    return Break.PHRASE if _bare(after) in function_words else Break.PLAIN


def ends_sentence(unit: str) -> bool:
    """Whether the unit ends a sentence. An abbreviation does not."""
    word = strip_spaces(unit)
    if word.rstrip(_QUOTES_AND_BRACKETS)[-1:] not in _SENTENCE_ENDS:
        return False
    bare = word.lstrip(_PUNCTUATION)
    return bare.casefold() not in _ABBREVIATIONS and not _INITIAL.fullmatch(bare)


def _bare(unit: str) -> str:
    return strip_spaces(unit).strip(_PUNCTUATION).casefold()
