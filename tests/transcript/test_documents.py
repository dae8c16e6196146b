"""Transcripts for readers: Word documents, Markdown and text."""

import json
import random
import tracemalloc
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from document_readers import READERS
from docx import Document
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transcript_cases import DATA, raw_segment, samples

from app.common.options import Options
from app.transcript.edited import EditedSegment
from app.transcript.formats import DOCUMENT_FORMATS
from app.transcript.formats.common import plain_line
from app.transcript.packed import PackedSegments
from app.transcript.paragraphs import paragraphs_of
from app.transcript.rendering import render_transcript
from app.transcript.text.speaker_text import shown_name
from app.transcript.timeline import Transcript
from tests.office import as_text
from workers.messages import Segment, Word


def by(speaker: str | None, start: float, end: float, text: str) -> EditedSegment:
    plain = raw_segment(samples(start), samples(end), text)
    return EditedSegment(*(getattr(plain, name) for name in Segment.__slots__), speaker=speaker)


def transcript(*segments: Segment, language: str = "en") -> Transcript:
    return Transcript("transcribe", "demo", language, samples(4000), (), segments)


TALK = transcript(
    by("Ann", 0.5, 2, " Are you coming?"),
    by("Ann", 2, 3, " We are late."),
    by("Bob", 3661, 3662, " In a <b>minute</b> & not *before*."),
    by(None, 3662, 3663, " 1. Then we go."),
)


def paragraphs(file_format: str, of: Transcript = TALK, title: str = "", **options: object) -> list[str]:
    """The paragraphs of a document as its reader has them."""
    file = render_transcript(of, Options.model_validate(options), file_format, title=title)
    return READERS[file_format](file)


@pytest.mark.parametrize("file_format", ["docx", "md"])
def test_documents_have_a_title_and_a_paragraph_for_each_turn(file_format: str) -> None:
    assert paragraphs(file_format, title="A\u202e talk\n#1 *") == [
        "A talk #1 *",
        "Ann: Are you coming? We are late.",
        "Bob: In a <b>minute</b> & not *before*.",
        "1. Then we go.",
    ]
    assert paragraphs(file_format, times=True) == [
        "[00:00:00] Ann: Are you coming? We are late.",
        "[01:01:01] Bob: In a <b>minute</b> & not *before*.",
        "[01:01:02] 1. Then we go.",
    ]
    assert paragraphs(file_format, speakers=False)[0] == "Are you coming? We are late."
    assert paragraphs(file_format, transcript()) == []


def test_text_has_times_and_speakers_as_asked_for() -> None:
    assert paragraphs("txt", times=True) == [
        "[00:00:00] Ann: Are you coming?",
        "[00:00:02] We are late.",
        "[01:01:01] Bob: In a <b>minute</b> & not *before*.",
        "[01:01:02] 1. Then we go.",
    ]
    assert paragraphs("txt", speakers=False)[0] == "Are you coming?"


def test_lines_and_paragraphs_are_numbered() -> None:
    lines = paragraphs("txt", numbered=True, times=True)
    assert lines[0] == "1. [00:00:00] Ann: Are you coming?"
    assert lines[3] == "4. [01:01:02] 1. Then we go."
    assert paragraphs("docx", numbered=True)[1] == "2. Bob: In a <b>minute</b> & not *before*."
    file = render_transcript(TALK, Options(numbered=True), "md").decode()
    assert file.split("\n\n")[2] == "3. 1\\. Then we go.\n", "an item of an ordered list"


def spaced(*words: tuple[str, float, float], speaker: str | None = None) -> EditedSegment:
    """A segment of words with these times (s)."""
    timed = tuple(Word(text, samples(start), samples(end), 1.0) for text, start, end in words)
    whole = by(speaker, words[0][1], words[-1][2], "".join(word.text for word in timed))
    return replace(whole, words=timed)


@pytest.mark.parametrize("file_format", DOCUMENT_FORMATS)
def test_pauses_are_marked_where_they_end(file_format: str) -> None:
    asked = spaced((" And", 1, 1.2), (" then?", 4.4, 5), speaker="Ann")
    said = spaced((" I", 6, 6.1), (" left.", 6.59, 7), speaker="Bob")
    alone = by("Bob", 7.5, 8, " Alone.")
    of = transcript(asked, said, alone)
    marked = " ".join(paragraphs(file_format, of, mark_pauses_s=0.5))
    assert marked == "Ann: And (3.2) then? Bob: (1.0) I left. (0.5) Alone."
    assert "(" not in " ".join(paragraphs(file_format, of, mark_pauses_s=5))


def test_pauses_between_the_words_of_two_speakers_in_one_segment() -> None:
    both = spaced((" Well", 0, 1), (" no.", 2, 3), (" Yes.", 5, 6), speaker="Ann")
    of = transcript(replace(both, turns=((2, "Bob"),)))
    assert paragraphs("txt", of, mark_pauses_s=1) == ["Ann: Well (1.0) no.", "Bob: (2.0) Yes."]


def test_what_was_not_transcribed_is_no_pause() -> None:
    of = transcript(by(None, 0, 1, " One."), by(None, 60, 61, " Two."), by(None, 63, 64, " Three."))
    of = replace(of, failed_spans=((samples(2), samples(50)),))
    assert paragraphs("txt", of, mark_pauses_s=1) == ["One.", "Two.", "(2.0) Three."]


def test_a_pause_in_a_script_without_spaces() -> None:
    japanese = transcript(spaced(("吾輩は", 0, 1), ("猫", 3, 4), ("である", 4, 5)), language="ja")
    assert paragraphs("md", japanese, mark_pauses_s=1) == ["吾輩は (2.0) 猫である"]


