"""The voice encoder of the package `resemblyzer`: a GE2E model (Wan et al., arXiv:1710.10467) of 256 values.

Importing the package imports webrtcvad and librosa, of which one wants a compiler and the other a dozen
packages. So this module takes only the file of weights from it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.media.voices.units import Floats
from workers.messages import SAMPLE_RATE

MEL_BANDS = 40
VALUES = 256
_LAYERS = 3
_FFT_SAMPLES = 400  # 25 ms
_HOP_SAMPLES = 160  # 10 ms
_LOUDNESS = 10 ** (-30 / 20)  # RMS to which quieter windows are raised: -30 dBFS
# Slaney's mel scale: linear below 1 kHz, logarithmic above.
_LINEAR_HZ = 200 / 3  # per mel
_BREAK_HZ, _BREAK_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27  # per mel


class Ge2e:
    """The model, on the CPU with one thread. It keeps no state between calls."""

    def __init__(self, path: str) -> None:
        """Load torch, and the weights from resemblyzer's file."""
        import torch

        torch.set_num_threads(1)
        weights = torch.load(path, map_location="cpu", weights_only=True)["model_state"]
        self._lstm: Any = torch.nn.LSTM(MEL_BANDS, VALUES, _LAYERS, batch_first=True)
        self._linear: Any = torch.nn.Linear(VALUES, VALUES)
        for name, layer in (("lstm.", self._lstm), ("linear.", self._linear)):
            layer.load_state_dict(
                {key.removeprefix(name): value for key, value in weights.items() if key.startswith(name)}
            )

    def embed(self, windows: Sequence[Floats]) -> Floats:
        """The embedding of each window, whose samples are -1 to 1: shape (windows, 256), any length."""
        import torch
        from torch.nn.utils.rnn import pack_sequence

        mels = [torch.from_numpy(mel_spectrogram(raised(window))) for window in windows]
        with torch.inference_mode():
            _, (hidden, _) = self._lstm(pack_sequence(mels, enforce_sorted=False))
            embeddings: Floats = torch.relu(self._linear(hidden[-1])).numpy()
        return embeddings


def raised(window: Floats) -> Floats:
    """The window, at least as loud as the model is used to."""
    rms = float(np.sqrt(np.mean(np.square(window, dtype=np.float64)))) if len(window) else 0.0
    return window * np.float32(_LOUDNESS / rms) if 0 < rms < _LOUDNESS else window


def mel_spectrogram(samples: Floats) -> Floats:
    """The power in each mel band each 10 ms, as librosa computes it: shape (frames, 40), one frame at least.

    The first frame has the first sample in its middle; silence surrounds the samples.
    """
    padded = np.pad(samples, _FFT_SAMPLES // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FFT_SAMPLES)[::_HOP_SAMPLES]
    hann, filters = _hann(), _mel_filters()
    power = np.square(np.abs(np.fft.rfft(frames * hann))).astype(np.float32)
    return power @ filters


@cache
def _hann() -> Floats:
    """Periodic: the last of its 401 points is the first of the next period."""
    return np.hanning(_FFT_SAMPLES + 1)[:-1].astype(np.float32)


@cache
def _mel_filters() -> Floats:
    """Triangles of equal area on Slaney's scale: shape (frequencies, bands)."""
    edges = _hz(np.linspace(0, _mel(SAMPLE_RATE / 2), MEL_BANDS + 2))
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    frequencies = np.fft.rfftfreq(_FFT_SAMPLES, 1 / SAMPLE_RATE)[:, None]
    rising = (frequencies - low) / (centre - low)
    falling = (high - frequencies) / (high - centre)
    triangles = np.maximum(0, np.minimum(rising, falling))
    return (triangles * (2 / (high - low))).astype(np.float32)


def _mel(hz: float) -> float:
    """Of a frequency above the break."""
    return _BREAK_MEL + float(np.log(hz / _BREAK_HZ) / _LOG_STEP)


def _hz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    logarithmic = _BREAK_HZ * np.exp(_LOG_STEP * (mels - _BREAK_MEL))
    return np.where(mels < _BREAK_MEL, mels * _LINEAR_HZ, logarithmic)
