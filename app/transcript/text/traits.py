"""What a unit of text is: a number, a part of a name, an abbreviation, a word that leans. Pure."""

import re
from dataclasses import dataclass
from functools import lru_cache

from app.transcript.lexicon import lexicon_of, word_form
from app.transcript.text.scripts import SPACES

SENTENCE_ENDS = frozenset(".!?。！？．｡؟۔।॥።፧။។៕։…‼⁇⁈⁉")
GREEK_QUESTION_MARK = ";"
CLAUSE_ENDS = frozenset(",;:，、；：､،؛၊·՝፣፤–—")
PUNCTUATION = (
    "".join(sorted((SENTENCE_ENDS | CLAUSE_ENDS) - {"·"})) + "\"'’‘”“„‚«»‹›()[]{}（）「」『』【】《》〈〉¿¡-"
)
_QUOTES_AND_BRACKETS = "\"'’‘”“»«›‹)]}」』）］｝】〉》〕"

_NO_BREAK_SPACES = "\u00a0\u202f"  # French: inside quotation marks
_WITH_ELISION = frozenset({"ca", "fr", "it"})  # `l'art. 5`
_DIGITS = r"\d[\d.,:/×x-]*"
_CURRENCY = r"[A-Z]{0,3}[$€£¥₹₽₺₩₪₴₫]|EUR|USD|GBP|CHF|Rs|Rp|RM|Fr"
_ORDINAL = (
    "st|nd|rd|th|[°ºª]|er|re|ère|e|ème|nde|de|ste|:e|:a|-?(?:го|му|ми|ый|ой|ая|ое|ые|ых|ої|ій|й|я|е|м|ю|х)"
)
_NUMBER = re.compile(f"(?:[#№+−-]|{_CURRENCY}|[א-ת]{{1,2}}-)?{_DIGITS}(?:{_ORDINAL}|[%‰])?")
_KOREAN_NUMBER = re.compile(r"\d[\d.,]*[백천만억조]+")
_HAN_NUMBER = re.compile("[第数數幾几两兩〇零一二三四五六七八九十百千万萬亿億半\\d]+")
# Complete without a noun.
_AMOUNT = re.compile(f"(?:{_CURRENCY}){_DIGITS}|{_DIGITS}[%‰]|\\d{{1,2}}[.:h]\\d\\d")
_CURRENCY_SIGN = re.compile(_CURRENCY)
_STARTS_WITH_DIGIT = re.compile(r"(?:[#№$€£¥%+−]|[A-Z]{1,3}-?)?\d")  # `10.30'da`, `B12`
_YEAR = re.compile(r"[12]\d{3}")
_ROMAN = re.compile(r"(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})(?:e|er|ème|º|°)?")
# Initials, `u.a.`, `т.е.`; but a syllable of Korean is a word.
_LETTERS_WITH_DOTS = re.compile(r"(?:[^\W\d_\uac00-\ud7a3]\.)+")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff々]")
_ONE_HIRAGANA = re.compile("[ぁ-ゖ]")
_HANGUL = re.compile("[가-힣]")  # syllables, not letters
_I = re.compile(r"I(?:['’]\w+)?")  # English: a capital that is no name
_DUTCH_CLITIC = re.compile("['’‘][nstkST]")  # a sentence begins with it: `'s Avonds`
_WITH_LATE_PREPOSITIONS = frozenset({"da", "de", "en", "lb", "nl", "nn", "no", "sv"})
_LONGEST_UNKNOWN_ABBREVIATION = 3  # letters


@dataclass(frozen=True, slots=True)
class Traits:
    """What decides on the breaks beside a unit."""

    bare: str  # as the tables of words list it, without punctuation
    core: str  # without spaces, and without quotes and brackets after it
    form: str  # as the tables of abbreviations list it, with the dot
    last: str  # character of the core, or nothing
    is_lower: bool  # it begins as no sentence does
    is_capital: bool
    has_no_case: bool
    is_all_caps: bool
    has_dotted_letters: bool  # and nothing else
    is_abbreviation: bool  # that something must follow, if it does not end a sentence
    is_complete_abbreviation: bool
    begins_with_han: bool
    ends_with_han: bool
    is_one_hiragana: bool
    is_number: bool
    is_year: bool
    is_amount: bool
    is_roman: bool
    is_number_word: bool
    is_currency: bool
    starts_with_digit: bool
    precedes_number: bool
    is_month: bool
    is_unit_of_measure: bool
    leans_forward: bool
    leans_before_and: bool  # not even `and` can come after it; a Germanic preposition may end a clause
    leans_back: bool
    is_connective: bool
    is_coordinator: bool
    is_title: bool
    is_name_particle: bool  # and no word of the language
    is_in_names: bool  # a word of the language, too


