"""Where text may break, and how good each break is. Pure.

A unit is the smallest stretch of text that is never broken: a word with the space before it, or a phrase
of a script without spaces, each with the marks that belong to it. A dash or a note that stands alone belongs
to the word beside it.
"""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise

from app.transcript.lexicon import lexicon_of
from app.transcript.text.scripts import (
    CLOSING,
    OPENING,
    SPACES,
    is_unspaced,
    may_break_between,
    phrase_starts,
    width,
)
from app.transcript.text.traits import (
    CLAUSE_ENDS,
    GREEK_QUESTION_MARK,
    SENTENCE_ENDS,
    Traits,
    traits,
)

# French and some transcripts put a space before a mark; it still belongs to the word before it.
_LONE_MARK = re.compile(f"[{re.escape(''.join(sorted(CLOSING)))}]+")
_WORD = re.compile(f"[{SPACES}]*[^{SPACES}]+(?:[{SPACES}]+$)?")

_DASHES = frozenset({"-", "–", "—", "--"})
_TURN = re.compile(r"(?:--|[-–—])\s*[^\s\d]")  # a dash, and what somebody says
_NOTES = frozenset({"♪", "♫", "♬", "♪♪"})
_SOUND = re.compile(r"[\[【♪♫♬]")
_DESCRIPTION = re.compile(r"[\[(（【♪♫♬]")
_SONG_ENDS = frozenset("♪♫♬")
_DESCRIPTION_ENDS = frozenset("])】）")
_FULL_STOPS = frozenset("。｡！？۔।॥።፧။។៕։")  # a small letter after one of these begins a sentence, too
_WITH_CAPITAL_NOUNS = frozenset({"de", "lb"})  # languages that write every noun with a capital
_POLITE_PRONOUNS = frozenset({"sie", "ihnen", "dir", "iech"})  # of these, with a capital
_STREETS = frozenset({"de", "nl"})  # languages that write `Kerkstr. 12`
_LIST_NUMBER = re.compile(r"\d{1,2}\.")
# Words of time stand alone, without a particle.
_ENDS_OF_JAPANESE_TIMES = frozenset("日年月時分秒週朝昼夜晩今後頃")
# Before a classifier: what counts, or points.
_COUNTING = frozenset(
    "0123456789０１２３４５６７８９〇零一二三四五六七八九十百千万萬亿億两兩几幾半数數多每这這那哪第各某整"
)


class Break(IntEnum):
    """How good a break is, best first."""

    SENTENCE = 0  # after a sentence
    CLAUSE = 1  # after a comma, a colon, before a dash; at a space in a script that has none between words
    PHRASE = 2  # before a conjunction, a preposition, a relative pronoun
    PLAIN = 3  # between any two words
    POOR = 4  # between words that belong together


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
    is_quoted = False
    for word in words:
        begin = 0
        positions, is_quoted = _break_positions(word, is_quoted)
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


def _break_positions(word: str, is_quoted: bool) -> tuple[list[int], bool]:
    """Where the word may break; and whether a straight quotation, open before it or not, is open after it."""
    positions = []
    for at in range(1, len(word)):
        before, after = word[at - 1], word[at]
        is_quoted ^= before == '"'
        if may_break_between(before, after) and not (is_quoted and '"' in (before, after)):
            positions.append(at)
    return positions, is_quoted ^ (word[-1] == '"')


def _with_marks(words: Iterable[str]) -> list[str]:
    """The words, each with the marks, dashes and notes beside it that stand alone."""
    units: list[str] = []
    held = ""  # belongs to the next word
    notes = 0
    for word in words:
        bare = word.strip(SPACES)
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


def rate_breaks(units: Sequence[str], language: str) -> list[Break]:
    """How good the break before each unit is. A text begins with a sentence."""
    breaks = [Break.SENTENCE][: len(units)]
    for before, after in pairwise(units):
        breaks.append(break_between(before, after, language, breaks[-1] is Break.SENTENCE))
    return breaks


def break_between(before: str, after: str, language: str, starts_sentence: bool = True) -> Break:
    """How good a break is between two neighbouring units; `starts_sentence`: the first one does."""
    left, right = traits(before, language), traits(after, language)
    if ends_sentence(before, after, language):
        is_listed = starts_sentence and _LIST_NUMBER.fullmatch(left.core) is not None
        return Break.POOR if is_listed else Break.SENTENCE
    if left.last in SENTENCE_ENDS and not left.is_complete_abbreviation:
        is_dot = left.last == "." and not left.core.endswith("..")
        return Break.POOR if left.is_abbreviation or (is_dot and right.is_number) else Break.CLAUSE
    is_clause = left.last in CLAUSE_ENDS or right.core[:1] in _DASHES
    if is_clause and left.is_number and right.is_number and (right.is_year or left.last not in CLAUSE_ENDS):
        return Break.POOR
    if is_clause or ends_description(before) or _DESCRIPTION.match(right.core):
        return Break.CLAUSE
    # Before `and`, a word that leans ends its clause.
    leans_forward = left.leans_forward and (left.leans_before_and or not right.is_coordinator)
    if leans_forward or right.leans_back or (left.bare == right.bare != ""):
        return Break.POOR
    if _is_of_number(left, right, starts_sentence):
        return Break.POOR
    if left.last and is_unspaced(left.last):
        if (right.is_number and right.starts_with_digit) or _is_torn(left, right, language):
            return Break.POOR
        if after[0] in SPACES:
            return Break.CLAUSE
    if _is_of_name(left, right, language, starts_sentence):
        return Break.POOR
    if left.is_number and not (left.is_year or left.is_amount):
        return Break.POOR
    return Break.PHRASE if right.is_connective else Break.PLAIN


