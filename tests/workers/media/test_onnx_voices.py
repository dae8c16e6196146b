"""Voice models in ONNX files: which front end each gets, what that computes, and what is refused."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.workers.media.voice_models import MATRIX, VALUES, kaldi_model, titanet_model
from workers.media.voices.embed import embed, fault_of
from workers.media.voices.onnx_model import OnnxModel, UnknownVoiceModel, front_end_of, kaldi_fbank, nemo_mel
from workers.messages import SAMPLE_RATE, SpeakerModel

FEATS, EMBS = {"feats": ["B", "T", 80]}, {"embs": ["B", 256]}
NEMO = {"audio_signal": ["B", 80, "T"], "length": ["B"]}

Floats = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def noise() -> Floats:
    return np.random.default_rng(3).normal(0, 0.05, SAMPLE_RATE).astype(np.float32)


def mel_filters(hz: list[float], low: float, high: float, scale: str) -> npt.NDArray[np.float64]:
    """80 triangles: on Kaldi's scale of height 1, or on Slaney's of area 1. Shape (frequencies, 80)."""

    def kaldi(value: float) -> float:
        return 1127 * np.log(1 + value / 700)

    def slaney(value: float) -> float:
        return value * 3 / 200 if value < 1000 else 15 + 27 * np.log(value / 1000) / np.log(6.4)

    def inverse(mel: float) -> float:
        return 200 / 3 * mel if mel < 15 else 1000 * 6.4 ** ((mel - 15) / 27)

    mel = kaldi if scale == "kaldi" else slaney
    edges = np.linspace(mel(low), mel(high), 82)
    # Kaldi's triangles are straight on the mel scale, Slaney's on that of frequencies.
    points = [mel(value) for value in hz] if scale == "kaldi" else hz
    if scale == "slaney":
        edges = np.array([inverse(edge) for edge in edges])
    filters = np.zeros((len(hz), 80))
    for band, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        for index, point in enumerate(points):
            height = max(0.0, min((point - left) / (centre - left), (right - point) / (right - centre)))
            filters[index, band] = height * (2 / (right - left) if scale == "slaney" else 1)
    return filters


def slow_kaldi(samples: Floats, window: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Kaldi's steps: no mean, pre-emphasis in the frame, window, power, filters, logarithm."""
    filters = mel_filters([k * SAMPLE_RATE / 512 for k in range(256)], 20, 8000, "kaldi")
    frames = []
    for start in range(0, len(samples) - 399, 160):
        frame = samples[start : start + 400].astype(np.float64) * 32768
        frame = frame - frame.mean()
        frame = frame - 0.97 * np.concatenate([frame[:1], frame[:-1]])
        power = np.abs(np.fft.rfft(frame * window, 512)[:256]) ** 2
        frames.append(np.log(np.maximum(power @ filters, 1.1920929e-07)))
    return np.array(frames) - np.mean(frames, axis=0)


@pytest.mark.parametrize("window", ["hamming", "povey"])
def test_the_features_for_wespeaker_and_3d_speaker_are_those_of_kaldi(window: str, noise: Floats) -> None:
    cosine = np.cos(2 * np.pi * np.arange(400) / 399)
    shape = 0.54 - 0.46 * cosine if window == "hamming" else (0.5 - 0.5 * cosine) ** 0.85
    found = kaldi_fbank(noise, window, 32768)
    assert found.shape == (98, 80)
    np.testing.assert_allclose(found, slow_kaldi(noise, shape), atol=2e-3)


def test_the_features_for_titanet_are_those_of_nemo(noise: Floats) -> None:
    emphasised = noise.astype(np.float64)
    emphasised = np.concatenate([emphasised[:1], emphasised[1:] - 0.97 * emphasised[:-1]])
    padded = np.pad(emphasised, 256)  # frames of 512 samples, of which the middle 400 have a weight
    window = np.pad(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399), 56)
    filters = mel_filters([k * SAMPLE_RATE / 512 for k in range(257)], 0, 8000, "slaney")
    frames = np.array(
        [
            np.log(np.abs(np.fft.rfft(padded[start : start + 512] * window)) ** 2 @ filters + 2**-24)
            for start in range(0, len(noise), 160)
        ]
    )
    expected = (frames - frames.mean(0)) / (frames.std(0, ddof=1) + 1e-5)
    np.testing.assert_allclose(nemo_mel(noise), expected, atol=5e-3)


