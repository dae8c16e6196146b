"""Several batches in one worker: the demo model in this process."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.media_files import read_pcm
from workers.messages import MAX_CLIP_SAMPLES, DecodingOptions, Window, WindowInFile
from workers.whisper import model as model_module
from workers.whisper import worker as whisper
from workers.whisper.model import LoadedModel

DATA = Path(__file__).parents[2] / "data"

pytestmark = [pytest.mark.usefixtures("demo"), pytest.mark.timeout(60)]


def window(name: str, prompt: str | None = None, language: str | None = None) -> Window:
    pcm = read_pcm(DATA / f"{name}.flac")[: MAX_CLIP_SAMPLES // 2]
    decoding = DecodingOptions("demo", language=language, prompt=prompt, beam_size=1, context_s=15)
    return Window(pcm.astype("<i2").tobytes(), ((0, len(pcm)),), decoding)


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
    assert [type(error) for error in whisper.decode([gone])] == [FileNotFoundError]


class Decoding:
    """Decodes batches in threads. Each waits on its way to the device until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self.prepared = threading.Semaphore(0)  # batches that have their features
        self.on_device = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        features, decode = LoadedModel.features, LoadedModel.decode

        def prepare(model: LoadedModel, windows: Sequence[Window]) -> Any:
            try:
                return features(model, windows)
            finally:
                self.prepared.release()

        def decode_later(model: LoadedModel, windows: Sequence[Window], given: Any, urgent: bool) -> Any:
            self.on_device.release()
            assert self.go_on.acquire(timeout=20)
            return decode(model, windows, given, urgent)

        monkeypatch.setattr(LoadedModel, "features", prepare)
        monkeypatch.setattr(LoadedModel, "decode", decode_later)

    def start(self, batch: list[Window], urgent: bool = False) -> Callable[[], Any]:
        """Returns what waits for the answers."""
        return self._threads.submit(whisper.decode, batch, urgent).result


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch) -> Any:
    with ThreadPoolExecutor(4) as threads:
        yield Decoding(monkeypatch, threads)


def test_features_are_computed_while_the_batch_before_is_decoded(decoding: Decoding) -> None:
    first = decoding.start([window("short00")])
    assert decoding.on_device.acquire(timeout=20)
    second = decoding.start([window("short01")])
    for _ in range(2):
        assert decoding.prepared.acquire(timeout=20)
    assert not decoding.on_device.acquire(timeout=0.1), "one at a time is decoded"
    decoding.go_on.release(2)
    assert first() != second()


def test_an_urgent_batch_is_decoded_beside_another(decoding: Decoding) -> None:
    first = decoding.start([window("short00")])
    urgent = decoding.start([window("short01")], urgent=True)
    for _ in range(2):
        assert decoding.on_device.acquire(timeout=20)
    decoding.go_on.release(2)
    [expected] = urgent()
    assert [expected] != first()
    decoding.go_on.release()
    assert whisper.decode([window("short01")]) == [expected]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("most_pause_s", [20.0, 0.01])
def test_a_batch_lets_an_urgent_one_pass_though_not_for_ever(
    parts: int, most_pause_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whisper._models["demo"], "_parts", parts)
    monkeypatch.setattr(model_module, "_MOST_PAUSE_S", most_pause_s)
    batch = [window("short00"), window("short01")]
    expected = whisper.decode(batch)
    on_device, go_on = threading.Event(), threading.Event()
    decode = LoadedModel._decode_together

    def decode_later(model: LoadedModel, windows: Sequence[Window], features: Any, urgent: bool) -> Any:
        if urgent:
            on_device.set()
            assert go_on.wait(20)
        return decode(model, windows, features, urgent)

    monkeypatch.setattr(LoadedModel, "_decode_together", decode_later)
    with ThreadPoolExecutor() as threads:
        urgent = threads.submit(whisper.decode, batch, True)
        assert on_device.wait(20)
        other = threads.submit(whisper.decode, batch)
        if most_pause_s == 20:
            assert not wait([other], timeout=0.5).done
            go_on.set()
        assert other.result(timeout=15) == expected
        go_on.set()
        assert urgent.result() == expected


def test_a_batch_whose_model_is_not_loaded_is_refused() -> None:
    audio = window("short00")
    other = replace(audio, decoding=replace(audio.decoding, model="other"))
    with pytest.raises(RuntimeError, match="'other' is not loaded"):
        whisper.decode([other])


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where threads decode parts of a batch."""
    monkeypatch.setattr(whisper._models["demo"], "_parts", 3)


def test_a_batch_that_is_decoded_in_parts_has_the_same_answers(
    in_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["short00", "short01", "short02", "short03"]
    windows = [window(name, prompt) for name in names for prompt in (None, "a prompt")]
    assert whisper.decode(windows) == [answer for each in windows for answer in whisper.decode([each])]


def test_after_an_error_of_a_part_the_others_have_ended(
    in_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would still use memory while the batch is decoded again."""
    decode = LoadedModel._decode_together
    ended = []

    def fail_first(model: LoadedModel, windows: Sequence[Window], features: Any, urgent: bool) -> Any:
        if windows[0].decoding.prompt:
            raise RuntimeError("CUDA failed with error out of memory")
        results = decode(model, windows, features, urgent)
        ended.append(len(windows))
        return results

    monkeypatch.setattr(LoadedModel, "_decode_together", fail_first)
    with pytest.raises(RuntimeError, match="out of memory"):
        whisper.decode([window("short00", "a prompt"), window("short01"), window("short02")])
    assert sum(ended) == 2
