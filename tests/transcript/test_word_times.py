"""The time of each word in WebVTT and ASS."""

import io
import re
from dataclasses import replace

import pysubs2
import pytest
import ttconv.vtt.reader
from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import render, samples, span, text_in

from app.transcript.cues.timed_text import TimedText
from app.transcript.cues.timing import Cue
from app.transcript.formats.common import FileStyle
from app.transcript.timeline import Transcript

EMPTY = Transcript("transcribe", "demo", "en", samples(60), (), ())
WORDS = FileStyle(word_level=True)


def unit(text: str, start: float, end: float) -> TimedText:
    return TimedText(text, *span(start, end))


CUE = Cue(
    *span(1, 4),
    ("One <two>", "three."),
    (
        (unit(" One", 1, 1.5), unit(" <two>", 1.8, 2.25)),
        (unit(" three.", 2.25, 3.5),),
    ),
)


def text_of(cue: Cue, file_format: str, style: FileStyle = WORDS) -> str:
    """The text of the only cue of a file."""
    file = render(EMPTY, [cue], file_format, style)
    return (
        file.rpartition(",,")[2].strip("\n") if file_format == "ass" else file.split("\n", 4)[4].strip("\n")
    )


def test_vtt_has_a_timestamp_before_each_word_that_starts_after_its_cue() -> None:
    assert text_of(CUE, "vtt") == "One <00:00:01.800>&lt;two&gt;\n<00:00:02.250>three."


def test_ass_has_karaoke_with_empty_pauses() -> None:
    assert text_of(CUE, "ass") == r"{\k50}One {\k30}{\k45}<two>\N{\k125}three.{\k50}"


def test_words_of_a_karaoke_change_their_colour() -> None:
    style = re.search(r"Style: Default,(.*)", render(EMPTY, [CUE], "ass"))
    assert style
    primary, secondary = style[1].split(",")[2:4]
    assert primary != secondary


@pytest.mark.parametrize("file_format", ["vtt", "ass"])
def test_without_the_option_or_without_units_there_are_no_times(file_format: str) -> None:
    plain = text_of(CUE, file_format, FileStyle())
    assert not re.search(r"<\d|{\\k", plain)
    assert text_of(replace(CUE, units=()), file_format) == plain


@pytest.mark.parametrize("file_format", ["vtt", "ass"])
def test_units_of_another_text_give_no_times(file_format: str) -> None:
    other = replace(CUE, units=((unit(" One", 1, 2),), (unit(" two", 2, 3),)))
    assert text_of(other, file_format) == text_of(CUE, file_format, FileStyle())


def test_vtt_timestamps_increase_and_lie_inside_the_cue() -> None:
    times = [(0.5, 1), (1, 1.2), (1.2, 1.4), (1.2, 1.3), (1.1, 1.2), (3.9999, 4), (4, 4.5), (9, 9)]
    units = tuple(unit(f" w{number}", *time) for number, time in enumerate(times))
    cue = Cue(*span(1, 4), ("w0 w1 w2 w3 w4 w5 w6 w7",), (units,))
    assert text_of(cue, "vtt") == "w0 w1 <00:00:01.200>w2 w3 w4 w5 w6 w7"


def test_words_of_a_script_without_spaces() -> None:
    cue = Cue(*span(1, 4), ("今日は晴れ",), ((unit("今日", 1, 2), unit("は", 2, 2.5), unit("晴れ", 2.5, 4)),))
    assert text_of(cue, "vtt") == "今日<00:00:02.000>は<00:00:02.500>晴れ"
    assert text_of(cue, "ass") == r"{\k100}今日{\k50}は{\k150}晴れ"


def test_lines_that_are_joined_keep_the_times_of_their_words() -> None:
    cue = Cue(*span(1, 4), ("In", "1984"), ((unit(" In", 1, 2),), (unit(" 1984", 2, 3),)))
    assert text_of(cue, "vtt") == "In <00:00:02.000>1984"


def test_a_reader_of_vtt_finds_no_markup_in_the_text() -> None:
    document = ttconv.vtt.reader.to_model(io.StringIO(render(EMPTY, [CUE], "vtt", WORDS)))
    assert text_in(document.get_body()) == "One <two>\nthree."


def test_pysubs2_finds_the_text_of_karaoke() -> None:
    (event,) = pysubs2.SSAFile.from_string(render(EMPTY, [CUE], "ass", WORDS))
    assert (event.start, event.end, event.plaintext) == (1000, 4000, "One <two>\nthree.")


texts = st.one_of(st.text(min_size=1, max_size=12), st.sampled_from(["one", "two,", "1984", "שלום", "今"]))


@st.composite
def timed_cues(draw: st.DrawFn) -> Cue:
    start = draw(st.integers(0, samples(5)))
    end = start + draw(st.integers(1, samples(5)))
    times = st.integers(0, samples(11))
    lines = draw(st.lists(st.lists(texts, min_size=1, max_size=4), min_size=1, max_size=3))
    units = tuple(tuple(TimedText(f" {text}", draw(times), draw(times)) for text in line) for line in lines)
    return Cue(start, end, tuple(" ".join(line) for line in lines), units)


@given(timed_cues())
def test_any_units_give_valid_timestamps_and_the_same_text(cue: Cue) -> None:
    file = render(EMPTY, [cue], "vtt", WORDS)
    plain = render(EMPTY, [cue], "vtt")
    assert re.sub(r"<\d\d:\d\d:\d\d\.\d\d\d>", "", file) == plain
    found = re.findall(r"\d\d:\d\d:\d\d\.\d\d\d", file)  # of the same length: they sort as text
    if found:
        start, end, *inside = found
        assert [start, *inside, end] == sorted({start, *inside, end})


@given(timed_cues())
def test_any_units_give_karaoke_as_long_as_its_cue(cue: Cue) -> None:
    file = render(EMPTY, [cue], "ass", WORDS)
    assert re.sub(r"{\\k\d+}", "", file) == render(EMPTY, [cue], "ass")
    for event in file.partition("[Events]\n")[2].splitlines()[1:]:
        times = [
            int(m) * 6000 + int(cs.replace(".", "")) for m, cs in re.findall(r"0:(\d\d):(\d\d\.\d\d)", event)
        ]
        lengths = list(map(int, re.findall(r"{\\k(\d+)}", event)))
        if lengths:
            assert sum(lengths) == times[1] - times[0]
