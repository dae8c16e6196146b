"""The tables of words are well formed, and hold for each language what a subtitler would say of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.languages import LANGUAGES
from app.transcript import lexicon
from app.transcript.lexicon import (
    abbreviations,
    abbreviations_before_numbers,
    ambiguous_abbreviations,
    leaning_back,
    leaning_forward,
    months,
    nouns_before_numbers,
    titles,
    units_of_measure,
    word_form,
    writes_ordinals_with_dot,
)

WORDS = [leaning_forward, leaning_back, titles, months, nouns_before_numbers, units_of_measure]
ABBREVIATIONS = [abbreviations, ambiguous_abbreviations, abbreviations_before_numbers]
Table = Callable[[str], frozenset[str]]

_MAIN = "ar bg ca cs da de el en es fa fi fr he hi hr hu id it ko ms nl no pl pt ro ru sk sv tr uk ur vi"
MAIN_LANGUAGES = _MAIN.split()
# Their scripts abbreviate without a dot, or hardly ever with one.
_WITHOUT_DOTS = {"ar", "fa", "he", "ko", "ur"}
# Symbols that are punctuation; a text writes them as words of their own.
_MARKS_ALONE = {"#", "§", "§§", "%", "‰"}
_PUNCTUATION = "\"'“”«»‹›()[]{}.,;:!?¿¡…-–—"


@pytest.mark.parametrize("table", WORDS)
def test_words_are_casefolded_and_bare(table: Table) -> None:
    for language in LANGUAGES:
        for word in table(language) - _MARKS_ALONE:
            assert word == word_form(word), (language, word)
            assert word == word.lstrip(_PUNCTUATION), (language, word)
            assert word == word.rstrip(_PUNCTUATION.replace("'", "")), (language, word)


@pytest.mark.parametrize("table", ABBREVIATIONS)
def test_abbreviations_are_casefolded_and_end_with_their_dot(table: Table) -> None:
    for language in LANGUAGES:
        for word in table(language):
            assert word == word_form(word), (language, word)
            assert word.endswith("."), (language, word)
            assert not word.startswith(tuple(_PUNCTUATION)), (language, word)
            assert word.strip("."), (language, word)


@pytest.mark.parametrize("language", MAIN_LANGUAGES)
def test_main_languages_have_tables_of_their_own(language: str) -> None:
    assert len(leaning_forward(language)) > 30
    assert months(language)
    for table in (nouns_before_numbers, units_of_measure):
        assert table(language) > table("xx"), table
    if language != "ko":  # Korean titles follow the name
        assert titles(language) > titles("xx")
    if language not in _WITHOUT_DOTS:
        assert abbreviations(language) - abbreviations("xx")
        assert ambiguous_abbreviations(language) - ambiguous_abbreviations("xx")


def test_an_unknown_language_has_only_what_is_international() -> None:
    for table in (leaning_forward, leaning_back, months):
        assert table("xx") == frozenset()
    assert "dr." in abbreviations("xx")
    assert "km" in units_of_measure("xx")
    assert "dr" in titles("xx")


def test_tables_are_built_once() -> None:
    for table in WORDS + ABBREVIATIONS:
        assert table("en") is table("en")


# Each entry says why a word leans both ways. None does.
LEANING_BOTH_WAYS: dict[str, set[str]] = {}


def test_no_word_leans_both_ways() -> None:
    for language in LANGUAGES:
        both = leaning_forward(language) & leaning_back(language)
        assert both == LEANING_BOTH_WAYS.get(language, set()), language


def test_an_abbreviation_is_certain_or_ambiguous_but_not_both() -> None:
    for language in [*LANGUAGES, "xx"]:
        assert not abbreviations(language) & ambiguous_abbreviations(language), language


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
    missing = {word_form(word) for word in words.split()} - leaning_forward(language)
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
    missing = {word_form(word) for word in words.split()} - leaning_back(language)
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
    listed = {word_form(word) for word in words.split()} & leaning_forward(language)
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
    assert set(certain.split()) - abbreviations(language) == set()
    assert set(ambiguous.split()) - ambiguous_abbreviations(language) == set()


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
    assert set(words.split()) & abbreviations(language) == set()


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
    assert set(words.split()) - abbreviations_before_numbers(language) == set()


@pytest.mark.parametrize(
    ("table", "language", "words"),
    [
        (titles, "ar", "الدكتور السيد"),
        (titles, "de", "herr frau dr prof"),
        (titles, "en", "mr captain uncle st president"),
        (titles, "fr", "m mme monsieur saint"),
        (titles, "he", 'ד"ר מר'),
        (titles, "hi", "डॉ श्री"),
        (titles, "pl", "pan pani"),
        (titles, "ru", "господин г-н"),
        (nouns_before_numbers, "de", "seite kapitel nr zimmer"),
        (nouns_before_numbers, "en", "page chapter room section version"),
        (nouns_before_numbers, "xx", "§ nr no"),
        (units_of_measure, "de", "meter prozent uhr millionen jahre km °c"),
        (units_of_measure, "en", "miles percent dollars hours million pm years %"),
        (units_of_measure, "ru", "метров рублей тысяч лет процентов"),
        (units_of_measure, "pl", "złotych lat kilometrów"),
        (units_of_measure, "ko", "년 월 명 번째 퍼센트"),
        (months, "de", "januar mai"),
        (months, "ru", "января январь январе"),
        (months, "pl", "maja maj maju"),
        (months, "cs", "ledna leden"),
        (months, "el", "Ιανουαρίου Μάρτιος"),
    ],
)
def test_what_belongs_to_names_and_numbers(table: Table, language: str, words: str) -> None:
    assert {word_form(word) for word in words.split()} - table(language) == set()


def test_languages_that_write_ordinals_with_a_dot() -> None:
    dotted, plain = "de da no fi cs sk hu pl tr hr sl et lv is sr bs", "en fr es it pt nl ru uk sv ko xx"
    assert all(map(writes_ordinals_with_dot, dotted.split()))
    assert not any(map(writes_ordinals_with_dot, plain.split()))


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


def test_the_tables_are_modules_which_every_wheel_contains() -> None:
    folder = Path(lexicon.__file__).parent
    others = {path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".py"}
    assert others == {"LICENSE-Unicode.txt"}  # `test_release` finds it in the wheel
    assert (folder / "__init__.py").exists()
