"""The worker's functions with the demo model, run in this process."""

from dataclasses import replace
from pathlib import Path

from app.recording.clip_decoding import ClipRequest
from bench.decoding import transcribe_clips
from tests.workers.whisper.windows import window
from workers.messages import (
    DecodingOptions,
    Window,
    WindowResult,
    WorkerInfo,
)
from workers.whisper import worker as whisper


def text(result: WindowResult) -> str:
    return "".join(text.text for text in result.texts).strip()


def test_a_worker_reports_its_model(demo: WorkerInfo) -> None:
    assert (demo.model, demo.device, demo.loads) == ("demo", "cpu", 1)
    assert demo.compute_type.startswith("int8")
    assert {"en", "es", "de"} < set(demo.languages)
    assert "yue" not in demo.languages, "only large-v3 has it"


def test_a_batch_may_mix_languages_tasks_and_prompts(demo: WorkerInfo) -> None:
    windows = [
        window("short00", word_timestamps=True),
        window("talk_es", language="es", word_timestamps=True),
        window("talk_de"),
        window("talk_es", language="es", task="translate"),
        window("short01", prompt="The captain.", hotwords="bridge", word_timestamps=True),
    ]
    singly = [whisper.decode([one])[0] for one in windows]
    assert whisper.decode(windows) == singly
    assert [result.language for result in singly] == ["en", "es", "de", "es", "en"]
    assert [bool(result.language_probs) for result in singly] == [True, False, True, False, True]
    assert all(text(result) for result in singly)
    assert text(singly[1]) != text(singly[3])


def test_only_windows_with_word_timestamps_get_words(demo: WorkerInfo, tmp_path: Path) -> None:
    one, path = window("short00"), tmp_path / "pcm"
    path.write_bytes(one.pcm)
    decodings = [replace(one.decoding, word_timestamps=words) for words in (True, False)]
    clips = [ClipRequest(path, 0, one.samples, one.speech, decoding) for decoding in decodings]
    with_words, without = transcribe_clips(whisper.decode, clips)
    assert [segment.text for segment in with_words.segments] == [segment.text for segment in without.segments]
    assert with_words.segments
    for segment in with_words.segments:
        assert "".join(word.text for word in segment.words) == segment.text
        assert segment.words[0].start >= segment.start
        assert segment.words[-1].end <= segment.end
    assert all(segment.words == () for segment in without.segments)


def test_the_beam_size_and_the_temperature_are_used(demo: WorkerInfo) -> None:
    greedy = whisper.decode([window("short00", beam_size=1)])[0]
    sampled = whisper.decode([window("short00", temperature=0.2)])[0]
    assert text(greedy)
    assert {segment.temperature for segment in sampled.segments} == {0.2}


def test_a_window_may_be_decoded_without_repetition(demo: WorkerInfo) -> None:
    def repeats(**decoding: object) -> bool:
        [result] = whisper.decode([window("talk_de", **decoding)])
        tokens = [token for segment in result.segments for token in segment.tokens]
        return len(set(tokens)) < len(tokens)

    assert repeats()
    assert not repeats(no_repeat_ngram_size=1)


def test_a_long_prompt_is_cut_to_the_limit(demo: WorkerInfo) -> None:
    long = "the captain reads a letter " * 150
    assert whisper.decode([window("short00", prompt=long, hotwords=long)])[0].language == "en"


def test_the_compute_types_of_a_cpu() -> None:
    assert {"float32", "int8"} <= whisper.supported_compute_types("cpu")


def test_a_language_that_the_model_lacks_is_detected(demo: WorkerInfo) -> None:
    lacking, known = whisper.decode([window("short00", language="yue"), window("short00", language="en")])
    assert (lacking.language, text(lacking)) == ("en", text(known))


def test_control_tokens_in_a_prompt_are_removed(demo: WorkerInfo) -> None:
    control = "<|startoftranscript|> <|en|> hello <|endoftext|>"
    first, second = whisper.decode(
        [window("short00", prompt=control, hotwords=control), window("short01", prompt="hello hello")]
    )
    assert text(first) == text(whisper.decode([window("short00", prompt="hello", hotwords="hello")])[0])
    assert text(second)


def lesson(stretches: bool = True) -> Window:
    """A sentence in each of three languages."""
    parts = [
        window(name, 2.5, start).pcm for name, start in (("talk", 1.0), ("talk_es", 1.0), ("talk_de", 1.0))
    ]
    length = len(parts[0]) // 2
    spans = tuple((at * length, (at + 1) * length) for at in range(len(parts)))
    decoding = DecodingOptions("demo", language="en", context_s=15)
    return Window(b"".join(parts), spans, decoding, stretches=spans if stretches else ())


def test_the_languages_of_stretches_are_detected(demo: WorkerInfo) -> None:
    [plain, result, _] = whisper.decode([lesson(stretches=False), lesson(), window("talk_de")])
    assert [probs[0][0] for probs in result.stretch_probs] == ["en", "es", "de"]
    assert all(probs[0][1] > 0.5 for probs in result.stretch_probs)
    assert replace(result, stretch_probs=()) == plain, "the text is the same"


def test_a_stretch_of_less_than_a_second_says_no_language(demo: WorkerInfo) -> None:
    [result] = whisper.decode([replace(lesson(), stretches=((0, 15_000), *lesson().stretches))])
    assert [probs[0][0] if probs else None for probs in result.stretch_probs] == [None, "en", "es", "de"]
    [result] = whisper.decode([replace(lesson(), stretches=((0, 15_000),))])
    assert result.stretch_probs == ((),)


def test_only_languages_that_are_expected_are_detected(demo: WorkerInfo) -> None:
    expected = replace(lesson(), decoding=replace(lesson().decoding, language=None, languages=("de", "en")))
    [result] = whisper.decode([expected])
    assert result.language in ("de", "en")
    assert {language for probs in result.stretch_probs for language, _ in probs} == {"de", "en"}


def test_the_language_alone_may_be_detected(demo: WorkerInfo) -> None:
    alone, usual = (
        whisper.decode([window("talk_es", language_only=True)]),
        whisper.decode([window("talk_es")]),
    )
    assert (alone[0].language, alone[0].language_probs) == (usual[0].language, usual[0].language_probs)
    assert (alone[0].segments, alone[0].tail, alone[0].token_count) == ((), None, 0)
