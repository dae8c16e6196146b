"""Windows with less audio for the encoder than 30 s, with the demo model in this process."""

from functools import partial
from typing import Any

import pytest

from app.engines.model_files import DEMO_PATH
from tests.workers.whisper import windows
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, LoadOptions, Window, WindowResult
from workers.whisper.model import LoadedModel

window = partial(windows.window, seconds=30, word_timestamps=True)


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return LoadedModel(LoadOptions("demo", str(DEMO_PATH), "cpu", "int8", 2), "int8")


def features(model: LoadedModel, one: Window) -> Any:
    network: Any = model.network
    return network.features([one.pcm], one.decoding.context_s)[0]


def decode(model: LoadedModel, *windows: Window) -> list[WindowResult]:
    return model.decode(windows)


def words(result: WindowResult) -> str:
    assert result.tail is None
    return "".join(segment.text for segment in result.segments)


@pytest.mark.parametrize("context_s", [5, 8, 20, FULL_CONTEXT_S])
def test_the_spectrogram_is_as_long_as_the_context(model: LoadedModel, context_s: int) -> None:
    full = features(model, window("short00", context_s=FULL_CONTEXT_S))
    short = features(model, window("short00", context_s=context_s))
    assert short.shape == (full.shape[0], 100 * context_s)
    assert (short == full[:, : 100 * context_s]).all()


def test_a_spectrogram_is_cut_if_the_window_is_longer(model: LoadedModel) -> None:
    cut = features(model, window("talk", context_s=10, seconds=12))
    assert cut.shape[1] == 1000


@pytest.mark.parametrize(
    ("name", "seconds", "context_s"),
    [
        pytest.param(name, seconds, context_s, marks=() if context_s == usual_s else pytest.mark.soak)
        for name, seconds, usual_s in (
            ("short00", 30, 10),
            ("talk", 3.7, 5),
            ("talk_de", 4, 20),
            ("talk_es", 4, 5),
        )
        for context_s in (5, 10, 20)
    ],
)
def test_a_short_context_gives_the_same_words(
    model: LoadedModel, name: str, seconds: float, context_s: int
) -> None:
    [full] = decode(model, window(name, context_s=FULL_CONTEXT_S, seconds=seconds))
    [short] = decode(model, window(name, context_s=context_s, seconds=seconds))
    assert words(short) == words(full) != ""
    assert (short.language, short.poor) == (full.language, False)
    times = [
        time
        for segment in short.segments
        for word in segment.words
        for time in (segment.start, word.start, word.end, segment.end)
    ]
    length = window(name, context_s=context_s, seconds=seconds).samples
    assert len(times) > 8
    assert min(times) >= 0
    assert max(times) <= length
    edges = [(segment.start, segment.end) for segment in full.segments]
    for segment, (start, end) in zip(short.segments, edges, strict=True):
        assert abs(segment.start - start) <= SAMPLE_RATE // 10
        assert abs(segment.end - end) <= SAMPLE_RATE // 10


@pytest.mark.parametrize(
    ("compute_type", "context_s"),
    [
        ("int8", 5),
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in (("int8", 10), ("float32", 5), ("float32", 10))
        ),
    ],
)
def test_neighbours_in_a_batch_change_nothing(compute_type: str, context_s: int) -> None:
    """Neither texts nor times, and no digit of a score."""
    model = LoadedModel(LoadOptions("demo", str(DEMO_PATH), "cpu", compute_type, 2), compute_type)
    windows = [
        window("short00", context_s=context_s),
        window("talk_de", context_s=context_s, seconds=3),
        window("short02", context_s=context_s),
        window("talk", context_s=context_s, seconds=4),
    ]
    together = decode(model, *windows)
    singly = [result for one in windows for result in decode(model, one)]
    assert together == singly
