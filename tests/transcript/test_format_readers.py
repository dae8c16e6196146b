"""Read each format with a library that is not ours: it finds the text and times, whatever the text."""

import csv
import html
import io
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import ass
import pylrc
import pytest
import srt
import ttconv.imsc.reader
import ttconv.model
import webvtt
from hypothesis import example, given
from hypothesis import strategies as st
from transcript_cases import raw_segment, render, text_in
from ttconv.filters.doc.imsc11text import IMSC11TextFilter
from ttconv.imsc.designators import IMSC_11_TEXT_PROFILE_DESIGNATOR

from app.transcript.cues.timed_text import TimedText
from app.transcript.cues.timing import Cue
from app.transcript.formats import DOCUMENT_FORMATS, FORMATS
from app.transcript.formats.common import FileStyle
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE

_KARAOKE = re.compile(r"\{\\(?:k\d+|r(?:Default|Speaker \d+))\}")  # and the style of a speaker
_DIRECTIONS = re.compile("[\u202b\u202c]")

Read = tuple[float, float | None, list[str]]  # start and end (ms), lines


def read_srt(file: str) -> list[Read]:
    return [(_ms(cue.start), _ms(cue.end), cue.content.split("\n")) for cue in srt.parse(file)]


def read_vtt(file: str) -> list[Read]:
    return [
        (
            caption.start_in_seconds * 1000 + int(caption.start[-3:]),
            caption.end_in_seconds * 1000 + int(caption.end[-3:]),
            [html.unescape(line) for line in caption.text.split("\n")],
        )
        for caption in webvtt.from_string(file)
    ]


def read_ass(file: str) -> list[Read]:
    events = ass.Document.parse_string(file).events
    return [(_ms(event.start), _ms(event.end), _KARAOKE.sub("", event.text).split(r"\N")) for event in events]


def read_ttml(file: str) -> list[Read]:
    return [
        (float((cue.get_begin() or 0) * 1000), float(cue.get_end() * 1000), text_in(cue).split("\n"))
        for division in ttml_document(file).get_body()
        for cue in division
    ]


def ttml_document(file: str) -> ttconv.model.ContentDocument:
    document = ttconv.imsc.reader.to_model(ET.ElementTree(ET.fromstring(file.encode())))
    assert document is not None
    return document


def read_lrc(file: str) -> list[Read]:
    return [(line.time * 1000, None, [line.text]) for line in pylrc.parse(file)]


def read_tsv(file: str) -> list[Read]:
    rows = csv.DictReader(io.StringIO(file, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [(float(row["start"]), float(row["end"]), [row["text"]]) for row in rows]


def _ms(time: timedelta) -> float:
    return time / timedelta(milliseconds=1)


READERS: dict[str, Callable[[str], list[Read]]] = {
    "srt": read_srt,
    "vtt": read_vtt,
    "ass": read_ass,
    "ttml": read_ttml,
    "lrc": read_lrc,
    "tsv": read_tsv,
}
ONE_LINE = {"srt", "vtt", "lrc", "tsv"}  # the lines of a cue may be joined
ACCURACY_MS = dict.fromkeys(READERS, 1) | {"ass": 10, "lrc": 10}

# Characters that a format may write as similar ones, since it has no escape for them.
SIMILAR = {
    "srt": str.maketrans("<>{}\\:", "‹›()∖∶"),
    "vtt": str.maketrans(":", "∶"),
    "ass": str.maketrans("{}\\", "()∖"),
    "lrc": str.maketrans("<>[]", "‹›()"),
}

# Characters that formats interpret, and characters that no file may hold.
_SIGNS = "<>{}[]()\\/Nnhpi0123-&#;:,.|!=\"' \t\n\r\v\x00\x1b\x85\u2028\ufeff\ufffe\uffff\ufdd0\ud800你好"
_TEXTS = st.one_of(st.text(max_size=20), st.text(_SIGNS, max_size=30), st.text("abc déf ", max_size=12))
_PAUSES = st.integers(0, 5 * SAMPLE_RATE)
_LENGTHS = st.integers(SAMPLE_RATE // 100, 7 * SAMPLE_RATE)


@st.composite
def cue_lists(draw: st.DrawFn) -> list[Cue]:
    cues, at = [], draw(st.integers(0, 3500 * SAMPLE_RATE))
    for pause, length, lines in draw(
        st.lists(st.tuples(_PAUSES, _LENGTHS, st.lists(_TEXTS, min_size=1, max_size=3)), max_size=6)
    ):
        start, end = at + pause, at + pause + length
        times = st.integers(start - SAMPLE_RATE, end + SAMPLE_RATE)
        units = tuple(
            tuple(TimedText(text, draw(times), draw(times)) for text in re.findall(r"\s*\S+", line))
            for line in lines
        )
        cues.append(Cue(start, end, tuple(lines), units))
        at = end
    return cues


def one_cue(*lines: str) -> list[Cue]:
    return [Cue(SAMPLE_RATE, 2 * SAMPLE_RATE, lines)]


@given(cue_lists())
@example(one_cue("00:00:01,000 --> 00:00:02,000", "2", "00:00:01.000 --> 00:00:02.000"))
@example(one_cue("NOTE", "STYLE", "WEBVTT", "[Events]", "Dialogue: 0,0:00:01.00"))
@example(one_cue("{\\pos(0,0)}here", "C:\\New\\home\\", "}{", "\\{\\}"))
@example(one_cue("[00:01.00]a", "[ti:b] [00:59.99]", "<00:01.00> c"))
@example(one_cue("]]>", "<![CDATA[", "&amp;", "<br/>", "<p>&#0;</p>"))
@example(one_cue('"quoted"\tcell', "=SUM(A1)"))
@pytest.mark.parametrize(
    ("file_format", "style"),
    [
        *((file_format, FileStyle()) for file_format in READERS),
        ("vtt", FileStyle(word_level=True)),
        ("ass", FileStyle(word_level=True)),
    ],
)
def test_a_reader_finds_the_text_and_times_of_each_cue(
    file_format: str, style: FileStyle, cues: list[Cue]
) -> None:
    read = READERS[file_format](render(transcript_of(cues), cues, file_format, style))
    spoken = [cue for cue in cues if any(map(holdable, cue.lines))]
    assert len(read) == len(spoken)
    for cue, (start_ms, end_ms, lines) in zip(spoken, read, strict=True):
        assert start_ms == pytest.approx(cue.start / 16, abs=ACCURACY_MS[file_format])
        assert end_ms is None or end_ms == pytest.approx(cue.end / 16, abs=ACCURACY_MS[file_format])
        assert comparable(lines, file_format) == comparable(cue.lines, file_format)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), max_size=8))
