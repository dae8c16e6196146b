"""The worker with models that cannot align words, or whose scores overflow."""

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.api.audio.asr import _json
from app.api.audio.openai_responses import verbose_response
from app.common.options import Options
from app.recording.clip_decoding import ClipRequest
from app.transcript.packed import pack_result, unpack_result
from app.transcript.rendering import render_transcript
from app.transcript.timeline import ClipResult, Transcript, place_segments
from bench.decoding import transcribe_clips
from tests.model_variants import copy_demo, with_alignment_heads
from tests.workers.whisper import windows
from workers.messages import LOWEST_LOGPROB, DecodingOptions, LoadOptions, WindowResult, WorkerInfo
from workers.whisper import worker as whisper

window = partial(windows.window, word_timestamps=True, context_s=10)


class FakeModel:
    """CTranslate2's model with some methods replaced: `changes` get the model's own and its arguments."""

    def __init__(self, model: Any, **changes: Any) -> None:
        self._model, self._changes = model, changes

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._model, name)
        if name not in self._changes:
            return own
        return lambda *args, **kwargs: self._changes[name](own, *args, **kwargs)


@pytest.fixture
def loaded(demo: WorkerInfo, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replaces methods of the loaded demo model."""
    network: Any = whisper._models["demo"].network  # type: ignore[attr-defined]

    def change(**changes: Any) -> None:
        monkeypatch.setattr(network, "_whisper", FakeModel(network._whisper, **changes))

    return change


def transcribe(folder: Path, pcm: bytes, **decoding: Any) -> ClipResult:
    """The result of a clip that is all speech."""
    path, samples = folder / "pcm", len(pcm) // 2
    path.write_bytes(pcm)
    clip = ClipRequest(path, 0, samples, ((0, samples),), DecodingOptions("demo", **decoding))
    [result] = transcribe_clips(whisper.decode, [clip])
    return result


def has_words(result: ClipResult | WindowResult) -> bool:
    assert result.segments
    return any(segment.words for segment in result.segments)


@pytest.mark.parametrize("heads", [None, [[9, 9]]])  # CTranslate2 crashes with heads that do not exist
def test_a_model_without_usable_alignment_heads_transcribes_without_words(
    demo: WorkerInfo, tmp_path: Path, heads: object
) -> None:
    folder = copy_demo(tmp_path / "model", with_alignment_heads(heads))
    info = whisper.load(LoadOptions("odd", str(folder), "cpu", "int8", 1))
    try:
        [result] = whisper.decode([window("short00", model="odd")])
    finally:
        whisper.unload("odd")
    assert info.note is not None
    assert info.note.startswith("no word times: ")
    assert (has_words(result), result.note) == (False, None)
    assert "captain" in result.segments[0].text


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("the model has no such heads"),
        ValueError("can't index dimension 3 for a storage with rank 0"),
        IndexError("index 9 is out of bounds for axis 0 with size 9"),
    ],
)
def test_a_window_that_cannot_be_aligned_has_a_note_and_no_words(loaded: Any, error: Exception) -> None:
    def align(own: Any, *args: Any, **kwargs: Any) -> Any:
        raise error

    loaded(align=align)
    [result] = whisper.decode([window("short00")])
    assert not has_words(result)
    assert result.note == f"no word times: {error}"


def test_a_window_that_cannot_be_aligned_costs_no_other_window_its_words(loaded: Any) -> None:
    shorts = [window("short00"), window("short01"), window("short02", language="de"), window("short03")]
    expected = whisper.decode(shorts)
    assert all(map(has_words, expected))

    def align(
        own: Any, encoded: Any, start: Any, tokens: Sequence[Sequence[int]], *args: Any, **kwargs: Any
    ) -> Any:
        if tokens[1]:
            raise RuntimeError("odd tokens")
        return own(encoded, start, tokens, *args, **kwargs)

    loaded(align=align)
    results = whisper.decode(shorts)
    assert [results[0], *results[2:]] == [expected[0], *expected[2:]]
    assert (has_words(results[1]), results[1].note) == (False, "no word times: odd tokens")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA failed with error out of memory"),
        RuntimeError("CUDA failed with error an illegal memory access was encountered"),
        MemoryError("std::bad_alloc"),
    ],
)
def test_a_failing_device_is_no_reason_to_go_on_without_words(loaded: Any, error: Exception) -> None:
    def align(own: Any, *args: Any, **kwargs: Any) -> Any:
        raise error

    loaded(align=align)
    with pytest.raises(type(error), match=str(error).split()[0]):
        whisper.decode([window("short00")])


def overflowing(value: float) -> dict[str, Any]:
    """Methods of a model whose scores overflow."""

    def generate(own: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return [
            SimpleNamespace(sequences_ids=one.sequences_ids, scores=[value], no_speech_prob=value)
            for one in own(*args, **kwargs)
        ]

    def align(own: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return [
            SimpleNamespace(alignments=one.alignments, text_token_probs=[value] * len(one.text_token_probs))
            for one in own(*args, **kwargs)
        ]

    def detect_language(own: Any, *args: Any) -> list[Any]:
        return [[(token, value) for token, _ in probs] for probs in own(*args)]

    return {"generate": generate, "align": align, "detect_language": detect_language}


def strictly(document: bytes) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(document, parse_constant=refuse)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_scores_that_overflow_never_reach_json(tmp_path: Path, loaded: Any, value: float) -> None:
    loaded(**overflowing(value))
    one = window("short00")
    result = transcribe(tmp_path, one.pcm, word_timestamps=True)
    assert has_words(result), "the clip is not taken for silence"
    assert {segment.avg_logprob for segment in result.segments} == {LOWEST_LOGPROB}
    assert {word.probability for segment in result.segments for word in segment.words} == {0}
    assert {prob for _, prob in result.language_probs} == {0}
    assert unpack_result(pack_result(result)) == result
    span = (0, one.samples)
    transcript = Transcript(
        "transcribe", "demo", "en", one.samples, (span,), place_segments(result.segments, span)
    )
    strictly(render_transcript(transcript, Options(), "json"))
    verbose = strictly(bytes(verbose_response(transcript, segments=True, words=True).body))
    assert verbose["segments"][0]["avg_logprob"] == LOWEST_LOGPROB
    assert verbose["segments"][0]["no_speech_prob"] == 0
    assert strictly(_json(transcript, words=True))["segments"][0]["words"]


def test_a_window_whose_score_overflows_is_decoded_again_in_halves(tmp_path: Path, loaded: Any) -> None:
    windows: list[int] = []

    def generate(own: Any, encoded: Any, prompts: Any, **kwargs: Any) -> list[Any]:
        windows.append(len(prompts))
        results = own(encoded, prompts, **kwargs)
        if len(windows) > 1:
            return list(results)
        return [
            SimpleNamespace(sequences_ids=one.sequences_ids, scores=[math.nan], no_speech_prob=0.9)
            for one in results
        ]

    talk = window("talk", 12).pcm
    expected = transcribe(tmp_path, talk)
    loaded(generate=generate)
    result = transcribe(tmp_path, talk)
    assert len(windows) >= 3
    assert all(segment.avg_logprob > LOWEST_LOGPROB for segment in result.segments)
    assert len(result.segments) >= len(expected.segments)
