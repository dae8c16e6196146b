import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pysubs2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from transcript_cases import DATA, render, render_bytes, samples, segment, span

from app.common.options import Options
from app.transcript.cues.timing import Cue
from app.transcript.formats import FORMATS
from app.transcript.formats.common import FileStyle, milliseconds
from app.transcript.rendering import render_transcript
from app.transcript.timeline import Transcript
from tests.cases import read_cases

EMPTY = Transcript("transcribe", "demo", "en", samples(5), (), ())
TRANSCRIPT = Transcript(
    "transcribe",
    "demo",
    "de",
    samples(5),
    (span(0, 4),),
    (
        segment(0.5, 2.3, " Schöne Grüße.", (" Schöne", 0.5, 1.25), (" Grüße.", 1.25, 2.3)),
        segment(2.5, 4, " Bis bald."),
    ),
)


def shown(file: str, file_format: str) -> list[list[str]]:
    """The lines of each cue as pysubs2 reads them."""
    return [
        event.text.split(r"\N")
        for event in pysubs2.SSAFile.from_string(file, file_format, keep_html_tags=True)
    ]


CUES = (
    Cue(*span(0.5, 2.3), ("Schöne Grüße.", "Wie geht's?")),
    Cue(*span(3661.001, 3662), ("Bis bald.",)),
)


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"docx", "scc", "stl"}))  # bytes
def test_the_whole_file(name: str) -> None:
    expected = DATA / "transcripts" / "written" / f"talk.{name}"
    assert render_bytes(TRANSCRIPT, CUES, name) == expected.read_bytes()


def test_srt_with_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    plain = render_bytes(TRANSCRIPT, CUES, "srt")
    bom = render_bytes(TRANSCRIPT, CUES, "srt", FileStyle(srt_bom=True))
    crlf = render_bytes(TRANSCRIPT, CUES, "srt", FileStyle(srt_crlf=True))
    assert bom == b"\xef\xbb\xbf" + plain
    assert crlf == plain.replace(b"\n", b"\r\n")
    assert render_bytes(EMPTY, (), "srt", FileStyle(srt_bom=True)) == b"\xef\xbb\xbf"
    both = FileStyle(srt_bom=True, srt_crlf=True)
    path = tmp_path / "both.srt"
    path.write_bytes(render_bytes(TRANSCRIPT, CUES, "srt", both))
    read = pysubs2.SSAFile.load(str(path), encoding="utf-8-sig")
    assert [event.text.split(r"\N") for event in read] == shown(plain.decode(), "srt")
    for other in FORMATS.keys() - {"srt"}:
        assert render_bytes(TRANSCRIPT, CUES, other, both) == render_bytes(TRANSCRIPT, CUES, other)


def test_the_options_reach_the_file() -> None:
    options = Options(srt_bom=True, srt_crlf=True)
    file = render_transcript(TRANSCRIPT, options, "srt")
    assert file.startswith(b"\xef\xbb\xbf1\r\n00:00:00,500")
    assert file.count(b"\r\n") == file.count(b"\n")


def test_empty_transcripts() -> None:
    assert render(EMPTY, (), "srt") == ""
    assert render(EMPTY, (), "vtt") == "WEBVTT\n\n"
    assert render(EMPTY, (), "ass").endswith("Effect, Text\n")
    assert "<p" not in render(EMPTY, (), "ttml")
    assert render(EMPTY, (), "lrc") == ""
    assert render(EMPTY, (), "txt") == ""
    assert render(EMPTY, (), "tsv") == "start\tend\ttext\n"
    assert json.loads(render(EMPTY, (), "json"))["segments"] == []


@pytest.mark.parametrize(
    ("at", "ms"), [(0, 0), (7, 0), (8, 1), (23, 1), (24, 2), (36_792, 2300), (16_000, 1000)]
)
def test_milliseconds_are_rounded_half_up(at: int, ms: int) -> None:
    assert milliseconds(at) == ms


@pytest.mark.parametrize(("file_format", "lines", "end"), read_cases("transcripts")["written"])
def test_text_that_looks_like_markup_numbers_or_times(file_format: str, lines: list[str], end: str) -> None:
    file = render(EMPTY, [Cue(*span(1, 2), tuple(lines))], file_format)
    assert end in file
    if file_format in ("srt", "vtt"):
        assert len(shown(file, file_format)) == bool(lines[0])


def test_tsv_cells_hold_no_tabs() -> None:
    transcript = replace(EMPTY, segments=(segment(0, 1, '\t"a\tb\n'), segment(1, 2, "\n")))
    assert render(transcript, (), "tsv") == 'start\tend\ttext\n0\t1000\t"a b\n'


@pytest.mark.parametrize(
    ("file_format", "start"),
    [
        ("srt", "27:46:40,000 -->"),
        ("vtt", "27:46:40.000 -->"),
        ("ass", ",27:46:40.00,"),
        ("ttml", 'begin="27:46:40.000"'),
        ("lrc", "[1666:40.00]"),
    ],
)
def test_recordings_of_days(file_format: str, start: str) -> None:
    assert start in render(EMPTY, [Cue(*span(100_000, 100_001), ("late",))], file_format)


cue_texts = st.lists(
    st.one_of(st.text(max_size=20), st.text("<>{}\\Nnhp1-&:,.0123 \n\r\u2028i/", max_size=30)), max_size=3
)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40), cue_texts), max_size=6))
@example([(0, 1, ["a"]), (0, 1, ["b"]), (0, 1, ["c"])])
@pytest.mark.parametrize("file_format", ["srt", "vtt"])
def test_any_text_leaves_the_file_intact(file_format: str, drawn: list[tuple[int, int, list[str]]]) -> None:
    cues, at = [], 0
    for pause, length, lines in drawn:
        cues.append(Cue(at + pause, at + pause + length, tuple(lines)))
        at += pause + length
    file = render(EMPTY, cues, file_format)
    file.encode()
    blocks = [block.split("\n") for block in file.removeprefix("WEBVTT\n\n").split("\n\n")[:-1]]
    assert [int(number) for number, *_ in blocks] == list(range(1, len(blocks) + 1))
    assert all(text and all(map(str.strip, text)) for _, _, *text in blocks)
    assert file.count("-->") == len(blocks)
    assert not any(
        re.search(r"<[^<>]*>|{[^{}]*}" if file_format == "srt" else "[<>]", "".join(text))
        for _, _, *text in blocks
    )
    read = pysubs2.SSAFile.from_string(file, file_format, keep_html_tags=True)
    assert len(read) == len(blocks)
    assert all(event.start < event.end for event in read)
    assert all(before.end <= after.start for before, after in pairwise(read))


@pytest.mark.parametrize("file_format", sorted(FORMATS.keys() - {"docx", "scc", "stl"}))
def test_a_transcript_without_words_has_all_of_its_text_in_every_format(file_format: str) -> None:
    segments = (segment(0.5, 2.3, " Schöne Grüße."), segment(2.5, 4, " Bis bald."))
    wordless = replace(TRANSCRIPT, segments=segments)
    file = render_transcript(wordless, Options(), file_format).decode()
    assert "Schöne Grüße." in file
    assert "Bis bald." in file
    if file_format in ("srt", "vtt", "ass"):
        shown_times = [(event.start, event.end) for event in pysubs2.SSAFile.from_string(file)]
        until_the_next = 2420 if file_format == "ass" else 2416  # a short gap closes; ASS has 10 ms
        assert shown_times == [(500, until_the_next), (2500, 4000)]
