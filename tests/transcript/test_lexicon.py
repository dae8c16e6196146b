"""The tables of words are well formed, and hold for each language what a subtitler would say of it."""

import re
from pathlib import Path

import pytest

from app.common.languages import LANGUAGES
from app.transcript import lexicon
from app.transcript.lexicon import lexicon_of, read_tables, word_form
from tests.cases import read_cases

DATA = Path(lexicon.__file__).parent / "data"
WORDS = [
    "leaning_forward",
    "leaning_back",
    "titles",
    "months",
    "nouns_before_numbers",
    "units_of_measure",
]
ABBREVIATIONS = ["abbreviations", "ambiguous_abbreviations", "abbreviations_before_numbers"]


def words_of(table: str, language: str) -> frozenset[str]:
    words: frozenset[str] = getattr(lexicon_of(language), table)
    return words


_MAIN = "ar bg ca cs da de el en es fa fi fr he hi hr hu id it ko ms nl no pl pt ro ru sk sv tr uk ur vi"
MAIN_LANGUAGES = _MAIN.split()
# Their scripts abbreviate without a dot, or hardly ever with one.
_WITHOUT_DOTS = {"ar", "fa", "he", "ko", "ur"}
# Symbols that are punctuation; a text writes them as words of their own.
_MARKS_ALONE = {"#", "§", "§§", "%", "‰"}
_PUNCTUATION = "\"'“”«»‹›()[]{}.,;:!?¿¡…-–—"


@pytest.mark.parametrize("table", WORDS)
def test_words_are_casefolded_and_bare(table: str) -> None:
    for language in LANGUAGES:
        for word in words_of(table, language) - _MARKS_ALONE:
            assert word == word_form(word), (language, word)
            assert word == word.lstrip(_PUNCTUATION), (language, word)
            assert word == word.rstrip(_PUNCTUATION.replace("'", "")), (language, word)


@pytest.mark.parametrize("table", ABBREVIATIONS)
def test_abbreviations_are_casefolded_and_end_with_their_dot(table: str) -> None:
    for language in LANGUAGES:
        for word in words_of(table, language):
            assert word == word_form(word), (language, word)
            assert word.endswith("."), (language, word)
            assert not word.startswith(tuple(_PUNCTUATION)), (language, word)
            assert word.strip("."), (language, word)


@pytest.mark.parametrize("language", MAIN_LANGUAGES)
def test_main_languages_have_tables_of_their_own(language: str) -> None:
    assert len(lexicon_of(language).leaning_forward) > 30
    assert lexicon_of(language).months
    for table in ("nouns_before_numbers", "units_of_measure"):
        assert words_of(table, language) > words_of(table, "xx"), table
    if language != "ko":  # Korean titles follow the name
        assert lexicon_of(language).titles > lexicon_of("xx").titles
    if language not in _WITHOUT_DOTS:
        assert lexicon_of(language).abbreviations - lexicon_of("xx").abbreviations
        assert lexicon_of(language).ambiguous_abbreviations - lexicon_of("xx").ambiguous_abbreviations


def test_an_unknown_language_has_only_what_is_international() -> None:
    for table in ("leaning_forward", "leaning_back", "months"):
        assert words_of(table, "xx") == frozenset()
    assert "dr." in lexicon_of("xx").abbreviations
    assert "km" in lexicon_of("xx").units_of_measure
    assert "dr" in lexicon_of("xx").titles


def test_a_file_is_read_once() -> None:
    assert lexicon_of("en") is lexicon_of("en")


# Each entry says why a word leans both ways. None does.
LEANING_BOTH_WAYS: dict[str, set[str]] = {}


def test_no_word_leans_both_ways() -> None:
    for language in LANGUAGES:
        both = lexicon_of(language).leaning_forward & lexicon_of(language).leaning_back
        assert both == LEANING_BOTH_WAYS.get(language, set()), language


def test_an_abbreviation_is_certain_or_ambiguous_but_not_both() -> None:
    for language in [*LANGUAGES, "xx"]:
        assert not lexicon_of(language).abbreviations & lexicon_of(language).ambiguous_abbreviations, language


CASES = read_cases("words")
OTHER_CASES = read_cases("lexicon")


def cases(kind: str) -> list[tuple[str, str, str]]:
    return [(table, language, words) for table, rows in CASES[kind].items() for language, words in rows]


def test_words_that_a_table_has() -> None:
    for table, language, words in cases("has"):
        missing = {word_form(word) for word in words.split()} - words_of(table, language)
        assert not missing, (table, language)


def test_words_that_a_table_lacks() -> None:
    for table, language, words in cases("lacks"):
        found = {word_form(word) for word in words.split()} & words_of(table, language)
        assert not found, (table, language)


def test_languages_that_write_ordinals_with_a_dot() -> None:
    dotted, plain = "de da no fi cs sk hu pl tr hr sl et lv is sr bs", "en fr es it pt nl ru uk sv ko xx"
    assert all(lexicon_of(language).ordinal_dot for language in dotted.split())
    assert not any(lexicon_of(language).ordinal_dot for language in plain.split())


@pytest.mark.parametrize(("word", "form"), OTHER_CASES["forms"])
def test_the_form_of_a_word(word: str, form: str) -> None:
    assert word_form(word) == form


def test_each_file_is_of_one_of_whispers_languages() -> None:
    names = {path.stem for path in DATA.iterdir()}
    assert names - LANGUAGES.keys() == {"international"}


def test_every_file_is_well_formed() -> None:
    for path in DATA.iterdir():
        assert read_tables(path), path.stem


def test_a_new_language_needs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "international.toml").write_text((DATA / "international.toml").read_text())
    (tmp_path / "is.toml").write_text("ordinal_dot = true\nmonths = 'Janúar'\nabbreviations = 'jr.'\n")
    monkeypatch.setattr(lexicon, "_DATA", tmp_path)
    lexicon_of.cache_clear()
    try:
        icelandic = lexicon_of("is")
    finally:
        lexicon_of.cache_clear()
    assert icelandic.months == {"janúar"}
    assert icelandic.ordinal_dot
    assert "km" in icelandic.units_of_measure
    assert "jr." in icelandic.abbreviations - icelandic.ambiguous_abbreviations


def test_a_language_shares_what_its_file_lacks(tmp_path: Path) -> None:
    (tmp_path / "no.toml").write_text("titles = 'herr fru'\nmonths = 'mai'\n")
    (tmp_path / "nn.toml").write_text("same_as = 'no'\ntitles = 'herr'\n")
    assert read_tables(tmp_path / "nn.toml") == {"titles": {"herr"}, "months": {"mai"}}


def test_words_may_have_prefixes_and_other_spellings(tmp_path: Path) -> None:
    (tmp_path / "he.toml").write_text(
        "titles.words = 'a b'\ntitles.prefixes = 'x y'\ntitles.except = 'yb'\n"
        "titles.spellings = { '^x' = 'z' }\n"
    )
    assert read_tables(tmp_path / "he.toml") == {"titles": {"a", "xa", "ya", "za", "b", "xb", "zb"}}


@pytest.mark.parametrize(("content", "message"), OTHER_CASES["mistakes"])
def test_a_mistake_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "xx.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_tables(path)
