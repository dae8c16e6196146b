"""Embeddings of voices with the bundled weights: in this process, and as a media worker has them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from app.engines.speaker_model import find_speaker_model
from tests.media_files import RATE, read_pcm
from workers.media.voices.embed import embed
from workers.media.voices.ge2e import mel_spectrogram, raised
from workers.messages import SAMPLE_RATE, Span, SpeakerModel

DATA = Path(__file__).parents[2] / "data"
VALUES = 256

Floats = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def model() -> SpeakerModel:
    return find_speaker_model("")


@pytest.fixture(scope="module")
def dialogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples of a dialogue of three people."""
    path = tmp_path_factory.mktemp("voices") / "pcm"
    path.write_bytes(read_pcm(DATA / "dialogue.flac").astype("<i2").tobytes())
    return path


def embedded(pcm: Path, windows: list[Span], model: SpeakerModel) -> Floats:
    return np.frombuffer(embed(str(pcm), windows, model), "<f4").reshape(len(windows), -1)


def slow_mel(samples: Floats) -> npt.NDArray[np.float64]:
    """As the documentation of librosa's `melspectrogram` defines it, frequency by frequency."""

    def hz(mel: float) -> float:
        return 200 / 3 * mel if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)

    def mel(hz: float) -> float:
        return 15 + 27 * np.log(hz / 1000) / np.log(6.4)

    padded = np.concatenate([np.zeros(200), samples.astype(np.float64), np.zeros(200)])
    edges = [hz(index * mel(8000) / 41) for index in range(42)]
    window = [0.5 - 0.5 * np.cos(2 * np.pi * n / 400) for n in range(400)]
    frames = []
    for start in range(0, len(samples) + 1, 160):
        frame = padded[start : start + 400] * window
        power = [abs(np.sum(frame * np.exp(-2j * np.pi * k * np.arange(400) / 400))) ** 2 for k in range(201)]
        bands = []
        for low, centre, high in zip(edges, edges[1:], edges[2:], strict=False):
            heights = [max(0, min((f - low) / (centre - low), (high - f) / (high - centre))) for f in FFT_HZ]
            bands.append(2 / (high - low) * np.dot(heights, power))
        frames.append(bands)
    return np.array(frames)


FFT_HZ = [40.0 * k for k in range(201)]


@pytest.mark.parametrize("kind", ["sine", "noise", "short"])
def test_the_mel_spectrogram_is_that_of_librosa(kind: str) -> None:
    time = np.arange(1700 if kind != "short" else 7) / SAMPLE_RATE
    noise = np.random.default_rng(1).normal(0, 0.1, len(time))
    samples = (np.sin(2 * np.pi * 440 * time) if kind == "sine" else noise).astype(np.float32)
    found, expected = mel_spectrogram(samples), slow_mel(samples)
    assert found.shape == (len(time) // 160 + 1, 40)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5 * expected.max())


def test_quiet_windows_are_raised_to_the_loudness_that_the_model_knows() -> None:
    noise = np.random.default_rng(2).normal(0, 1, SAMPLE_RATE).astype(np.float32)
    decibels = [20 * np.log10(np.std(raised(noise * scale))) for scale in (0.001, 0.01, 0.1)]
    assert decibels == pytest.approx([-30, -30, -20], abs=0.1)
    assert not raised(np.zeros(100, np.float32)).any()


def test_one_person_is_nearer_to_herself_than_to_others(dialogue: Path, model: SpeakerModel) -> None:
    cues = json.loads((DATA / "dialogue.json").read_text())["cues"]
    middles = [(round((cue["start"] + cue["end"]) / 2 * RATE), cue["speaker"]) for cue in cues]
    windows = [(middle - 3 * RATE // 4, middle + 3 * RATE // 4) for middle, _ in middles]
    embeddings = embedded(dialogue, windows, model)
    assert embeddings.shape == (len(cues), VALUES)
    similarity = embeddings @ embeddings.T
    same = np.array([[one == other for _, one in middles] for _, other in middles])
    others = ~np.eye(len(cues), dtype=bool)
    assert np.median(similarity[same & others]) > np.median(similarity[~same]) + 0.1


def test_the_result_does_not_depend_on_the_other_windows(dialogue: Path, model: SpeakerModel) -> None:
    lengths = [4_000, 24_000, 24_000, 9_123, 1_600]
    windows = [(start, start + length) for start in range(0, 400_000, 25_000) for length in lengths]
    together = embedded(dialogue, windows, model)  # more than one batch
    assert len(windows) > 64
    np.testing.assert_allclose(embedded(dialogue, windows[::-1], model), together[::-1], atol=1e-5)
    alone = np.concatenate([embedded(dialogue, [window], model) for window in windows[:5]])
    np.testing.assert_allclose(alone, together[:5], atol=1e-5)
    assert embed(str(dialogue), windows, model) == together.tobytes(), "the same in each call"


def test_odd_windows_have_embeddings_too(tmp_path: Path, model: SpeakerModel) -> None:
    pcm = tmp_path / "pcm"
    samples = np.zeros(30_000, "<i2")
    samples[20_000:] = np.where(np.arange(10_000) % 50 < 25, 32767, -32768)  # as loud as can be
    samples[10_000] = 1
    pcm.write_bytes(samples.tobytes())
    windows = [
        (0, 0),
        (0, 1),
        (0, 5_000),
        (9_000, 12_000),
        (20_000, 30_000),
        (29_999, 60_000),
        (10**9, 2 * 10**9),
    ]
    embeddings = embedded(pcm, windows, model)
    assert np.isfinite(embeddings).all()
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, rtol=1e-5)


IN_A_WORKER = """
import resource, sys
from app.engines.speaker_model import find_speaker_model
from workers.media import tasks
from workers.media.voices import embed
tasks.limit_memory(1 << 30)
before = resource.getrlimit(resource.RLIMIT_AS)[0]
assert "torch" not in sys.modules
assert len(embed.embed(sys.argv[1], [(0, 24_000)] * 100, find_speaker_model(""))) == 100 * 4 * 256
assert not {"resemblyzer", "librosa"} & set(sys.modules)
import torch
assert torch.get_num_threads() == 1
print(resource.getrlimit(resource.RLIMIT_AS)[0] - before)
for library in (bytearray, torch.empty):
    try:
        library(3 << 29)
    except (MemoryError, RuntimeError) as error:
        print(type(error).__name__)
"""


def test_a_worker_loads_the_model_at_first_use_and_stays_limited(dialogue: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_WORKER, dialogue], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    raised_by, *errors = done.stdout.split()
    assert 0 < int(raised_by) < 2 << 30, "what torch maps, and no more"
    assert errors == ["MemoryError", "RuntimeError"]
