"""Batches whose features are computed while the one before is decoded: the demo model in this process."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.media_files import read_pcm
from workers.messages import MAX_CLIP_SAMPLES, DecodingOptions, Window, WindowInFile, WorkerInfo
from workers.whisper import worker as whisper
from workers.whisper.model import LoadedModel

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(autouse=True)
def empty(demo: WorkerInfo) -> Iterator[None]:
    yield
    while whisper._ahead:
        whisper.exchange(None)


def window(name: str, model: str = "demo") -> Window:
    pcm = read_pcm(DATA / f"{name}.flac")[: MAX_CLIP_SAMPLES // 2]
    return Window(
        pcm.astype("<i2").tobytes(), ((0, len(pcm)),), DecodingOptions(model, beam_size=1, context_s=15)
    )


def test_an_exchange_returns_the_results_of_the_batch_before() -> None:
    first, second = [window("short00"), window("short01")], [window("short02")]
    whisper.hand_over(first)
    assert whisper.exchange(second) == whisper.decode(first)
    assert whisper.exchange(None) == whisper.decode(second)


def test_several_batches_are_answered_in_order() -> None:
    names = ["short00", "short01", "short02"]
    whisper.hand_over([window("short00")])
    whisper.hand_over([window("short01")])
    answers = [whisper.exchange([window("short02")]), whisper.exchange(None), whisper.exchange(None)]
    assert answers == [whisper.decode([window(name)]) for name in names]


def test_a_window_whose_audio_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    audio = window("short00")
    path = tmp_path / "pcm"
    path.write_bytes(bytes(2 * 100) + audio.pcm)
    there = WindowInFile(str(path), 100, audio.samples, audio.speech, audio.decoding)
    gone, cut_off = replace(there, pcm_path=str(tmp_path / "gone")), replace(there, start=101)
    [expected] = whisper.decode([audio])
    first, *others, last = whisper.decode([there, gone, cut_off, audio])
    assert (first, last) == (expected, expected)
    assert [type(error) for error in others] == [FileNotFoundError, OSError]
    whisper.hand_over([gone])
    assert [type(error) for error in whisper.exchange([gone, there])] == [FileNotFoundError]
    assert whisper.exchange(None)[1:] == [expected]


def test_features_are_computed_while_the_batch_before_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    features, decode = LoadedModel.features, LoadedModel.decode
    prepared = threading.Semaphore(0)

    def prepare(self: LoadedModel, windows: Sequence[Window]) -> Any:
        prepared.release()
        return features(self, windows)

    def decode_later(self: LoadedModel, windows: Sequence[Window], given: Any) -> Any:
        for _ in range(2):  # the features of this batch, and of the one after
            assert prepared.acquire(timeout=20)
        prepared.release()
        return decode(self, windows, given)

    monkeypatch.setattr(LoadedModel, "features", prepare)
    monkeypatch.setattr(LoadedModel, "decode", decode_later)
    whisper.hand_over([window("short00")])
    results = whisper.exchange([window("short01")])
    assert isinstance(results, list)
    assert len(results) == 1
    prepared.release()  # none follows the second batch
    assert whisper.exchange(None) is not None


def test_an_error_belongs_to_its_own_batch() -> None:
    first, lost, last = [window("short00")], [window("short01", "other")], [window("short02")]
    whisper.hand_over(first)
    assert whisper.exchange(lost) == whisper.decode(first)
    error = whisper.exchange(last)
    assert isinstance(error, RuntimeError)
    assert "'other' is not loaded" in str(error)
    assert whisper.exchange(None) == whisper.decode(last)