@lru_cache(maxsize=8192)
def traits(unit: str, language: str) -> Traits:
    words = lexicon_of(language)
    word = unit.strip(SPACES)
    core = word.rstrip(_QUOTES_AND_BRACKETS + SPACES + _NO_BREAK_SPACES)
    naked = word.strip(PUNCTUATION + SPACES)
    bare = word_form(naked)
    if language == "he" and word[word.find(naked) + len(naked) :][:1] in ("'", "’"):
        bare += "'"  # the sign of a Hebrew abbreviation: עמ'
    abbreviation = core.lstrip(PUNCTUATION + SPACES)
    form = word_form(abbreviation)
    if language in _WITH_ELISION:
        form = form.rpartition("'")[2]
    first = next((char for char in naked if char.isalnum()), "")
    dotted = _LETTERS_WITH_DOTS.fullmatch(abbreviation) is not None
    is_initial = dotted and len(abbreviation) == 2 and first.isupper()
    is_complete = form in words.ambiguous_abbreviations and not is_initial
    is_month = bare in words.months
    leans_forward = bare in words.leaning_forward
    is_connective = bare in words.connectives
    is_coordinator = bare in words.coordinators
    is_preposition = is_connective and language not in _WITH_LATE_PREPOSITIONS
    return Traits(
        bare=bare,
        core=core,
        form=form,
        last=core[-1:],
        is_lower=_is_lower(word, naked, first, language),
        is_capital=(first.isupper() or naked[1:2].isupper())
        and not (language == "en" and _I.fullmatch(naked)),
        has_no_case=first.isalpha() and first.lower() == first.upper(),
        is_all_caps=len(naked) > 1 and naked.isupper(),
        has_dotted_letters=dotted,
        is_abbreviation=not is_complete and _is_abbreviation(bare, core, form, dotted, language),
        is_complete_abbreviation=is_complete,
        begins_with_han=_HAN.match(naked) is not None,
        ends_with_han=_HAN.match(core[-1:]) is not None,
        is_one_hiragana=_ONE_HIRAGANA.fullmatch(naked) is not None,
        is_number=_is_number(naked, language),
        is_year=_YEAR.fullmatch(bare) is not None,
        is_amount=_AMOUNT.fullmatch(naked) is not None,
        is_roman=_ROMAN.fullmatch(naked) is not None and not leans_forward,
        is_number_word=bare in words.number_words,
        is_currency=_CURRENCY_SIGN.fullmatch(naked) is not None,
        starts_with_digit=_STARTS_WITH_DIGIT.match(naked) is not None,
        precedes_number=(
            is_month or bare in words.nouns_before_numbers or form in words.abbreviations_before_numbers
        ),
        is_month=is_month,
        is_unit_of_measure=bare in words.units_of_measure,
        leans_forward=leans_forward,
        leans_before_and=leans_forward and (is_preposition or is_coordinator),
        leans_back=bare in words.leaning_back,
        is_connective=is_connective,
        is_coordinator=is_coordinator,
        is_title=bare in words.titles,
        is_name_particle=bare in words.name_particles,
        is_in_names=bare in words.particles_in_names,
    )


def _is_lower(word: str, naked: str, first: str, language: str) -> bool:
    if not first.islower() or not first.upper().isupper() or "ა" <= first <= "ჿ":  # Georgian has no capitals
        return False
    if language == "nl" and _DUTCH_CLITIC.fullmatch(word):
        return False
    return not naked[1:2].isupper()  # `iPhone`


def _is_number(naked: str, language: str) -> bool:
    if _NUMBER.fullmatch(naked):
        return True
    if language == "ko":
        return _KOREAN_NUMBER.fullmatch(naked) is not None
    return language in ("zh", "yue", "ja") and _HAN_NUMBER.fullmatch(naked) is not None


def _is_abbreviation(bare: str, core: str, form: str, dotted: bool, language: str) -> bool:
    if not core.endswith(".") or core.endswith(".."):
        return False
    if dotted:
        return not _HANGUL.match(form)
    is_short = len(bare) <= _LONGEST_UNKNOWN_ABBREVIATION
    return is_short or form in lexicon_of(language).abbreviations or _is_number(bare, language)
