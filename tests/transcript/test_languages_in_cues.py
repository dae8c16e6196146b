"""Recordings in several languages: cues by the rules of their own language, which files name."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from docx import Document
from test_format_readers import ttml_document
from transcript_cases import samples, span, spoken

from app.common.options import Options
from app.transcript.reading import read_transcript
from app.transcript.rendering import clip_segments, render_transcript
from app.transcript.timeline import ClipResult, Transcript
from workers.messages import Segment

CHINESE = "今天天气很好我们一起去公园散步吧你觉得"  # as wide as a line of English
LATIN = "We could all walk to the park together, if you would like that."
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def said(start: float, end: float, text: str, language: str | None) -> Segment:
    return replace(spoken(start, end, text), language=language)


LESSON = (
    said(0, 4, LATIN, "en"),
    said(4.1, 8, CHINESE, "zh"),
    said(8.1, 10, "Oui, merci.", "fr"),
    said(10.1, 12, "So let us go.", "en"),
)


def transcript(*segments: Segment, task: str = "transcribe") -> Transcript:
    return Transcript(task, "base", "en", samples(20), (span(0, 12),), segments)


def render(file_format: str, *segments: Segment, task: str = "transcribe") -> str:
    return render_transcript(transcript(*segments, task=task), Options(), file_format).decode()


def word_document(*segments: Segment, task: str = "transcribe") -> Any:
    return Document(BytesIO(render_transcript(transcript(*segments, task=task), Options(), "docx")))


def lines(srt: str) -> list[str]:
    return [line for line in srt.splitlines() if line and not line.isdigit() and "-->" not in line]


def test_lines_are_as_wide_as_the_guides_of_their_language_allow() -> None:
    shown = lines(render("srt", *LESSON))
    assert "".join(line for line in shown if not line.isascii()) == CHINESE
    assert max(len(line) for line in shown if not line.isascii()) <= 16
    assert max(len(line) for line in shown if line.isascii()) > 20


def test_no_cue_has_two_languages() -> None:
    glued = (said(0, 1, "Yes", "en"), said(1, 2, "oui", "fr"), said(2, 3, "ja", "de"))
    assert lines(render("srt", *glued)) == ["Yes", "oui", "ja"]


def test_webvtt_and_ttml_name_the_language_of_a_cue_if_it_is_another() -> None:
    assert re.findall("<lang (.+?)>(.+)</lang>", render("vtt", *LESSON))[-1] == ("fr", "Oui, merci.")
    assert render("vtt", *LESSON).count("<lang") == render("vtt", *LESSON).count("</lang>") == 3
    paragraphs = list(ET.fromstring(render("ttml", *LESSON)).iter("{http://www.w3.org/ns/ttml}p"))
    assert [each.get(XML_LANG) for each in paragraphs][-2:] == ["fr", None]
    ttml_document(render("ttml", *LESSON))


@pytest.mark.parametrize("file_format", ["srt", "vtt", "ttml", "txt"])
def test_a_recording_in_one_language_and_a_translation_name_none(file_format: str) -> None:
    plain = [replace(each, language=None, text=LATIN) for each in LESSON]
    known = [replace(each, language="en") for each in plain]
    assert render(file_format, *known) == render(file_format, *plain)
    spoken_so = [replace(each, text=LATIN) for each in LESSON]
    assert render(file_format, *spoken_so, task="translate") == render(file_format, *plain, task="translate")


def test_word_documents_have_a_paragraph_for_each_language_and_name_it_if_it_is_another() -> None:
    hebrew = said(12.1, 13, "כן", "he")
    of_runs = [
        [
            (run._r.xpath("string(w:rPr/w:lang/@w:val)"), bool(run._r.xpath("w:rPr/w:rtl")))
            for run in paragraph.runs
        ]
        for paragraph in word_document(*LESSON, hebrew).paragraphs
    ]
    assert of_runs == [[("", False)], [("zh", False)], [("fr", False)], [("", False)], [("he", True)]]
    translated = word_document(*LESSON, task="translate")
    assert len(translated.paragraphs) == 1
    assert not translated.element.xpath("//w:rPr/w:lang")


def test_json_names_languages_if_there_are_several_and_reads_them_again() -> None:
    document = json.loads(render("json", *LESSON))
    assert [each["language"] for each in document["segments"]] == ["en", "zh", "fr", "en"]
    again = read_transcript(json.dumps(document).encode()).transcript
    assert [each.language for each in again.segments] == ["en", "zh", "fr", "en"]
    one = json.loads(render("json", *(replace(each, language="en") for each in LESSON)))
    assert all("language" not in each for each in one["segments"])


def test_the_languages_of_a_transcript_have_their_parts() -> None:
    languages = transcript(*LESSON).languages or {}
    assert list(languages) == ["en", "zh", "fr"]
    assert sum(languages.values()) == pytest.approx(1, abs=0.001)
    assert transcript(spoken(0, 1, "a"), said(1, 2, "b", "en")).languages is None


def test_only_chinese_is_converted_into_the_other_script() -> None:
    result = ClipResult(
        "en", (), (said(0, 1, " 头发", "ja"), said(1, 2, " 头发", "zh"), said(2, 3, " 头发", None))
    )
    converted = clip_segments(span(0, 5), result, Options(chinese="traditional"))
    assert [each.text for each in converted] == [" 头发", " 頭髮", " 头发"]
