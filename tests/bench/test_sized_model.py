"""Models of real size that transcribe as the demo model does, and the GPU benchmark on a CPU."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.engines.model_files import DEMO_PATH
from bench.gpu import cost_of_batches, measure, speech, table
from bench.model_sizes import SHAPES, dimensions_of
from bench.sized_model import make_model
from workers.messages import SAMPLE_RATE, DecodingOptions, LoadOptions
from workers.whisper.model import LoadedModel

pytestmark = [pytest.mark.soak, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    make_model(SHAPES["tiny"], folder)
    return folder


def loaded(folder: Path) -> LoadedModel:
    return LoadedModel(LoadOptions("model", str(folder), "cpu", "float32", 1), "float32")


def test_the_file_has_two_bytes_for_each_weight_that_is_computed(folder: Path) -> None:
    weights = dimensions_of("tiny").parameters
    assert (folder / "model.bin").stat().st_size == pytest.approx(2 * weights, rel=0.001)


def test_it_transcribes_as_the_demo_model_does(tmp_path: Path) -> None:
    """Also with additional heads and layers, other mel bins, and a vocabulary with one language more."""
    shape = replace(SHAPES["large-v3-turbo"], width=384, heads=6, encoder_layers=5, decoder_layers=3)
    make_model(shape, tmp_path)
    assert len(json.loads((tmp_path / "vocabulary.json").read_text())) == 51_866
    window = speech(DecodingOptions("model"))[0]
    found = []
    for model in map(loaded, (DEMO_PATH, tmp_path)):
        [result] = model.decode([window])
        assert result.language == "en"
        found.append(result.segments)
    assert [segment.text for segment in found[0]] == [segment.text for segment in found[1]]
    ends = [[segment.end / SAMPLE_RATE for segment in segments] for segments in found]
    assert ends[0] == pytest.approx(ends[1], abs=0.05)
    assert len(ends[0]) == 5


@pytest.mark.anyio
async def test_the_gpu_benchmark_runs_on_a_cpu(folder: Path) -> None:
    ways = [DecodingOptions("model", language="en", beam_size=1, context_s=context) for context in (30, 10)]
    runs = await measure(folder, "cpu", "", "int8", 2, [2, 1], 1, ways=ways, threads=1)
    found = [(run.workers, run.batch, run.context_s, run.ahead) for run in runs]
    assert found == [
        (2, n, context, ahead) for n in (1, 2) for context in (30, 10) for ahead in (False, True)
    ]
    assert all(run.batch_s and run.loaded_mb > 50 and run.tokens > 10 for run in runs)
    assert table(runs).count("\n") == 9, "a line for each run, below two of the head"
    assert cost_of_batches(runs) == "", "there was no run with one worker"
    alone = cost_of_batches([replace(run, workers=1) for run in runs])
    assert alone.count("tokens of the longest text") == 2, "features alone, and ahead"
