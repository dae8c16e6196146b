"""Where text may break, and how well it breaks there. Pure.

Atoms are the smallest pieces that are never broken: words with the space before them, or single
characters of a script without spaces, with the punctuation that belongs to them.
"""

import re
from enum import IntEnum

from app.transcript.function_words import LEADING
from app.transcript.scripts import CLOSING, OPENING, is_unspaced, may_part

# Where a line may end: all white space but the no-break spaces, and the zero-width space that Khmer,
# Burmese and Thai texts put between words.
SPACES = " \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000\u200b"

_SPACE = re.compile(f"[{SPACES}]")
_EDGES = re.compile(f"^[{SPACES}]+|[{SPACES}]+$")
# A mark set off by a space, as French and some transcripts have it, belongs to the word before it.
_LONE_MARKS = re.compile(f"[{SPACES}]*[{re.escape(''.join(sorted(CLOSING)))}]+(?=[{SPACES}]|$)")

_QUOTES_AND_BRACKETS = "\"'’”»›)]}」』）］｝】〉》〕"
_SENTENCE_ENDS = frozenset(".!?。！？．｡؟।॥։။។៕…‼⁇⁈⁉")
_CLAUSE_ENDS = frozenset(",;:，、；：､،؛၊·–—")
_PUNCTUATION = "\"'’‘”“»«›‹()[]{}.,;:!?¿¡…-–—"
_ABBREVIATIONS = frozenset(
    {"mr.", "mrs.", "ms.", "dr.", "prof.", "st.", "vs."}
    | {"sr.", "sra.", "srta.", "hr.", "nr.", "bzw.", "mme.", "mlle.", "sig.", "dott.", "dhr.", "mevr."}
)
_INITIAL = re.compile(r"[A-HJ-Z]\.")  # not I, with which an English sentence may end


class Break(IntEnum):
    """How good a place for a break is, best first."""

    SENTENCE = 0  # after a sentence
    CLAUSE = 1  # after a comma, a colon, a dash; at a space in scripts without spaces between words
    PHRASE = 2  # before a conjunction, a preposition, an article: a word that leads into what follows
    PLAIN = 3  # between any two words
    POOR = 4  # after a word that leans on the next, or after an abbreviation


def strip_spaces(text: str) -> str:
    """The text without the spaces around it; a no-break space is part of the text."""
    return _EDGES.sub("", text)


def break_units(text: str) -> list[str]:
    """The text in break_units, each with the space before it; joined, they are the text again."""
    parts: list[str] = []
    begin = 0
    for position in range(1, len(text)):
        if _may_break(text, begin, position):
            parts.append(text[begin:position])
            begin = position
    if text:
        parts.append(text[begin:])
    return parts


def _may_break(text: str, begin: int, position: int) -> bool:
    """Whether the atom that begins at `begin` may end before the character at `position`."""
    before, after = text[position - 1], text[position]
    if _SPACE.match(before):
        return False  # spaces go with what follows them
    if not _SPACE.match(after):
        return may_part(before, after)
    if _LONE_MARKS.match(text, position) or not text[position:].strip():
        return False
    return not OPENING.issuperset(strip_spaces(text[begin:position]))


def may_join(before: str, after: str) -> bool:
    """Whether two texts can stand in one line as they are, with no space to be invented between them."""
    return len(break_units(before + after)) == len(break_units(before)) + len(break_units(after))


def break_between(before: str, after: str, language: str) -> Break:
    """How good a break is between two neighbouring break_units."""
    word = strip_spaces(before)
    last = word.rstrip(_QUOTES_AND_BRACKETS)[-1:]
    if last in _SENTENCE_ENDS:
        return Break.SENTENCE if ends_sentence(word) else Break.POOR
    if last in _CLAUSE_ENDS or word == "-":
        return Break.CLAUSE
    if last and is_unspaced(last) and _SPACE.match(after):
        return Break.CLAUSE
    leading = LEADING.get(language, frozenset())
    if _bare(word) in leading:
        return Break.POOR
    return Break.PHRASE if _bare(after) in leading else Break.PLAIN


def ends_sentence(text: str) -> bool:
    """Whether a sentence ends with this atom; it does not with an abbreviation."""
    word = strip_spaces(text)
    return word.rstrip(_QUOTES_AND_BRACKETS)[-1:] in _SENTENCE_ENDS and not _is_abbreviation(word)


def _is_abbreviation(word: str) -> bool:
    bare = word.lstrip(_PUNCTUATION)
    return bare.casefold() in _ABBREVIATIONS or _INITIAL.fullmatch(bare) is not None


def _bare(atom: str) -> str:
    return strip_spaces(atom).strip(_PUNCTUATION).casefold()
