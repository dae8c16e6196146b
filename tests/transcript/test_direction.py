"""Lines written right to left, with what players need to show them in the right order."""

import pytest
from transcript_cases import render, samples, span

from app.transcript.cues.timing import Cue
from app.transcript.timeline import Transcript

MIXED = "המחשב של Microsoft טוב"


def lines_of(file_format: str, language: str, *lines: str) -> list[str]:
    transcript = Transcript("transcribe", "demo", language, samples(5), (), ())
    file = render(transcript, [Cue(*span(1, 2), lines)], file_format)
    if file_format == "ass":
        return file.rpartition(",,")[2].strip("\n").split(r"\N")
    if file_format == "ttml":
        return file.partition('end="00:00:02.000">')[2].partition("</p>")[0].split("<br/>")
    return file.removeprefix("WEBVTT\n\n").strip("\n").split("\n")[2:]


def declared(line: str, file_format: str) -> str:
    if file_format == "ttml":
        return f'<span tts:direction="rtl" tts:unicodeBidi="embed">{line}</span>'
    return f"\u202b{line}\u202c"


@pytest.mark.parametrize("file_format", ["srt", "vtt", "ass", "ttml"])
@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("he", MIXED),
        ("he", "Microsoft היא חברה"),  # the first letter alone would give the wrong direction
        ("ar", "أحب YouTube كثيرا"),
        ("fa", "من Windows را دوست دارم."),
        ("en", "שלום means hello"),
    ],
)
def test_a_right_to_left_line_with_latin_words(file_format: str, language: str, line: str) -> None:
    assert lines_of(file_format, language, line, "OK") == [declared(line, file_format), "OK"]


@pytest.mark.parametrize("line", ["שלום, עולם!", "- שלום", "1984 היתה שנה", "(שלום)", '"مرحبا"'])
def test_a_right_to_left_line_with_digits_or_punctuation_at_an_end(line: str) -> None:
    for file_format in ("vtt", "ass", "ttml"):
        assert lines_of(file_format, "he", line) == [declared(line, file_format)]
    assert lines_of("srt", "he", line) == [line]  # players of SRT find the direction by the first letter


@pytest.mark.parametrize("file_format", ["srt", "vtt", "ass", "ttml"])
@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("he", "שלום עולם"),
        ("he", "בשנת 1984"),
        ("ar", "عام ١٩٨٤ كان"),
        ("he", "Hello, world!"),
        ("en", "Hello means שלום."),
        ("en", "Hello!"),
        ("he", f"\u2067{MIXED}\u2069"),  # declared already
    ],
)
def test_other_lines_stay_as_they_are(file_format: str, language: str, line: str) -> None:
    assert lines_of(file_format, language, line) == [line]


def test_plain_text_has_no_marks() -> None:
    transcript = Transcript("transcribe", "demo", "he", samples(5), (), ())
    assert "\u202b" not in render(transcript, [Cue(*span(1, 2), (MIXED,))], "lrc")
