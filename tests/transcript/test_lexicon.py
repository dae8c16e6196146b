"""The tables of words are well formed, and hold for each language what a subtitler would say of it."""

import re
from pathlib import Path

import pytest

from app.languages import LANGUAGES
from app.transcript import lexicon
from app.transcript.lexicon import lexicon_of, read_tables, word_form

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


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("ar", "في من على إلى أن لم لن التي هذا كل وفي ففي ولا وأن لأن والتي ان في فى"),
        ("bg", "и на че да не ще който"),
        ("ca", "el i que de no amb"),
        ("cs", "a že v na který před s z ten"),
        ("da", "og at i på som den ikke har"),
        ("de", "der dem und dass im zum nicht wenn ich für sehr keine deren"),
        ("el", "ο του και στην δεν θα που"),
        ("en", "the a of in to and that because he i'm it's very not would each my"),
        ("es", "el un del y que muy no se su con ha"),
        ("fa", "و که در از به این می"),
        ("fi", "ja että en joka mutta"),
        ("fr", "le du des ce qui ne je très aux qu'il d'une d l"),
        ("he", "של את על לא כי אם אבל זה והוא ולא שהוא"),
        ("hi", "और या कि जो एक इस हर नहीं बहुत"),
        ("hr", "i u na da koji"),
        ("hu", "a az és hogy nem egy"),
        ("id", "dan yang di ke untuk tidak"),
        ("it", "il della nel che non un si perché"),
        ("ko", "이 그 한 두 안 못 더 가장 그리고 어떤"),
        ("ms", "dan yang di daripada tidak"),
        ("nl", "de het een en dat van te niet"),
        ("no", "og å i på som ikke"),
        ("pl", "i w na że który nie do z bardzo"),
        ("pt", "o da no que não e se um"),
        ("ro", "și în la nu de că să"),
        ("ru", "и в на что не который я он очень мой"),
        ("sk", "a že v na ktorý nie"),
        ("sv", "och att i på som inte"),
        ("tr", "ve bir bu en çok daha ama çünkü her"),
        ("uk", "і в на що не який я дуже"),
        ("ur", "اور کہ جو ایک اس"),
        ("vi", "của và những một không rất đã"),
    ],
)
def test_words_that_lean_forward(language: str, words: str) -> None:
    missing = {word_form(word) for word in words.split()} - lexicon_of(language).leaning_forward
    assert missing == set()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("ar", "جدا"),
        ("cs", "se jsem bych"),
        ("en", "ago o'clock"),
        ("fa", "را است"),
        ("fi", "kanssa jälkeen"),
        ("fr", "pas"),
        ("he", "הזה שלי"),
        ("hi", "का को में से ने है था भी लिए वाला"),
        ("hr", "se li sam"),
        ("hu", "után között miatt is"),
        ("ko", "것은 수 때문에 만큼 있습니다 같아요 않고"),
        ("pl", "się"),
        ("ru", "же ли бы"),
        ("sk", "sa som"),
        ("tr", "için ile gibi mi mısın de da ki değil sonra bey"),
        ("uk", "же би"),
        ("ur", "کا کو میں نے ہے"),
        ("vi", "này"),
    ],
)
def test_words_that_lean_back(language: str, words: str) -> None:
    missing = {word_form(word) for word in words.split()} - lexicon_of(language).leaning_back
    assert missing == set()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        # particles and verbs at the end of a clause, and pronouns that are objects
        ("de", "sein haben kann ab"),
        ("en", "up down off out me him them is was much"),
        ("es", "sí está"),
        ("fr", "plus moi"),
        ("hi", "है का"),
        ("ko", "것 있다"),
        ("nl", "zijn kan"),
        ("tr", "için ki"),
    ],
)
def test_words_that_may_end_a_clause_do_not_lean_forward(language: str, words: str) -> None:
    listed = {word_form(word) for word in words.split()} & lexicon_of(language).leaning_forward
    assert listed == set()


