"""Tables of words by language, which say where a line or cue should not break and where a sentence ends.

Each language has a file in `data`; `data/international.toml` says what the tables hold.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.common.languages import LANGUAGES

_DATA = Path(__file__).parent / "data"

# Vowel points that Arabic and Hebrew texts may leave out, Arabic's stretching sign, and marks of direction.
_OPTIONAL_SIGNS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
    "\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_QUOTES = str.maketrans({"’": "'", "ʼ": "'", "‘": "'", "׳": "'", "״": '"', "”": '"', "“": '"'})

_CERTAIN, _AMBIGUOUS = "abbreviations", "ambiguous_abbreviations"

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The tables of a language, with the international words.

    They hold words in the form that `word_form` gives, so a look-up passes a word through `word_form` first.
    """

    leaning_forward: Words  # nothing should break after one
    leaning_back: Words  # nothing should break before one
    connectives: Words  # a break before one is good
    coordinators: Words  # such as "and"
    titles: Words  # before a name
    name_particles: Words  # that stand only in names
    particles_in_names: Words  # other words of the language, too
    months: Words
    number_words: Words
    nouns_before_numbers: Words
    units_of_measure: Words  # after a number
    abbreviations: Words  # whose dot never ends a sentence
    ambiguous_abbreviations: Words  # whose dot may end a sentence; none is in `abbreviations`
    abbreviations_before_numbers: Words  # whose dot ends no sentence if a number follows
    ordinal_dot: bool  # whether the language writes "fifth" as `5.`


_WORD_TABLES = frozenset(Lexicon.__dataclass_fields__) - {"ordinal_dot"} | {"not_name_particles"}
_PARTS = {"words": str, "prefixes": str, "except": str, "spellings": dict}


def word_form(word: str) -> str:
    """The word as the tables list it: casefolded, composed, with plain quotes, without vowel points.

    The Turkish capital İ becomes a plain i. Punctuation around the word stays.
    """
    plain = _OPTIONAL_SIGNS.sub("", unicodedata.normalize("NFC", word)).translate(_QUOTES)
    return unicodedata.normalize("NFC", plain.casefold().replace("i\u0307", "i"))


@lru_cache(maxsize=len(LANGUAGES))
def lexicon_of(language: str) -> Lexicon:
    """The tables of a language, by Whisper's code. One without a file has the international words only."""
    file = f"{language}.toml"
    own = read_tables(_DATA / file) if language in LANGUAGES and (_DATA / file).exists() else {}
    tables = read_tables(_DATA / "international.toml")
    for name, words in own.items():
        tables[name] |= words
    for kind, other in (_CERTAIN, _AMBIGUOUS), (_AMBIGUOUS, _CERTAIN):
        tables[kind] -= own.get(other, frozenset())  # the language moves it from one table to the other
    ordinary = tables["leaning_forward"] | tables["leaning_back"] | tables["connectives"]
    tables["name_particles"] -= ordinary | tables.pop("not_name_particles")
    return Lexicon(**tables)


def read_tables(path: Path) -> dict[str, Any]:
    """The tables in a file, with those that it takes over from another language, by their names in `Lexicon`.

    Raises ValueError with the name of the file, the table and the word if something is wrong.
    """
    try:
        listed = tomllib.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    base = listed.pop("same_as", None)
    tables = {} if base is None else read_tables(path.with_name(f"{base}.toml"))
    for name, value in listed.items():
        where = f"{path.name}: {name}"
        if name == "ordinal_dot" and isinstance(value, bool):
            tables[name] = value
        elif name in _WORD_TABLES:
            tables[name] = _words(where, value)
        else:
            raise ValueError(f"{where} = {value!r} is no table of words")
    return tables


def _words(where: str, listed: object) -> Words:
    """The words of a table, which is a text, or a text and what may be written to its words."""
    parts: dict[str, Any] = listed if isinstance(listed, dict) else {"words": listed}
    for part, value in parts.items():
        if not isinstance(value, _PARTS.get(part, ())):
            raise ValueError(f"{where}: {part} = {value!r} is neither words nor what may be written to them")
    if "words" not in parts:
        raise ValueError(f"{where} has no words")
    listed_words = parts["words"].split()
    twice = Counter(map(word_form, listed_words)) - Counter(set(map(word_form, listed_words)))
    if twice:
        raise ValueError(f"{where} has {', '.join(twice)} twice")
    prefixes = ["", *parts.get("prefixes", "").split()]
    words = {prefix + word for word in listed_words for prefix in prefixes}
    words.difference_update(parts.get("except", "").split())
    rules = parts.get("spellings", {}).items()
    respelled = {re.sub(pattern, other, word) for pattern, other in rules for word in words}
    return frozenset(map(word_form, words | respelled))
