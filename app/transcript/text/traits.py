"""What a unit of text is: a number, a part of a name, an abbreviation, a word that leans. Pure."""

import re
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


class Traits:
    """What decides on the breaks beside a unit."""

    def __init__(self, unit: str, language: str) -> None:
        words = lexicon_of(language)
        word = unit.strip(SPACES)
        naked = word.strip(PUNCTUATION + SPACES)
        self.core = word.rstrip(_QUOTES_AND_BRACKETS + SPACES + _NO_BREAK_SPACES)
        self.last = self.core[-1:]  # character, or nothing
        self.bare = word_form(naked)  # as the tables of words list it, without punctuation
        if language == "he" and word[word.find(naked) + len(naked) :][:1] in ("'", "’"):
            self.bare += "'"  # the sign of a Hebrew abbreviation: עמ'
        bare = self.bare
        abbreviation = self.core.lstrip(PUNCTUATION + SPACES)
        self.form = word_form(abbreviation)  # as the tables of abbreviations list it, with the dot
        if language in _WITH_ELISION:
            self.form = self.form.rpartition("'")[2]

        first = next((char for char in naked if char.isalnum()), "")
        self.is_lower = _is_lower(word, naked, first, language)  # it begins as no sentence does
        self.is_capital = (first.isupper() or naked[1:2].isupper()) and not (
            language == "en" and _I.fullmatch(naked)
        )
        self.has_no_case = first.isalpha() and first.lower() == first.upper()
        self.is_all_caps = len(naked) > 1 and naked.isupper()
        self.has_dotted_letters = _LETTERS_WITH_DOTS.fullmatch(abbreviation) is not None  # and nothing else
        is_initial = self.has_dotted_letters and len(abbreviation) == 2 and first.isupper()
        self.is_complete_abbreviation = self.form in words.ambiguous_abbreviations and not is_initial
        # That something must follow, if it does not end a sentence.
        self.is_abbreviation = not self.is_complete_abbreviation and _is_abbreviation(
            bare, self.core, self.form, self.has_dotted_letters, language
        )
        self.begins_with_han = _HAN.match(naked) is not None
        self.ends_with_han = _HAN.match(self.last) is not None
        self.is_one_hiragana = _ONE_HIRAGANA.fullmatch(naked) is not None

        self.is_month = bare in words.months
        self.leans_forward = bare in words.leaning_forward
        self.leans_back = bare in words.leaning_back
        self.is_connective = bare in words.connectives
        self.is_coordinator = bare in words.coordinators
        is_preposition = self.is_connective and language not in _WITH_LATE_PREPOSITIONS
        # Not even `and` can come after it; a Germanic preposition may end a clause.
        self.leans_before_and = self.leans_forward and (is_preposition or self.is_coordinator)
        self.is_title = bare in words.titles
        self.is_name_particle = bare in words.name_particles  # and no word of the language
        self.is_in_names = bare in words.particles_in_names  # a word of the language, too

        self.is_number = _is_number(naked, language)
        self.is_year = _YEAR.fullmatch(bare) is not None
        self.is_amount = _AMOUNT.fullmatch(naked) is not None
        self.is_roman = _ROMAN.fullmatch(naked) is not None and not self.leans_forward
        self.is_number_word = bare in words.number_words
        self.is_currency = _CURRENCY_SIGN.fullmatch(naked) is not None
        self.starts_with_digit = _STARTS_WITH_DIGIT.match(naked) is not None
        self.is_unit_of_measure = bare in words.units_of_measure
        self.precedes_number = (
            self.is_month
            or bare in words.nouns_before_numbers
            or self.form in words.abbreviations_before_numbers
        )


traits = lru_cache(maxsize=8192)(Traits)  # of a unit in a language; nobody changes them


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