@pytest.mark.parametrize(
    ("language", "certain", "ambiguous"),
    [
        ("cs", "např. tzv. sv.", "atd. apod."),
        ("da", "f.eks. bl.a. dvs.", "osv. kr."),
        ("de", "z.b. z. d.h. bzw. ggf. sog. hr. dr.", "usw. u.ä. mio. chr."),
        ("el", "π.χ. κ.", "κλπ. μ.μ."),
        ("en", "mr. mrs. dr. st. approx. e.g. i.e. vs. gen.", "etc. a.m. p.m. inc. jr. u.s."),
        ("es", "sr. sra. d. p.ej. av.", "etc. ee.uu. s.a."),
        ("fi", "esim. ns.", "jne."),
        ("fr", "m. mme. p.ex. st.", "etc. j.-c. cie."),
        ("hi", "डॉ. श्री.", "ई."),
        ("hu", "pl. ún. ifj.", "stb."),
        ("it", "sig. dott. avv.", "ecc. s.p.a."),
        ("nl", "bijv. d.w.z. dhr.", "enz."),
        ("no", "f.eks. bl.a.", "osv."),
        ("pl", "np. tzw. ul. św. prof.", "itd. r. tys."),
        ("pt", "sr. dra. p.ex.", "etc. ltda."),
        ("ro", "dl. str.", "etc. ș.a.m.d."),
        ("ru", "т.е. г-н. ул. напр. св.", "т.д. т.п. гг. руб. тыс."),
        ("sk", "napr. tzv.", "atď."),
        ("sv", "t.ex. bl.a.", "osv."),
        ("tr", "bkz. örn. sn. dr. prof.", "vb. vs."),
        ("uk", "т.зв. вул. див.", "т.д. грн."),
        ("xx", "dr. prof.", "etc. inc."),
    ],
)
def test_abbreviations_of_a_language(language: str, certain: str, ambiguous: str) -> None:
    assert set(certain.split()) - lexicon_of(language).abbreviations == set()
    assert set(ambiguous.split()) - lexicon_of(language).ambiguous_abbreviations == set()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", "mag. so. am. max. sein."),
        ("en", "no. in. is. am. art. fig. sun. mar. may. do. or. to. up."),
        ("es", "da. col. rol. sol. mar."),
        ("fr", "col. cap. bd. mer. jeu."),
        ("id", "ibu."),
        ("it", "don. mare."),
        ("pl", "im. ok. lek. to."),
        ("pt", "com. mar. ex."),
        ("ru", "им. рис. полк. да."),
        ("tr", "vs. bul. haz. gör."),
        ("xx", "no. in. am."),
    ],
)
def test_words_that_end_sentences_are_no_certain_abbreviations(language: str, words: str) -> None:
    assert set(words.split()) & lexicon_of(language).abbreviations == set()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", "nr. s. kap. abs."),
        ("en", "no. p. vol. fig. ch. mar. sun."),
        ("es", "núm. pág."),
        ("ru", "стр. гл. рис."),
        ("xx", "no. nr. p."),
    ],
)
def test_abbreviations_that_a_number_follows(language: str, words: str) -> None:
    assert set(words.split()) - lexicon_of(language).abbreviations_before_numbers == set()


@pytest.mark.parametrize(
    ("table", "language", "words"),
    [
        ("titles", "ar", "الدكتور السيد"),
        ("titles", "de", "herr frau dr prof"),
        ("titles", "en", "mr captain uncle st president"),
        ("titles", "fr", "m mme monsieur saint"),
        ("titles", "he", 'ד"ר מר'),
        ("titles", "hi", "डॉ श्री"),
        ("titles", "pl", "pan pani"),
        ("titles", "ru", "господин г-н"),
        ("nouns_before_numbers", "de", "seite kapitel nr zimmer"),
        ("nouns_before_numbers", "en", "page chapter room section version"),
        ("nouns_before_numbers", "xx", "§ nr no"),
        ("units_of_measure", "de", "meter prozent uhr millionen jahre km °c"),
        ("units_of_measure", "en", "miles percent dollars hours million pm years %"),
        ("units_of_measure", "ru", "метров рублей тысяч лет процентов"),
        ("units_of_measure", "pl", "złotych lat kilometrów"),
        ("units_of_measure", "ko", "년 월 명 번째 퍼센트"),
        ("months", "de", "januar mai"),
        ("months", "ru", "января январь январе"),
        ("months", "pl", "maja maj maju"),
        ("months", "cs", "ledna leden"),
        ("months", "el", "Ιανουαρίου Μάρτιος"),
    ],
)
def test_what_belongs_to_names_and_numbers(table: str, language: str, words: str) -> None:
    assert {word_form(word) for word in words.split()} - words_of(table, language) == set()


def test_languages_that_write_ordinals_with_a_dot() -> None:
    dotted, plain = "de da no fi cs sk hu pl tr hr sl et lv is sr bs", "en fr es it pt nl ru uk sv ko xx"
    assert all(lexicon_of(language).ordinal_dot for language in dotted.split())
    assert not any(lexicon_of(language).ordinal_dot for language in plain.split())


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("The", "the"),
        ("I’m", "i'm"),
        ("İçin", "için"),
        ("STRASSE", "strasse"),
        ("cafe\u0301", "café"),
        ("פרופ׳", "פרופ'"),
        ("ד״ר", 'ד"ר'),
        ("فِي", "في"),
        ("لـكن", "لكن"),
        ("\u200fשל", "של"),
        ("שֶׁל", "של"),
    ],
)
def test_the_form_of_a_word(word: str, form: str) -> None:
    assert word_form(word) == form


def test_each_file_is_of_one_of_whispers_languages() -> None:
    names = {path.stem for path in DATA.iterdir()}
    assert names - LANGUAGES.keys() == {"international"}


@pytest.mark.parametrize("path", sorted(DATA.iterdir()), ids=lambda path: path.stem)
def test_every_file_is_well_formed(path: Path) -> None:
    assert read_tables(path)


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("title = 'herr'", "xx.toml: title = 'herr' is no table of words"),
        ("ordinal_dot = 'yes'", "xx.toml: ordinal_dot = 'yes' is no table of words"),
        ("titles = 3", "xx.toml: titles: words = 3 is neither words nor what may be written to them"),
        ("titles = ['herr']", "xx.toml: titles: words = ['herr'] is neither"),
        ("titles.prefixes = 'x'", "xx.toml: titles has no words"),
        ("titles.word = 'x'", "xx.toml: titles: word = 'x' is neither"),
        ("titles = 'Herr frau herr'", "xx.toml: titles has herr twice"),
        ("titles = 'herr'\ntitles = 'frau'", "xx.toml: Cannot overwrite a value"),
        ("titles = 'herr", "xx.toml: "),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "xx.toml"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_tables(path)