def embedded(path: Path, windows: list[Floats]) -> Floats:
    return OnnxModel(str(path)).embed(windows)


def test_a_model_of_wespeaker_embeds(tmp_path: Path, noise: Floats) -> None:
    found = embedded(kaldi_model(tmp_path / "w.onnx"), [noise, noise[:8000]])
    expected = np.mean(kaldi_fbank(noise, "hamming", 32768) ** 2, axis=0) @ MATRIX
    # One value more than the model gives: it halves the distances.
    assert found.shape == (2, VALUES + 1)
    np.testing.assert_allclose(found[0, :-1], expected / np.linalg.norm(expected), atol=1e-5)
    np.testing.assert_array_equal(found[:, -1], 1)


def test_a_model_of_3d_speaker_gets_its_window(tmp_path: Path, noise: Floats) -> None:
    path = kaldi_model(tmp_path / "d.onnx", {"framework": "3d-speaker", "sample_rate": "16000"}, name="x")
    expected = np.mean(kaldi_fbank(noise, "povey", 1) ** 2, axis=0) @ MATRIX
    np.testing.assert_allclose(
        embedded(path, [noise])[0, :-1], expected / np.linalg.norm(expected), atol=1e-5
    )


def test_titanet_embeds(tmp_path: Path, noise: Floats) -> None:
    found = embedded(titanet_model(tmp_path / "t.onnx"), [noise])
    frames = nemo_mel(noise)
    expected = np.abs(np.pad(frames, ((0, -len(frames) % 16), (0, 0)))).mean(0) @ MATRIX
    np.testing.assert_allclose(found[0, :-1], expected / np.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize("make", [kaldi_model, titanet_model])
def test_odd_windows_have_embeddings_too(make, tmp_path: Path) -> None:
    pcm = tmp_path / "pcm"
    pcm.write_bytes(np.random.default_rng(4).normal(0, 1000, 20_000).astype("<i2").tobytes() + bytes(40_000))
    model = SpeakerModel("tiny", str(make(tmp_path / "m.onnx")), "")
    assert fault_of(model) is None
    windows = [(0, 0), (0, 1), (0, 399), (0, 24_000), (20_000, 40_000), (10**9, 10**9 + 5)]
    found = np.frombuffer(embed(str(pcm), windows, model), "<f4").reshape(len(windows), VALUES + 1)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    again = embed(str(pcm), windows[::-1], model)
    assert np.frombuffer(again, "<f4").reshape(found.shape)[::-1].tobytes() == found.tobytes()


@pytest.mark.parametrize(
    ("inputs", "outputs", "metadata"),
    [
        ({"input_features": ["B", 80, 3000]}, {"logits": ["B", 10]}, {}),  # Whisper's
        ({"feats": ["B", "T", 80]}, {"embs": ["B", 256]}, {"sample_rate": "8000"}),
        ({"feats": ["B", "T", 80]}, {"embs": ["B", 256]}, {"framework": "nemo"}),
        ({"feats": ["B", "T", 40]}, {"embs": ["B", 256]}, {}),
        ({"feats": ["B", "T", 80]}, {"hidden": ["B", "T", 256]}, {}),
        ({"fbank": ["B", "T", 80], "weights": ["B", "T"]}, EMBS, {}),
        ({"audio_signal": ["B", 64, "T"], "length": ["B"]}, EMBS, {"framework": "nemo"}),
        (NEMO, {"logits": ["B", 10]}, {}),
        ({"waveform": ["B", "T"]}, EMBS, {}),
    ],
)
def test_other_models_are_refused(inputs: dict, outputs: dict, metadata: dict) -> None:
    with pytest.raises(UnknownVoiceModel):
        front_end_of(inputs, outputs, metadata)


def test_known_ones_are_recognised() -> None:
    for inputs, outputs in ((FEATS, EMBS), (NEMO, {"logits": ["B", 7205], "embs": ["B", 192]})):
        assert callable(front_end_of(inputs, outputs, {}))


def test_the_fault_of_a_file_is_one_line_that_names_what_is_supported(tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    for path in (broken, tmp_path / "absent.onnx", kaldi_model(tmp_path / "bands.onnx", bands=40)):
        fault = fault_of(SpeakerModel("x", str(path), ""))
        assert fault is not None
        assert "\n" not in fault
        assert "WeSpeaker" in fault
