"""The worker's functions with the demo model, run in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engines.model_files import DEMO_PATH
from tests.media_files import read_pcm
from workers.messages import MAX_CLIP_SAMPLES, Clip, Decoding, LoadOptions, WorkerInfo
from workers.whisper import worker as whisper

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def info() -> Iterator[WorkerInfo]:
    yield whisper.load(LoadOptions("demo", str(DEMO_PATH), "cpu", "int8", 2))
    whisper.unload("demo")


def clip(name: str, **decoding: object) -> Clip:
    pcm = read_pcm(DATA / f"{name}.flac")[: MAX_CLIP_SAMPLES // 2]
    options = Decoding("demo", **decoding)  # type: ignore[arg-type]
    return Clip(pcm.astype("<i2").tobytes(), ((0, len(pcm)),), options)


def text(result: whisper.ClipResult) -> str:
    return "".join(segment.text for segment in result.segments).strip()


def test_a_worker_reports_its_model(info: WorkerInfo) -> None:
    assert (info.model, info.device, info.loads) == ("demo", "cpu", 1)
    assert info.compute_type.startswith("int8")
    assert {"en", "es", "de"} < set(info.languages)
    assert "yue" not in info.languages, "only large-v3 has it"


def test_a_batch_may_mix_languages_tasks_and_prompts(info: WorkerInfo) -> None:
    clips = [
        clip("short00", word_timestamps=True),
        clip("talk_es", language="es", word_timestamps=True),
        clip("talk_de"),
        clip("talk_es", language="es", task="translate"),
        clip("short01", prompt="The captain.", hotwords="bridge", word_timestamps=True),
    ]
    singly = [whisper.transcribe([one])[0] for one in clips]
    assert whisper.transcribe(clips) == singly
    assert [result.language for result in singly] == ["en", "es", "de", "es", "en"]
    assert [bool(result.language_probs) for result in singly] == [True, False, True, False, True]
    assert all(text(result) for result in singly)
    assert text(singly[1]) != text(singly[3])


def test_only_clips_with_word_timestamps_get_words(info: WorkerInfo) -> None:
    with_words, without = whisper.transcribe([clip("short00", word_timestamps=True), clip("short00")])
    assert text(with_words) == text(without)
    for segment in with_words.segments:
        assert "".join(word.text for word in segment.words) == segment.text
        assert segment.words[0].start >= segment.start
        assert segment.words[-1].end <= segment.end
    assert all(segment.words == () for segment in without.segments)


def test_the_beam_size_and_the_temperature_are_used(info: WorkerInfo) -> None:
    greedy = whisper.transcribe([clip("short00", beam_size=1)])[0]
    sampled = whisper.transcribe([clip("short00", temperature=0.2)])[0]
    assert text(greedy)
    assert {segment.temperature for segment in sampled.segments} == {0.2}


def test_a_long_prompt_is_cut_to_the_limit(info: WorkerInfo) -> None:
    long = "the captain reads a letter " * 150
    assert whisper.transcribe([clip("short00", prompt=long, hotwords=long)])[0].language == "en"


def test_a_worker_without_a_model_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper, "_models", {})
    with pytest.raises(RuntimeError, match="not loaded"):
        whisper.transcribe([clip("short00")])


def test_the_compute_types_of_a_cpu() -> None:
    assert {"float32", "int8"} <= whisper.supported_compute_types("cpu")


def test_a_language_that_the_model_lacks_is_detected(info: WorkerInfo) -> None:
    lacking, known = whisper.transcribe([clip("short00", language="yue"), clip("short00", language="en")])
    assert (lacking.language, text(lacking)) == ("en", text(known))


def test_control_tokens_in_a_prompt_are_removed(info: WorkerInfo) -> None:
    control = "<|startoftranscript|> <|en|> hello <|endoftext|>"
    first, second = whisper.transcribe(
        [clip("short00", prompt=control, hotwords=control), clip("short01", prompt="hello hello")]
    )
    assert text(first) == text(whisper.transcribe([clip("short00", prompt="hello", hotwords="hello")])[0])
    assert text(second)