def test_lines_of_a_script_without_spaces_are_joined_without_one() -> None:
    japanese = transcript(
        by(None, 0, 1, "吾輩は猫である。"), by(None, 1, 2, "名前はまだ無い。"), language="ja"
    )
    assert paragraphs("md", japanese) == ["吾輩は猫である。名前はまだ無い。"]


def test_a_document_knows_its_title_its_language_and_its_direction() -> None:
    hebrew = transcript(by("דנה", 0, 1, "שלום, Windows!"), language="he")
    file = render_transcript(hebrew, Options(), "docx", title="שיחה")
    document = Document(BytesIO(file))
    properties = document.core_properties
    assert (properties.title, properties.language, properties.author) == ("שיחה", "he", "")
    assert [paragraph.style.name for paragraph in document.paragraphs] == ["Title", "Normal"]
    assert [run.style.name for run in document.paragraphs[1].runs] == ["Speaker", "Default Paragraph Font"]
    assert [run.font.rtl for run in document.paragraphs[1].runs] == [True, True]
    assert file == render_transcript(hebrew, Options(), "docx", title="שיחה")


CASES = json.loads((DATA / "paragraphs.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_paragraphs_end_where_those_of_the_page_do(case: dict) -> None:  # type: ignore[type-arg]
    segments = [
        replace(
            by(one["speaker"], one["start"], one["end"], one["text"] * one.get("repeat", 1)),
            language=one.get("language"),
        )
        for one in case["segments"]
    ]
    failed = tuple((samples(span["start"]), samples(span["end"])) for span in case["failed"])
    found = paragraphs_of(replace(transcript(*segments), failed_spans=failed))
    left = [plain_line(segment.text) for segment in segments]
    for count, paragraph in zip(case["paragraphs"], found, strict=True):
        assert paragraph.text == " ".join(left[:count])
        del left[:count]
    assert not left


MARKUP = (
    *(
        "# a",
        "- a",
        "1) a",
        "1. a",
        "***",
        "---",
        "===",
        "    a",
        "> a",
        "```",
        "[a]: b",
        "a\\",
        "&amp;",
        "+",
    ),
    *(
        "![a](b)",
        "<i>a</i>",
        "https://a.b",
        "<https://a.b>",
        "a  ",
        "~~~",
        "&#35;",
        "|a|\n|-|",
        "a\nb",
        "\uffff",
    ),
)
texts = st.one_of(
    st.text(max_size=30),
    st.text("*_`[]()<>&#+-.!|~$\\:=\"'ab1 \t\n\r\0\u2028", max_size=30),
    st.sampled_from(MARKUP),
)
Spoken = list[tuple[str, str]]  # texts, and who speaks them


def check(file_format: str, spoken: Spoken, title: str, times: bool, speakers: bool) -> None:
    """All of it comes back as text, whatever it looks like."""
    segments = [by(name, 3 * at, 3 * at + 1, text) for at, (text, name) in enumerate(spoken)]
    expected = [plain_line(shown_name(title))]
    for at, (text, name) in enumerate(spoken):
        shown = plain_line(f"{shown_name(name)}:") if speakers and shown_name(name) else ""
        time = f"[00:{at // 20:02}:{3 * at % 60:02}]" if times else ""
        if line := plain_line(text):
            expected.append(" ".join(filter(None, [time, shown, line])))
    found = paragraphs(file_format, transcript(*segments), title, times=times, speakers=speakers)
    assert found == list(filter(None, expected))


@given(st.lists(st.tuples(texts, texts), max_size=4), texts, st.booleans(), st.booleans())
@example([("C# #", "#")], "# #", False, True)
def test_markdown_gives_any_text_back(spoken: Spoken, title: str, times: bool, speakers: bool) -> None:
    check("md", spoken, title, times, speakers)


@given(st.lists(st.tuples(texts, texts), min_size=5, max_size=20))
@settings(max_examples=10)  # python-docx takes its time
def test_word_gives_any_text_back(spoken: Spoken) -> None:
    check("docx", [*spoken, *((text, text) for text in MARKUP)], spoken[0][0], True, True)


def long_talk() -> Transcript:
    """Ten hours of conversation: 90,000 words in 10,000 segments."""
    drawn = random.Random(1)
    words = [f"word{number}" for number in range(4000)]
    segments = [
        by(drawn.choice(("Ann", "Bob")), 3.6 * at, 3.6 * at + 3.5, f" {' '.join(drawn.choices(words, k=9))}.")
        for at in range(10_000)
    ]
    packed = PackedSegments()
    packed.extend(segments)
    return replace(transcript(), samples=samples(36_000), segments=packed)


@pytest.mark.parametrize("file_format", DOCUMENT_FORMATS)
def test_ten_hours_take_little_memory(file_format: str) -> None:
    talk = long_talk()
    render_transcript(TALK, Options(), file_format)  # loads the library
    tracemalloc.start()
    file = render_transcript(talk, Options(), file_format, title="Ten hours")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(file) > 100_000
    assert peak < 25 << 20  # of which the segments are most, as they are for any format


@pytest.mark.soak  # LibreOffice is a large package
def test_libreoffice_opens_documents(tmp_path: Path) -> None:
    short = tmp_path / "short.docx"
    short.write_bytes(render_transcript(TALK, Options(times=True), "docx", title="A talk"))
    assert as_text(short) == ["A talk", *paragraphs("docx", times=True)]
    long = tmp_path / "long.docx"
    long.write_bytes(render_transcript(long_talk(), Options(), "docx"))
    assert as_text(long) == paragraphs("docx", long_talk())
