"""Who speaks, as readers of each format find it; and the same cues after a round trip through JSON."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import ass
import pysubs2
import pytest
import webvtt
from test_broadcast import read as read_broadcast
from test_format_readers import ttml_document
from test_speakers_in_cues import WHISPERX, ann, bob, by
from transcript_cases import samples, span, spoken
from ttconv.filters.doc.imsc11text import IMSC11TextFilter

from app.common.options import Options
from app.transcript.edited import word_speakers
from app.transcript.formats import FORMATS
from app.transcript.reading import read_transcript
from app.transcript.rendering import render_transcript
from app.transcript.text.speaker_text import SpeakerPrefix
from app.transcript.timeline import Transcript

QUICK = (ann(0, 0.9, "Are you coming?"), bob(1, 1.6, "In a minute."), ann(3, 5, "Then I go."))
NAMES = ["a > b & <i>c</i>", "00:01.000 --> 00:02.000", "{\\b1}, Default", "Ann:", "דנה", '"x"\'']


def transcript(*segments: object) -> Transcript:
    return Transcript("transcribe", "demo", "en", samples(60), (span(0, 60),), segments)  # type: ignore[arg-type]


def render(
    file_format: str, *segments: object, prefix: SpeakerPrefix | None = None, **options: object
) -> str:
    return render_transcript(
        transcript(*segments), Options.model_validate(options), file_format, prefix
    ).decode()


def test_srt_and_text_name_the_speaker_where_another_one_begins() -> None:
    more = (*QUICK, ann(6, 7, "Bye."))
    assert re.findall(r"\n(?!\d|\n)(.+)", render("srt", *more)) == [
        "Ann: Are you coming?", "Bob: In a minute.", "Ann: Then I go.", "Bye.",
    ]  # fmt: skip
    assert render("txt", *more) == "Ann: Are you coming?\nBob: In a minute.\nAnn: Then I go.\nBye.\n"


@pytest.mark.parametrize("file_format", ["srt", "vtt", "txt"])
def test_labels_of_whisperx_stand_before_every_line_of_text(file_format: str) -> None:
    text = render(file_format, *QUICK, ann(6, 7, "Bye."), prefix=WHISPERX)
    assert text.count("[SPEAKER_00]: ") == 3
    assert text.count("[SPEAKER_01]: ") == 1
    assert "<v" not in text


def test_a_right_to_left_name_does_not_turn_the_text_after_it() -> None:
    said = by("דנה", spoken(0, 1, "Are you coming?"))
    assert "\n\u202bדנה\u202c: Are you coming?\n" in render("srt", said)
    assert "\nדנה: Are you coming?\n" in f"\n{render('txt', said)}"
    hebrew = replace(transcript(by("Ann", spoken(0, 1, "שלום"))), language="he")
    assert "\n\u202bAnn: שלום\u202c\n" in render_transcript(hebrew, Options(), "srt").decode()


@pytest.mark.parametrize("word_level", [False, True])
def test_vtt_has_a_voice_for_each_line(word_level: bool) -> None:
    text = render("vtt", *QUICK, word_level=word_level)
    captions = list(webvtt.from_string(text))
    assert captions[0].text == "-Are you coming?\n-In a minute."
    assert captions[1].voice == "Ann"
    assert re.findall(r"^<v (.+?)>.*</v>$", text, re.MULTILINE) == ["Ann", "Bob", "Ann"]


def test_ass_has_a_style_for_each_speaker() -> None:
    document = ass.Document.parse_string(render("ass", *QUICK))
    colours = {style.name: style.primary_color for style in document.styles}
    assert colours.keys() == {"Default", "Speaker 1", "Speaker 2"}
    assert colours["Speaker 1"] != colours["Speaker 2"]
    both, alone = document.events
    assert (both.style, both.name, alone.style, alone.name) == ("Speaker 1", "Ann; Bob", "Speaker 1", "Ann")
    assert both.text == r"-Are you coming?\N{\rSpeaker 2}-In a minute."


def test_ttml_has_an_agent_for_each_speaker() -> None:
    text = render("ttml", *QUICK)
    assert re.findall(r'xml:id="(\w+)"><ttm:name type="full">(\w+)<', text) == [
        ("speaker1", "Ann"), ("speaker2", "Bob"),
    ]  # fmt: skip
    assert '<span ttm:agent="speaker2">-In a minute.</span>' in text
    assert '<p begin="00:00:03.000" end="00:00:05.000" ttm:agent="speaker1">' in text
    IMSC11TextFilter().process(ttml_document(text))


@pytest.mark.parametrize("file_format", ["stl", "scc"])
def test_formats_of_broadcasters_have_dashes_and_no_names(file_format: str) -> None:
    file = render_transcript(transcript(*QUICK), Options(), file_format)
    lines = [line for _, _, lines in read_broadcast(file_format, file) for line in lines]
    assert lines == ["-Are you coming?", "-In a minute.", "Then I go."]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_breaks_a_file(name: str) -> None:
    parts = (by(name, spoken(0, 2, "I am late.")), ann(4, 6, "So am I."))
    (first, second) = webvtt.from_string(render("vtt", *parts))
    assert (first.text, second.voice) == ("I am late.", "Ann")
    events = ass.Document.parse_string(render("ass", *parts)).events
    assert [event.text for event in events] == ["I am late.", "So am I."]
    assert name in "".join(ttml_document_names(render("ttml", *parts)))
    for file_format in ("srt", "vtt", "ass"):
        read = pysubs2.SSAFile.from_string(render(file_format, *parts), format_=file_format)
        assert [event.start for event in read] == [0, 4000]
        assert read[0].plaintext.rstrip("\u202c").endswith("I am late.")


def ttml_document_names(text: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(text.encode()).iter() if "}name" in element.tag]


@pytest.mark.parametrize("file_format", sorted(FORMATS.keys() - {"stl", "scc"}))
def test_files_are_the_same_after_json(file_format: str) -> None:
    words = spoken(8, 12, "I am late. So am I.")
    parts = (
        ann(0, 6, "I never said that, whatever you believe."),
        bob(2, 4, "You did say it."),
        replace(by("Ann", words), turns=((3, "Bob"),)),
    )
    before = transcript(*parts)
    document = render_transcript(before, Options(), "json")
    assert [entry["speaker"] for entry in json.loads(document)["segments"]] == ["Ann", "Bob", "Ann"]
    after = read_transcript(document).transcript
    assert [word_speakers(part) for part in after.segments] == [word_speakers(part) for part in parts]
    wanted = render_transcript(before, Options(), file_format)
    assert render_transcript(after, Options(), file_format) == wanted


def test_speakers_of_whisperx_are_read() -> None:
    entry = {
        "start": 0, "end": 3, "text": " Hello there. Hi.", "speaker": "SPEAKER_00",
        "words": [
            {"word": "Hello", "start": 0, "end": 1, "score": 0.9, "speaker": "SPEAKER_00"},
            {"word": "there.", "start": 1, "end": 2},
            {"word": "Hi.", "start": 2, "end": 2.5, "speaker": "SPEAKER_01"},
        ],
    }  # fmt: skip
    only_words = {"word_segments": entry["words"]}
    for document in ({"segments": [entry]}, only_words):
        read = read_transcript(json.dumps(document).encode()).transcript
        assert [speaker for part in read.segments for speaker in word_speakers(part)] == [
            "SPEAKER_00", "SPEAKER_00", "SPEAKER_01",
        ]  # fmt: skip


@pytest.mark.parametrize(("value", "speaker"), [(2, ["2"]), ("", [None]), ({}, [None]), (True, [None])])
def test_labels_that_are_no_text(value: object, speaker: list[str | None]) -> None:
    document = {"segments": [{"start": 0, "end": 1, "text": "Hi.", "speaker": value}]}
    (part,) = read_transcript(json.dumps(document).encode()).transcript.segments
    assert [getattr(part, "speaker", None)] == speaker