def _is_of_number(left: Traits, right: Traits, starts_sentence: bool) -> bool:
    """Whether the two are parts of one number, amount, date or time, or of a number and its unit."""
    if right.is_unit_of_measure:
        if left.is_number and not left.is_amount:
            return True
        counts = left.is_number or left.is_number_word or left.is_unit_of_measure or left.is_roman
        if counts and not right.is_connective and not right.leans_forward:
            return True
    if right.starts_with_digit or right.is_number:
        if left.precedes_number or left.is_currency or left.starts_with_digit or left.is_number:
            return True
        is_model = left.is_capital and not starts_sentence and not is_unspaced(left.last)  # `Apollo 11`
        return left.is_unit_of_measure or (is_model and right.is_number and not right.is_year)
    if left.is_number_word and right.is_number_word:
        return True
    if left.is_month or left.is_number:
        is_date = right.is_in_names and not left.is_year and not left.is_amount  # `3 de mayo de 2010`
        return right.is_month or is_date
    return right.is_roman and (left.precedes_number or left.is_capital)


def _is_torn(left: Traits, right: Traits, language: str) -> bool:
    """Whether two phrases of a script without spaces are one: the models that find phrases err."""
    if right.is_unit_of_measure:
        return len(right.bare) == 1 or left.last in _COUNTING or not left.ends_with_han
    if language != "ja":
        return False
    if left.ends_with_han and right.begins_with_han:
        return left.last not in _ENDS_OF_JAPANESE_TIMES  # `田中一郎`
    return left.is_one_hiragana or right.is_one_hiragana


def _is_of_name(left: Traits, right: Traits, language: str, starts_sentence: bool) -> bool:
    """Whether the two are parts of one name, or a title and a name."""
    if (left.is_title or left.is_name_particle) and not right.is_lower:
        return True
    if right.is_name_particle:
        return left.is_capital or left.has_no_case or left.is_title or left.is_name_particle
    if not left.is_capital or starts_sentence or language in _WITH_CAPITAL_NOUNS:
        return False
    return right.is_in_names or (right.is_capital and not (left.is_all_caps and right.is_all_caps))


def ends_sentence(unit: str, after: str = "", language: str = "") -> bool:
    """Whether the unit, followed by `after`, ends a sentence; so does a song.

    An abbreviation does not, nor an ordinal number, nor a unit before a lower-case word.
    """
    left = traits(unit, language)
    if left.last in _FULL_STOPS:
        return True
    if left.last not in SENTENCE_ENDS and not (language == "el" and left.last == GREEK_QUESTION_MARK):
        return unit.strip(SPACES)[-1:] in _SONG_ENDS
    right = traits(after, language) if after else None
    is_description = right is not None and _DESCRIPTION.match(right.core) is not None
    if right and right.is_lower and not is_description:
        return False
    if left.last == "…" or left.core.endswith(".."):
        return right is None or right.is_capital  # otherwise somebody hesitates
    return left.last != "." or _dot_ends_sentence(left, right, is_description, language)


def _dot_ends_sentence(left: Traits, right: Traits | None, is_description: bool, language: str) -> bool:
    words = lexicon_of(language)
    if left.has_dotted_letters:
        return language == "en" and left.form == "i."
    if (left.bare.isdigit() and len(left.bare) <= 2) or left.is_roman:
        # No noun begins with an article or a pronoun.
        starts = right is not None and (right.leans_forward or right.bare in _POLITE_PRONOUNS)
        return starts or not words.ordinal_dot
    if right and right.is_number:
        is_street = language in _STREETS and left.form.endswith("str.")
        if is_street or left.form in words.abbreviations_before_numbers:
            return False
        if left.is_month and left.is_complete_abbreviation:
            return False
    if left.is_complete_abbreviation and is_description:
        return False
    return left.form not in words.abbreviations


def split_dash(unit: str) -> tuple[str, str]:
    """The unit without a dash that stands alone at its end, and that dash with the space before it."""
    word, space, dash = unit.rpartition(" ")
    return (word, space + dash) if dash in _DASHES and word.strip(SPACES) else (unit, "")


def is_turn(unit: str) -> bool:
    """Whether the unit begins with the dash of a speaker's turn, if it begins a sentence."""
    return _TURN.match(unit.strip(SPACES)) is not None


def begins_with_dash(unit: str) -> bool:
    """Whether the unit begins with a dash that is not the sign of a number."""
    word = unit.strip(SPACES)
    return is_turn(word) or (word[:1] in _DASHES and word[1:2] == " ")


def begins_with_minus(unit: str) -> bool:
    """Whether the unit begins with a negative number."""
    return not begins_with_dash(unit) and unit.strip(SPACES)[:1] in {"−", *_DASHES}


def ends_description(unit: str) -> bool:
    """Whether the unit ends the description of a sound."""
    return unit.rstrip()[-1:] in _DESCRIPTION_ENDS


def is_sound(unit: str) -> bool:
    """Whether the unit begins the description of a sound, or a song, if it begins a sentence."""
    return _SOUND.match(unit.strip(SPACES)) is not None
