"""Models of real size with random weights, and the GPU benchmark on a CPU."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.gpu import cost_of_batches, measure, table
from bench.model_sizes import SHAPES, dimensions_of
from bench.random_model import make_model
from workers.messages import SAMPLE_RATE, DecodingOptions, LoadOptions, Window, WindowResult
from workers.whisper.model import LoadedModel

pytestmark = pytest.mark.timeout(180)

TOKENS = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    make_model(SHAPES["tiny"], folder, TOKENS)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A model with two layers and the vocabulary of large-v3."""
    folder = tmp_path_factory.mktemp("models") / "small"
    shape = replace(
        SHAPES["large-v3-turbo"],
        width=256,
        heads=4,
        encoder_layers=1,
        decoder_layers=1,
        alignment_heads=((0, 1),),
    )
    make_model(shape, folder, TOKENS)
    assert len(json.loads((folder / "vocabulary.json").read_text())) == 51_866
    return LoadedModel(LoadOptions("small", str(folder), "cpu", "int8", 1), "int8")


def window(seconds: int, language: str | None, *, words: bool) -> Window:
    samples = seconds * SAMPLE_RATE
    pcm = (np.random.default_rng(seconds).standard_normal(samples) * 3000).astype("<i2").tobytes()
    return Window(pcm, ((0, samples),), DecodingOptions("tiny", language=language, word_timestamps=words))


def decode(loaded: LoadedModel, *windows: Window) -> list[WindowResult]:
    return loaded.decode(windows, loaded.features(windows))


@pytest.mark.soak
def test_the_file_has_two_bytes_for_each_weight_that_is_computed(folder: Path) -> None:
    weights = dimensions_of("tiny").parameters
    assert (folder / "model.bin").stat().st_size == pytest.approx(2 * weights, rel=0.001)


@pytest.mark.parametrize("words", [False, True])
def test_every_window_gives_one_text_of_one_length(small: LoadedModel, words: bool) -> None:
    results = decode(small, window(30, "en", words=words), window(4, None, words=words))
    assert [result.language for result in results] == ["en", "en"]
    for result, seconds in zip(results, (30, 4), strict=True):
        [segment] = result.segments
        assert result.tail is None
        assert (segment.start, segment.end) == (0, seconds * SAMPLE_RATE)
        assert len(segment.tokens) == TOKENS + 2  # a timestamp on either side
        assert len(segment.words) == (TOKENS if words else 0)


def test_the_vocabulary_fits_the_shape(small: LoadedModel) -> None:
    """large-v3 added Cantonese, which shifted all later tokens by one."""
    assert "yue" in small.languages


@pytest.mark.soak
@pytest.mark.anyio
async def test_the_gpu_benchmark_runs_on_a_cpu(folder: Path) -> None:
    decoding = DecodingOptions("model", language="en", beam_size=1)
    runs = await measure(folder, "cpu", "", "int8", 2, [2, 1], 1, decoding=decoding, threads=1)
    ways = [(run.workers, run.batch, run.ahead) for run in runs]
    assert ways == [(2, 1, False), (2, 1, True), (2, 2, False), (2, 2, True)]
    assert all(run.batch_s and run.loaded_mb > 50 for run in runs)
    assert table(runs).count("\n") == 5, "a line for each run, below two of the head"
    assert cost_of_batches(runs) == "", "there was no run with one worker"