@pytest.mark.parametrize("file_format", [name for name in READERS if name != "tsv"])
def test_cues_keep_their_order_however_short(file_format: str, drawn: list[tuple[int, int]]) -> None:
    cues, at = [], 0
    for pause, length in drawn:
        cues.append(Cue(at + pause, at + pause + length, (str(at),)))
        at += pause + length
    read = READERS[file_format](render(transcript_of(cues), cues, file_format))
    assert [lines for _, _, lines in read] == [list(cue.lines) for cue in cues]
    assert all(end_ms is None or start_ms < end_ms for start_ms, end_ms, _ in read)
    assert all((before[1] or before[0] + 1) <= after[0] for before, after in pairwise(read))


@given(cue_lists())
def test_text_has_a_line_for_each_segment(cues: list[Cue]) -> None:
    spoken = [cue for cue in cues if any(map(holdable, cue.lines))]
    read = render(transcript_of(cues), cues, "txt").splitlines()
    assert [holdable(line) for line in read] == [holdable(" ".join(cue.lines)) for cue in spoken]


@pytest.mark.parametrize(
    ("task", "language", "tag"),
    [("transcribe", "de", "de"), ("translate", "de", "en"), ("transcribe", "jw", "jv")],
)
def test_ttml_names_its_language_and_is_valid(
    task: str, language: str, tag: str, caplog: pytest.LogCaptureFixture
) -> None:
    transcript = replace(transcript_of(one_cue("a")), task=task, language=language)
    document = ttml_document(render(transcript, one_cue("a", "b"), "ttml"))
    assert document.get_lang() == tag
    assert document.get_body().get_region().get_id() == "bottom"
    assert not caplog.records


def test_every_format_has_a_reader() -> None:
    assert FORMATS.keys() == READERS.keys() | {
        "json",
        "scc",
        "stl",
        *DOCUMENT_FORMATS,
    }  # test_broadcast, test_documents


@given(cue_lists())
@example([*one_cue("3 < 5", "שלום, Windows!"), Cue(*(2 * SAMPLE_RATE, 3 * SAMPLE_RATE), ("b",))])
def test_ttml_is_of_the_text_profile_of_imsc(cues: list[Cue]) -> None:
    document = ttml_document(render(transcript_of(cues), cues, "ttml"))
    assert document.get_content_profiles() == {IMSC_11_TEXT_PROFILE_DESIGNATOR}
    IMSC11TextFilter().process(document)  # raises an error at the first rule that is broken


def transcript_of(cues: Sequence[Cue]) -> Transcript:
    segments = tuple(raw_segment(cue.start, cue.end, " ".join(cue.lines)) for cue in cues)
    return Transcript("transcribe", "demo", "de", cues[-1].end if cues else 0, (), segments)


def holdable(text: str) -> str:
    """The text as any file may hold it: spaces instead of line ends, � instead of noncharacters."""
    return " ".join("".join(map(_holdable_char, text)).split())


def _holdable_char(char: str) -> str:
    if unicodedata.category(char) in ("Cc", "Zl", "Zp"):
        return " "
    if unicodedata.category(char) == "Cs" or "\ufdd0" <= char <= "\ufdef" or char in "\ufffe\uffff":
        return "�"
    return char


def comparable(lines: Sequence[str], file_format: str) -> list[str]:
    texts = [holdable(_DIRECTIONS.sub("", line)) for line in lines if holdable(line)]
    if file_format in ONE_LINE:
        texts = [" ".join(texts)]
    if file_format == "srt":
        texts = [text.replace("-->", "→") for text in texts]
    if file_format == "lrc":  # lines of a script without spaces are joined without one
        texts = ["".join(text.split()) for text in texts]
    return [text.translate(SIMILAR.get(file_format, {})) for text in texts]
