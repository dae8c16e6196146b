"""Transcripts in the JSON of each tool, written after its documentation."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from transcript_cases import DATA, clip_results, letters, samples, segment, span, speech_spans

from app.api.audio.openai_responses import brief_response, verbose_response
from app.common.errors import InvalidInput
from app.common.options import Options
from app.transcript.formats import FORMATS
from app.transcript.reading import read_transcript
from app.transcript.rendering import CUE_FORMATS, render_transcript
from app.transcript.timeline import ClipResult, Transcript, place_segments
from tests.cases import read_cases
from workers.messages import SAMPLE_RATE, Segment, Word


def document(name: str) -> Any:
    return json.loads((DATA / "transcripts" / f"{name}.json").read_text(encoding="utf-8"))


# --- openai-whisper: `whisper talk.mp3 --output_format json --word_timestamps True`
OPENAI_WHISPER = document("openai_whisper")

# --- OpenAI's API: response_format=verbose_json, both granularities; the duration was once a text
OPENAI = document("openai")

# --- whisperX: `whisperx talk.wav --output_format json`; numbers have no times
WHISPERX = document("whisperx")

# --- faster-whisper: `{"info": asdict(info), "segments": [asdict(segment) for segment in segments]}`
FASTER_WHISPER = document("faster_whisper")

BROADCAST = {"scc", "stl"}
CASES = read_cases("transcripts")


def read(document: Any, **arguments: Any) -> Transcript:
    return read_transcript(json.dumps(document).encode(), **arguments).transcript


def timed(words: tuple[Word, ...]) -> list[tuple[str, float, float]]:
    """The words with their times in seconds."""
    return [(word.text, word.start / SAMPLE_RATE, word.end / SAMPLE_RATE) for word in words]


def test_openai_whisper() -> None:
    transcript = read(OPENAI_WHISPER)
    assert (transcript.language, transcript.task, transcript.samples) == ("en", "transcribe", samples(5))
    assert transcript.text == OPENAI_WHISPER["text"].strip()
    first, second = transcript.segments
    assert (first.start, first.end) == span(0, 2.2)
    assert timed(first.words)[1] == (" so", 0.52, 0.84)
    assert first.words[1].probability == 0.98
    assert (second.start, second.end, second.words) == (*span(3.38, 5), ())


def test_a_result_in_a_wrapper() -> None:
    assert read({"result": OPENAI_WHISPER}) == read(OPENAI_WHISPER)


def test_openai_words_get_the_punctuation_of_the_text() -> None:
    transcript = read(OPENAI)
    assert (transcript.language, transcript.samples) == ("en", round(8.470000267028809 * SAMPLE_RATE))
    first, second = transcript.segments
    assert timed(first.words) == [
        (" The", 0.0, 0.24),
        (" beach", 0.24, 0.64),
        (" was,", 0.64, 0.9),
        (" popular:", 1.1, 1.5),
        (" it's", 1.6, 1.8),
        (" 'my'", 1.8, 2.0),
        (" place.", 2.0, 2.5),
    ]
    assert [word.text for word in second.words] == [" Twenty-", "one", " people", " splashed."]


def test_openai_without_words() -> None:
    transcript = read(OPENAI | {"words": None})
    assert [(part.text, part.words) for part in transcript.segments] == [
        (entry["text"], ()) for entry in OPENAI["segments"]
    ]


def test_openai_with_words_and_no_segments() -> None:
    document = {name: value for name, value in OPENAI.items() if name != "segments"}
    transcript = read(document)
    assert [part.text for part in transcript.segments] == [
        "The beach was, popular: it's 'my' place.",
        " Twenty-one people splashed.",
    ]
    assert (transcript.segments[1].start, transcript.segments[1].end) == span(3.4, 5.6)
    assert "".join(word.text for word in transcript.words) == OPENAI["text"]


def test_japanese_words() -> None:
    texts = ["こん", "にちは", "田", "仲", "です", "今日", "は", "天気", "が", "いい"]
    document = {
        "text": "こんにちは、田中です。今日は天気がいい。",
        "segments": [
            {"start": 0, "end": 5, "text": "こんにちは、田中です。"},
            {"start": 5, "end": 10, "text": "今日は天気がいい。"},
        ],
        "words": [{"word": text, "start": at, "end": at + 1} for at, text in enumerate(texts)],
    }
    first, second = read(document).segments
    assert [word.text for word in first.words] == ["こん", "にちは、", "田", "中", "です。"]
    assert timed(second.words) == [
        ("今日", 5, 6),
        ("は", 6, 7),
        ("天気", 7, 8),
        ("が", 8, 9),
        ("いい。", 9, 10),
    ]


def test_words_of_other_spelling_between_those_of_the_text() -> None:
    """One word is spelt otherwise, one is missing, one is too many. The others keep their times."""
    words = [dict(word) for word in OPENAI["words"]]
    words[2]["word"] = "were"
    words[5]["word"] = "really"
    del words[8]
    words.insert(0, {"word": "Uh", "start": 0.0, "end": 0.1})
    first, second = read(OPENAI | {"words": words}).segments
    assert "".join(word.text for word in first.words) == first.text
    assert "".join(word.text for word in second.words) == second.text
    assert (" popular:", 1.1, 1.5) in timed(first.words)
    assert (" was,", 0.64, 0.9) in timed(first.words)
    assert (" splashed.", 4.6, 5.6) in timed(second.words)


def test_words_of_another_text_are_left_out() -> None:
    words = [word | {"word": f"x{word['word']}"} for word in OPENAI["words"]]
    transcript = read(OPENAI | {"words": words})
    assert transcript.words == ()
    assert transcript.text == OPENAI["text"]


def test_one_segment_with_strange_words_does_not_spoil_the_next() -> None:
    words = [word | {"word": "la"} if word["start"] < 3 else word for word in OPENAI["words"]]
    first, second = read(OPENAI | {"words": words[1:]}).segments
    assert first.words == ()
    assert timed(second.words)[0] == (" Twenty-", 3.4, 3.9)


def test_whisperx_numbers_get_the_time_between_their_neighbours() -> None:
    transcript = read(WHISPERX)
    assert timed(transcript.segments[0].words) == [
        (" In", 1.0, 1.2),
        (" 2019", 1.2, 2.0),
        (" we", 2.0, 2.2),
        (" won.", 2.2, 3.0),
    ]
    assert transcript.text == "In 2019 we won. Twice."
    assert transcript.samples == samples(4)


def test_faster_whisper() -> None:
    transcript = read(FASTER_WHISPER)
    assert (transcript.language, transcript.samples) == ("de", samples(20))
    assert timed(transcript.words) == [(" Schöne", 0.5, 1.25), (" Grüße.", 1.25, 2.3)]


def test_a_bare_list_of_segments() -> None:
    transcript = read(FASTER_WHISPER["segments"], language="de")
    assert transcript.language == "de"
    assert transcript.text == "Schöne Grüße."


OURS = Transcript(
    "transcribe",
    "demo",
    "de",
    samples(12),
    (span(0.5, 2.3), span(4, 9)),
    (
        segment(0.5, 2.3, " »Schöne Grüße.", (" »Schöne", 0.5, 1.25), (" Grüße.", 1.25, 2.3)),
        segment(2.5, 9, " Bis – bald!", (" Bis", 4, 5), (" –", 5, 5.5), (" bald", 5.5, 7), ("!", 8, 9)),
    ),
)


def our_verbose_json(transcript: Transcript) -> dict[str, Any]:
    document = json.loads(verbose_response(transcript, segments=True, words=True).body)
    spans = [{"start": start / SAMPLE_RATE, "end": end / SAMPLE_RATE} for start, end in transcript.speech]
    return document | {"speech": spans}


def parts(transcript: Transcript) -> list[tuple[str, int, int, list[tuple[str, int, int]]]]:
    """Text and times of the segments and their words."""
    return [
        (part.text, part.start, part.end, [(word.text, word.start, word.end) for word in part.words])
        for part in transcript.segments
    ]


def test_our_verbose_json_is_the_same_transcript() -> None:
    again = read(our_verbose_json(OURS))
    assert parts(again) == parts(OURS)
    assert (again.language, again.samples, again.speech) == ("de", OURS.samples, OURS.speech)


def test_our_json_file_is_the_same_transcript() -> None:
    file = render_transcript(OURS, Options(), "json")
    again = read_transcript(file).transcript
    assert parts(again)[1] == parts(OURS)[1]
    assert again.text == OURS.text
    assert (again.task, again.language, again.samples) == ("transcribe", "de", OURS.samples)
    assert again.speech == OURS.speech


def test_our_json_has_only_text_and_says_so() -> None:
    reading = read_transcript(brief_response(OURS).body, language="de")
    assert [part.text for part in reading.transcript.segments] == ["»Schöne Grüße.", " Bis – bald!"]
    assert reading.transcript.samples == OURS.samples
    assert reading.note
    assert "verbose_json" in reading.note
    assert read_transcript(json.dumps(our_verbose_json(OURS)).encode()).note is None


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    """Transcripts of the service. Its times are whole milliseconds."""

    def rounded(sample: int) -> int:
        return sample // 16 * 16

    def moved(part: Segment | Word) -> Any:
        return replace(part, start=rounded(part.start), end=rounded(part.end))

    result = draw(clip_results())
    # Whisper's words have spaces at their beginnings only.
    assume(all(word.text == word.text.rstrip() for part in result.segments for word in part.words))
    clip = ClipResult(
        "en",
        (),
        tuple(replace(moved(part), words=tuple(map(moved, part.words))) for part in result.segments),
    )
    segments = place_segments(clip.segments, (0, samples(12)))
    speech = tuple((rounded(start), rounded(end) + 16) for start, end in draw(speech_spans()))
    return Transcript("transcribe", "demo", "en", samples(12), speech, segments)


@given(transcripts())
def test_our_verbose_json_gives_the_subtitles_of_the_service(transcript: Transcript) -> None:
    again = read(our_verbose_json(transcript))
    for name in CUE_FORMATS - BROADCAST:  # whose characters do not hold every text
        assert render_transcript(again, Options(), name) == render_transcript(transcript, Options(), name)


# --- language and task


def test_a_translation_is_english() -> None:
    translated = read(OPENAI | {"task": "translate", "language": "german"})
    assert (translated.task, translated.language, translated.text_language) == ("translate", "de", "en")
    assert read(WHISPERX | {"language": "de"}, task="translate").text_language == "en"


@pytest.mark.parametrize(
    ("named", "code"), [("english", "en"), ("pt-BR", "pt"), (None, ""), ("klingon", ""), ("", "")]
)
def test_languages(named: str | None, code: str) -> None:
    assert read(OPENAI | {"language": named}).language == code
    assert read(OPENAI | {"language": named}, language="fr").language == "fr"


# --- speech


def test_speech_is_put_in_order() -> None:
    spans = [{"start": 4, "end": 5}, {"start": -1, "end": 2}, {"start": 1, "end": 3}, {"start": 7, "end": 6}]
    assert read(WHISPERX | {"speech": spans}).speech == (span(0, 3), span(4, 5))


def test_without_speech_the_music_before_the_first_word_is_silence() -> None:
    words = [
        {"word": " Hello", "start": 14.0, "end": 14.5},
        {"word": " there.", "start": 14.5, "end": 15.0},
    ]
    entry = {"start": 0.0, "end": 15.4, "text": " Hello there.", "words": words}
    assert read({"segments": [entry]}).speech == (span(14, 15.4),)
    assert read({"segments": [entry | {"words": []}]}).speech == (span(0, 15.4),)


def test_words_on_one_moment_say_nothing_about_silence() -> None:
    words = [{"word": f" {word}", "start": 14.0, "end": 14.02} for word in ("Hello", "there", "again.")]
    entry = {"start": 0.0, "end": 20.0, "text": " Hello there again.", "words": words}
    assert read({"segments": [entry]}).speech == (span(0, 20),)


# --- untidy documents


def line(text: str, start: Any = 0.0, end: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, **more}


def times(transcript: Transcript) -> list[tuple[str, float, float]]:
    return [(part.text, part.start / SAMPLE_RATE, part.end / SAMPLE_RATE) for part in transcript.segments]


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([line("b", 2, 3), line(" a", 0, 1)], [(" a", 0, 1), ("b", 2, 3)]),
        ([line("a", 0, 2.5), line(" b", 2, 3)], [("a", 0, 2), (" b", 2, 3)]),
        ([line("a", -1, 1)], [("a", 0, 1)]),
        ([line("a", 1, None), line(" b", 3, 4)], [("a", 1, 3), (" b", 3, 4)]),
        ([line("a", 0, 1), line(" b", None, float("nan"))], [("a", 0, 1), (" b", 1, 9)]),
        ([line("a", "0.5", "1.5")], [("a", 0.5, 1.5)]),
        ([line("a", 2, 1), line(" b", 3, 4)], [("a", 2, 2.02), (" b", 3, 4)]),
        ([line("a", 0, float("inf")), line(" b", 3, 4)], [("a", 0, 3), (" b", 3, 4)]),
        ([line("", 0, 1), line(None, 1, 2), line("a", 3, 4)], [("a", 3, 4)]),
    ],
)  # fmt: skip
def test_untidy_times_are_repaired(segments: Any, expected: list[tuple[str, float, float]]) -> None:
    assert times(read({"segments": segments, "duration": 9})) == expected


def test_a_segment_without_times_has_those_of_its_words() -> None:
    words = [{"word": " a", "start": 1.0, "end": 1.5}, {"word": " b", "start": 1.5, "end": 2.0}]
    assert times(read({"segments": [{"text": " a b", "words": words}]})) == [(" a b", 1, 2)]


def test_a_segment_without_text_has_that_of_its_words() -> None:
    words = [{"word": "a", "start": 1.0, "end": 1.5}, {"word": "b", "start": 1.5, "end": 2.0}]
    assert read({"segments": [{"start": 1, "end": 2, "words": words}]}).text == "a b"
    chinese = [{"word": "你", "start": 1.0, "end": 1.5}, {"word": "好", "start": 1.5, "end": 2.0}]
    assert read({"segments": [{"start": 1, "end": 2, "words": chinese}]}).text == "你好"


def test_nobody_speaks() -> None:
    assert read({"text": "", "segments": [], "duration": 5}).segments == ()
    assert read({"text": ""}).segments == ()


def test_half_a_character_is_replaced() -> None:
    transcript = read_transcript(rb'{"segments": [{"start": 0, "end": 1, "text": "a \ud83d b"}]}').transcript
    assert transcript.text == "a � b"
    for name in FORMATS.keys() - BROADCAST:
        assert render_transcript(transcript, Options(), name)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_of_other_systems(encoding: str) -> None:
    content = json.dumps(FASTER_WHISPER, ensure_ascii=False).encode(encoding)
    assert read_transcript(content).transcript.text == "Schöne Grüße."


@pytest.mark.parametrize(
    ("content", "named"),
    [
        *((text.encode(), named) for text, named in CASES["refused"]),
        (b"\xff\xfe\xfd", "not JSON"),
        (b"[" * 100_000, "nested"),
        (b'{"start": ' + b"1" * 5000 + b"}", "not JSON"),
        (b'{"segments": [{"start": ' + b"1" * 400 + b', "text": "a"}]}', "segments[0].start is 1111"),
    ],
)
def test_what_is_no_transcript(content: bytes, named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_transcript(content)
    assert named in refused.value.message
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 300


# --- nothing is lost or doubled

_TEXT = st.text("ab, .-'你好。「ß\u0301\n ", max_size=12) | st.text(max_size=8)
_TIME = st.none() | st.floats(-10, 100) | st.just(float("nan")) | st.integers(-5, 50)
_WORD = st.fixed_dictionaries(
    {"word": _TEXT}, optional={"start": _TIME, "end": _TIME, "score": st.floats(0, 1)}
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Segments with any times, whose words are those of the text, or nearly so, or any others."""
    segments = []
    for _ in range(draw(st.integers(1, 4))):
        words = draw(st.lists(_WORD, max_size=6))
        text = draw(_TEXT | st.just("".join(word["word"] for word in words)))
        segments.append({"start": draw(_TIME), "end": draw(_TIME), "text": text, "words": words})
    document: dict[str, Any] = {"segments": segments, "duration": 30}
    if draw(st.booleans()):
        document["words"] = [word for entry in segments for word in entry.pop("words")]
    return document


@given(documents())
def test_text_is_neither_lost_nor_doubled(document: dict[str, Any]) -> None:
    transcript = read(document)
    for part in transcript.segments:
        assert not part.words or letters([word.text for word in part.words]) == letters([part.text])
    expected = [
        entry["text"] if entry["text"].strip() else "".join(word["word"] for word in entry.get("words", ()))
        for entry in document["segments"]
    ]
    found = letters([part.text for part in transcript.segments])
    assert sorted(found) == sorted(letters(expected))
    assert all(before.end <= after.start for before, after in pairwise(transcript.segments))


@given(st.lists(_WORD, min_size=1, max_size=8), _TEXT)
def test_text_of_words_alone_is_neither_lost_nor_doubled(words: list[dict[str, Any]], text: str) -> None:
    transcript = read({"words": words, "text": text, "duration": 30})
    expected = text if text.strip() else "".join(word["word"] for word in words)
    assert letters([part.text for part in transcript.segments]) == letters([expected])
