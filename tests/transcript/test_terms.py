"""Names and terms in place of what the model writes."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.common.options import Options
from app.transcript.corrections import SegmentEdit, correct
from app.transcript.edited import TermedSegment, edited, replacement_entries, replacements_of
from app.transcript.speakers.splitting import split
from app.transcript.term_list import parse_terms, with_hotwords
from app.transcript.terms import Term, TermConflict, check_terms, joined_terms, replace_terms, undone
from workers.messages import SAMPLE_RATE, Segment, Word

CUBAN = (Term("Kubernetes", ("Cuban eighties",)),)


def spoken(*words: str, language: str | None = None) -> Segment:
    """A segment whose words last 0.3 s each, with 0.1 s between them."""
    step = SAMPLE_RATE // 10
    timed = tuple(
        Word(word, 4 * step * at, (4 * at + 3) * step, 0.5 + at / 100) for at, word in enumerate(words)
    )
    end = 4 * step * len(words)
    return Segment(0, end, "".join(words), (1, 2), 0.0, -0.1, 1.2, 0.01, timed, language)


def written(text: str, *terms: Term, language: str = "en") -> str:
    """A text with terms, which its words also have."""
    check_terms(terms)
    (of_text,) = replace_terms([replace(spoken(text), words=())], terms, language)
    (of_words,) = replace_terms([spoken(*re.findall(r"\s*\S+", text))], terms, language)
    assert of_text.text == of_words.text == "".join(word.text for word in of_words.words)
    return of_text.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" We use Cuban eighties.", " We use Kubernetes."),
        (" CUBAN  Eighties, and cuban eighties!", " Kubernetes, and Kubernetes!"),
        (" “Cuban eighties’s” (cuban eighties)", " “Kubernetes’s” (Kubernetes)"),
        (" the Cuban eighties-based pods", " the Kubernetes-based pods"),
        (" Cuban eightieses, a Cuban eighty, Cuban, eighties", None),
        (" McCuban eighties", None),
    ],
)
def test_whole_words_in_any_case_without_what_stands_around_them(text: str, expected: str | None) -> None:
    assert written(text, *CUBAN) == (expected or text)


@pytest.mark.parametrize(
    ("text", "heard", "write", "expected"),
    [
        ("我们用古巴八十。", "古巴八十", "库伯", "我们用库伯。"),
        ("我们用 GPT四和GPT四o。", "GPT四", "GPT-4", "我们用 GPT-4和GPT-4o。"),
        ("これはトーキョー都です", "トーキョー", "東京", "これは東京都です"),
        ("ไปกรุงเทพกันเถอะ", "กรุงเทพ", "บางกอก", "ไปบางกอกกันเถอะ"),
        ("ไปกี่คน", "ก", "ข", "ไปกี่คน"),  # a part of a character
        ("C'est l'Allemange d'Allemange.", "allemange", "Allemagne", "C'est l'Allemagne d'Allemagne."),
        ("It don't, won't O'Brien.", "t", "T", "It don't, won't O'Brien."),
        ("मैं कूबर कूबरनेट", "कूबर", "कुबेर", "मैं कुबेर कूबरनेट"),
        ("From 3.5 to 3,000", "3", "three", "From 3.5 to 3,000"),
        ("STRASSE, ﬁn", "straße", "Gasse", "Gasse, ﬁn"),
    ],
)
def test_scripts(text: str, heard: str, write: str, expected: str) -> None:
    assert written(text, Term(write, (heard,))) == expected


def test_the_longest_of_those_that_begin_together_in_one_pass() -> None:
    terms = (Term("Beta", ("alpha",)), Term("Gamma Delta", ("alpha beta", "alpha beta max")))
    assert written("alpha alpha beta alpha beta max beta", *terms) == "Beta Gamma Delta Gamma Delta beta"


def test_a_term_of_a_language_counts_there_before_those_of_all() -> None:
    terms = (Term("Kat", ("cat",)), Term("chat", ("cat",), "fr"))
    assert written("cat", *terms) == "Kat"
    assert written("cat", *terms, language="fr") == "chat"
    (mixed,) = replace_terms([spoken("cat", language="fr")], terms, "en")
    (translated,) = replace_terms([spoken("cat", language="fr")], terms, "fr", "en")
    assert (mixed.text, translated.text) == ("chat", "Kat")


def test_words_share_the_time_and_the_doubt_of_those_that_they_replace() -> None:
    before = spoken(" We", " visit", " Nu", " Jork,", " now")
    (after,) = replace_terms([before], (Term("the city of New York", ("nu jork",)),), "en")
    assert [word.text for word in after.words] == [
        *(" We", " visit", " the", " city", " of", " New", " York,"),
        " now",
    ]
    new, old = after.words[2:-1], before.words[2:4]
    assert (new[0].start, new[-1].end) == (old[0].start, old[-1].end)
    assert all(word.probability == old[0].probability for word in new)
    assert all(a.end == b.start and a.start < a.end for a, b in pairwise(new))
    assert (after.words[:2], after.words[-1]) == (before.words[:2], before.words[-1])


def test_a_segment_says_what_was_replaced_where() -> None:
    (after,) = replace_terms(
        [spoken(" Oh,", " Cuban", " eighties", " and", " Cuban", " eighties.")], CUBAN, "en"
    )
    assert replacement_entries(after) == [
        {"at": at, "write": "Kubernetes", "heard": "Cuban eighties"} for at in (4, 19)
    ]


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ((Term("New York Times", ("nyt",)), Term("Jork", ("YORK",))), "'New York Times' contains 'York'"),
        ((Term("a", ("x y",)), Term("b", ("X  Y",))), "stands for both 'a' and 'b'"),
        ((Term("Kat", ("cat",), "de"), Term("cat", ("kat",))), "'Kat' contains 'Kat', which 'cat' replaces"),
    ],
)
def test_no_term_undoes_another(terms: tuple[Term, ...], message: str) -> None:
    with pytest.raises(TermConflict, match=re.escape(message)):
        check_terms(terms)


def test_a_term_may_change_case_alone() -> None:
    terms = (Term("GitHub", ("github",)), Term("GitHub Actions", ("github actions", "get hub actions")))
    assert written("github GitHub GITHUB ACTIONS", *terms) == "GitHub GitHub GitHub Actions"


def test_an_own_list_wins_over_that_of_the_service() -> None:
    own = (Term("Open Eye Clinic", ("oec",)), Term("Motor", ("engine",)))
    common = (
        *(Term("OpenAI", ("open eye",)), Term("Kubernetes Engine", ("k e",)), Term("Machine", ("engine",))),
        Term("Whisper", ("whisker",)),
    )
    joined = joined_terms(own, common)
    check_terms([term for term in joined if term.write != "Machine"])
    assert written("oec k e engine whisker", *[term for term in joined if term.write != "Machine"]) == (
        "Open Eye Clinic k e Motor Whisper"
    )
    assert (joined_terms((), common), joined_terms(own, ())) == (common, own)


_words = st.text("aBc'é古八", min_size=1, max_size=3).filter(lambda word: any(map(str.isalnum, word)))
_texts = st.lists(st.tuples(st.sampled_from(["", " ", " (", "-"]), _words, st.sampled_from(["", ",", "'s"])))
_phrases = st.lists(_words, min_size=1, max_size=3).map(" ".join)


@st.composite
def lists(draw: st.DrawFn) -> tuple[Term, ...]:
    terms: list[Term] = []
    for term in draw(st.lists(st.builds(Term, _phrases, st.tuples(_phrases)), max_size=5)):
        try:
            check_terms([*terms, term])
        except TermConflict:
            continue
        terms.append(term)
    return tuple(terms)


@given(_texts, lists(), st.booleans())
def test_replacing_moves_no_time_happens_once_and_is_undone_exactly(
    parts: list[tuple[str, str, str]], terms: tuple[Term, ...], has_words: bool
) -> None:
    before = spoken(*map("".join, parts))
    before = before if has_words else replace(before, words=())
    (after,) = replace_terms([before], terms, "en")
    assert replace_terms([after], terms, "en") == (after,), "twice is once"
    assert (after.start, after.end, after.tokens) == (before.start, before.end, before.tokens)
    if has_words:
        assert "".join(word.text for word in after.words) == after.text
    times = {time for word in before.words for time in (word.start, word.end)}
    kept = [word for word in after.words if word in before.words]
    replaced = [word for each in replacements_of(after) for word in each.words]
    assert (
        kept + replaced and sorted([*kept, *replaced], key=lambda word: word.start) == list(before.words)
    ) or (not before.words), "words that no term replaces stay as they are"
    new = [word for word in after.words if word not in before.words]
    assert all(word.start <= word.end for word in new)
    if new:
        assert {new[0].start, new[-1].end} <= times
    assert not before.text.strip() or after.text.strip(), "speech stays speech"
    if not before.text.strip():
        assert after == before, "nothing is written where nobody speaks"
    undo = after
    for each in replacements_of(after):
        assert isinstance(undo, TermedSegment)
        undo = undone(
            undo, next(one for one in undo.replaced if one.words == each.words and one.heard == each.heard)
        )
    assert (undo.text, undo.words) == (before.text, before.words)
    assert not replacements_of(undo)


def test_a_correction_undoes_one_term_with_its_times_and_keeps_the_others() -> None:
    before = spoken(" Cuban", " eighties", " and", " Cuban", " eighties.")
    (termed,) = replace_terms([before], CUBAN, "en")
    base = edited(termed, id="0-0")
    text = "Kubernetes and Cuban eighties."
    edit = SegmentEdit(0, base.end // 16, text, "0-0")
    (after,) = correct([base], [edit], 1, base.end, [(0, base.end)]).segments
    assert (after.text.strip(), after.words[2:]) == (text, before.words[3:])
    assert replacement_entries(after) == [{"at": 0, "write": "Kubernetes", "heard": "Cuban eighties"}]
    edit = replace(edit, text="So Kubernetes, and Kubernetes.")
    (after,) = correct([base], [edit], 1, base.end, [(0, base.end)]).segments
    assert [entry["at"] for entry in replacement_entries(after)] == [19]
    assert replacement_entries(replace(after, text=" Another text")) == []


def test_who_speaks_divides_a_segment_with_its_terms() -> None:
    (termed,) = replace_terms(
        [spoken(" A", " Cuban", " eighties.", " The", " Cuban", " eighties.")], CUBAN, "en"
    )
    first, second = split(edited(termed, id="0-0"), ["S1", "S1", "S2", "S2"])
    assert [replacement_entries(part) for part in (first, second)] == [
        [{"at": at, "write": "Kubernetes", "heard": "Cuban eighties"}] for at in (2, 4)
    ]
    assert undone(second, second.replaced[0]).text == " The Cuban eighties."


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("[", "EOF"),
        ('{"data": [{"write": "", "for": ["x"]}]}', "data.0.write"),
        ('[{"write": "a\\u0000", "for": ["x"]}]', "printable"),
        ('[{"write": "a", "for": []}]', "data.0.for"),
        ('[{"write": "a", "for": ["!"]}]', "a letter or a digit"),
        ('[{"write": "a", "for": ["' + "x" * 101 + '"]}]', "100"),
        ('[{"write": "a", "for": ["x"], "pattern": true}]', "data.0.pattern"),
        ('[{"write": "a", "for": ["x"], "language": "nowhere"}]', "data.0.language"),
        ("[" + ", ".join(f'{{"write": "a{i}", "for": ["b{i}"]}}' for i in range(1001)) + "]", "1000"),
        ('[{"write": "a b", "for": ["x"]}, {"write": "c", "for": ["B"]}]', "'a b' contains 'b'"),
    ],
)
def test_what_is_wrong_with_a_list(content: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        parse_terms(content)


def test_terms_as_hotwords_are_few() -> None:
    terms = tuple(Term(f"Name {number}", ("x",)) for number in range(30))
    assert with_hotwords(Options(hotwords="Zürich"), terms[:2]).hotwords == "Zürich, Name 0, Name 1"
    hotwords = with_hotwords(Options(), terms).hotwords or ""
    assert hotwords.split(", ") == [f"Name {number}" for number in range(20)]
    assert len(with_hotwords(Options(hotwords="x" * 3995), terms).hotwords or "") == 3995
