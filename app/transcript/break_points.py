"""Where text may break, and how good each break is. Pure.

A unit is the smallest stretch of text that is never broken: a word with the space before it, or a phrase
of a script without spaces, each with the marks that belong to it. A dash or a note that stands alone belongs
to the word beside it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

from app.transcript.lexicon import (
    abbreviations,
    abbreviations_before_numbers,
    connectives,
    leaning_back,
    leaning_forward,
    months,
    nouns_before_numbers,
    titles,
    units_of_measure,
    word_form,
    writes_ordinals_with_dot,
)
from app.transcript.phrases import phrase_starts
from app.transcript.scripts import CLOSING, OPENING, SPACES, is_unspaced, may_break_between
from app.transcript.width import width

# French and some transcripts put a space before a mark; it still belongs to the word before it.
_LONE_MARK = re.compile(f"[{re.escape(''.join(sorted(CLOSING)))}]+")
_WORD = re.compile(f"[{SPACES}]*[^{SPACES}]+(?:[{SPACES}]+$)?")

_DASHES = frozenset({"-", "–", "—", "--"})
_TURN = re.compile(r"(?:--|[-–—])\s*[^\s\d]")  # a dash, and what somebody says
_NOTES = frozenset({"♪", "♫", "♬", "♪♪"})
_SOUND = re.compile(r"[\[【♪♫♬]")
_DESCRIPTION = re.compile(r"[\[(（【♪♫♬]")
_QUOTES_AND_BRACKETS = "\"'’”»›)]}」』）］｝】〉》〕"
_SONG_ENDS = frozenset("♪♫♬")
_DESCRIPTION_ENDS = frozenset("])】）")
_SENTENCE_ENDS = frozenset(".!?。！？．｡؟।॥։။။៕…‼⁇⁈⁉")
_CLAUSE_ENDS = frozenset(",;:，、；：､،؛၊·–—")
_PUNCTUATION = "\"'’‘”“»«›‹()[]{}.,;:!?¿¡…-–—"
_WITH_CAPITAL_NOUNS = frozenset({"de", "lb"})  # languages that write every noun with a capital
_LETTERS_WITH_DOTS = re.compile(r"(?:[^\W\d_]\.)+")  # initials, `u.a.`, `т.е.`
_NUMBER = re.compile(r"[#№$€£¥+−-]?\d[\d.,:/×x-]*(?:st|nd|rd|th|[%‰°ºª])?")
_YEAR = re.compile(r"[12]\d{3}")
_I = re.compile(r"I(?:['’]\w+)?")  # English: a capital that is no name
_LONGEST_ABBREVIATION = 5  # letters


class Break(IntEnum):
    """How good a break is, best first."""

    SENTENCE = 0  # after a sentence
    CLAUSE = 1  # after a comma, a colon, before a dash; at a space in a script that has none between words
    PHRASE = 2  # before a conjunction, a preposition, a relative pronoun
    PLAIN = 3  # between any two words
    POOR = 4  # between words that belong together


def strip_spaces(text: str) -> str:
    """The text without spaces at its ends. No-break spaces stay."""
    return text.strip(SPACES)


def break_units(text: str, language: str = "", max_width: int | None = None) -> list[str]:
    """The units of the text, each with the space before it. Joined, they are the text again.

    Phrases wider than `max_width` columns are broken inside, too.
    """
    words: list[str] = _WORD.findall(text)
    if not words:
        return [text] if text else []
    if any(map(is_unspaced, text)):
        words = _phrases(words, phrase_starts(text, language), max_width)
    return _with_marks(words)


def _phrases(words: Iterable[str], starts: frozenset[int] | None, max_width: int | None) -> list[str]:
    """The words, those of scripts without spaces as phrases that begin at `starts`."""
    phrases: list[str] = []
    offset = 0  # of the word in the text
    for word in words:
        begin = 0
        positions = [at for at in range(1, len(word)) if may_break_between(word[at - 1], word[at])]
        for position in [at for at in positions if starts is None or offset + at in starts] + [len(word)]:
            phrase = word[begin:position]
            if max_width is not None and width(phrase) > max_width:
                inner = [at for at in positions if begin < at < position]
                phrases += (word[first:last] for first, last in pairwise([begin, *inner, position]))
            else:
                phrases.append(phrase)
            begin = position
        offset += len(word)
    return phrases


def _with_marks(words: Iterable[str]) -> list[str]:
    """The words, each with the marks, dashes and notes beside it that stand alone."""
    units: list[str] = []
    held = ""  # belongs to the next word
    notes = 0
    for word in words:
        bare = strip_spaces(word)
        is_note = bare in _NOTES
        notes += is_note
        if bare in _DASHES or OPENING.issuperset(bare) or (is_note and notes % 2):
            held += word
        elif units and not held and (is_note or _LONE_MARK.fullmatch(bare)):
            units[-1] += word
        else:
            units.append(held + word)
            held = ""
    if held and units:
        units[-1] += held
    elif held:
        units.append(held)
    return units


def may_join(before: str, after: str) -> bool:
    """Whether two texts can be joined as they are: no space is missing between them."""
    return after[0] in SPACES or before[-1] in SPACES or may_break_between(before[-1], after[0])


@dataclass(frozen=True, slots=True)
class _Traits:
    """What decides on the breaks beside a unit."""

    bare: str  # as the tables of words list it, without punctuation
    core: str  # without spaces, and without quotes and brackets after it
    last: str  # character of the core, or nothing
    is_lower: bool  # its first letter is a lower-case one
    is_capital: bool
    is_number: bool
    is_year: bool
    is_abbreviation: bool  # if it does not end a sentence
    is_unit_of_measure: bool
    leans_forward: bool
    leans_back: bool
    is_connective: bool
    is_title: bool
    precedes_number: bool


@lru_cache(maxsize=8192)
def _traits(unit: str, language: str) -> _Traits:
    word = strip_spaces(unit)
    core = word.rstrip(_QUOTES_AND_BRACKETS)
    naked = word.strip(_PUNCTUATION + SPACES)
    bare = word_form(naked)
    first = next((char for char in naked if char.isalnum()), "")
    return _Traits(
        bare=bare,
        core=core,
        last=core[-1:],
        is_lower=first.islower(),
        is_capital=first.isupper() and not (language == "en" and _I.fullmatch(naked)),
        is_number=_NUMBER.fullmatch(naked) is not None,
        is_abbreviation=core.endswith(".")
        and not core.endswith("..")
        and (len(bare) <= _LONGEST_ABBREVIATION or word_form(core) in abbreviations(language)),
        is_year=_YEAR.fullmatch(bare) is not None,
        is_unit_of_measure=bare in units_of_measure(language),
        leans_forward=bare in leaning_forward(language),
        leans_back=bare in leaning_back(language),
        is_connective=bare in connectives(language),
        is_title=bare in titles(language),
        precedes_number=bare in nouns_before_numbers(language) or bare in months(language),
    )


def rate_breaks(units: Sequence[str], language: str) -> list[Break]:
    """How good the break before each unit is. A text begins with a sentence."""
    breaks = [Break.SENTENCE][: len(units)]
    for before, after in pairwise(units):
        breaks.append(break_between(before, after, language, breaks[-1] is Break.SENTENCE))
    return breaks


def break_between(before: str, after: str, language: str, starts_sentence: bool = True) -> Break:
    """How good a break is between two neighbouring units; `starts_sentence`: the first one does."""
    left, right = _traits(before, language), _traits(after, language)
    if ends_sentence(before, after, language):
        return Break.SENTENCE
    if left.last in _SENTENCE_ENDS:
        return Break.POOR if left.is_abbreviation else Break.CLAUSE
    if left.is_number and (right.is_number or left.last not in _CLAUSE_ENDS):
        return Break.POOR if right.is_number or not left.is_year or right.is_unit_of_measure else Break.PLAIN
    if (
        left.last in _CLAUSE_ENDS
        or ends_description(before)
        or right.core[:1] in _DASHES
        or _DESCRIPTION.match(right.core)
    ):
        return Break.CLAUSE
    if left.leans_forward or right.leans_back or (left.precedes_number and right.is_number):
        return Break.POOR
    if left.last and is_unspaced(left.last):
        if right.is_unit_of_measure or right.is_number:
            return Break.POOR
        if after[0] in SPACES:
            return Break.CLAUSE
    if left.is_title and not right.is_lower:
        return Break.POOR
    if left.is_capital and right.is_capital and not starts_sentence and language not in _WITH_CAPITAL_NOUNS:
        return Break.POOR  # of a name
    return Break.PHRASE if right.is_connective else Break.PLAIN


def ends_sentence(unit: str, after: str = "", language: str = "") -> bool:
    """Whether the unit, followed by `after`, ends a sentence; so does a song.

    An abbreviation does not, nor an ordinal number, nor a unit before a lower-case word.
    """
    left = _traits(unit, language)
    if left.last not in _SENTENCE_ENDS:
        return strip_spaces(unit)[-1:] in _SONG_ENDS
    if after and _traits(after, language).is_lower:
        return False
    if left.last == "…" or left.core.endswith(".."):
        return not after or _traits(after, language).is_capital  # otherwise somebody hesitates
    if left.last != ".":
        return True
    word = left.core.lstrip(_PUNCTUATION)
    if _LETTERS_WITH_DOTS.fullmatch(word):
        return language == "en" and word == "I."
    if word[:-1].isdigit() and len(word) <= 3:
        return not writes_ordinals_with_dot(language)
    form = word_form(word)
    if after and _traits(after, language).is_number and form in abbreviations_before_numbers(language):
        return False
    return form not in abbreviations(language)


def is_turn(unit: str) -> bool:
    """Whether the unit begins with the dash of a speaker's turn, if it begins a sentence."""
    return _TURN.match(strip_spaces(unit)) is not None


def ends_description(unit: str) -> bool:
    """Whether the unit ends the description of a sound."""
    return unit.rstrip()[-1:] in _DESCRIPTION_ENDS


def is_sound(unit: str) -> bool:
    """Whether the unit begins the description of a sound, or a song, if it begins a sentence."""
    return _SOUND.match(strip_spaces(unit)) is not None
