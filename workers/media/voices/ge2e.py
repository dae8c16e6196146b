"""The voice encoder of the package `resemblyzer`: a GE2E model (Wan et al., arXiv:1710.10467) of 256 values.

Importing the package imports webrtcvad and librosa, of which one wants a compiler and the other a dozen
packages. So this module takes only the file of weights from it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from workers.media.voices import Floats
from workers.mel import FFT_SAMPLES, HOP_SAMPLES, mel_filters

MEL_BANDS = 40
VALUES = 256
_LAYERS = 3
_LOUDNESS = 10 ** (-30 / 20)  # RMS to which quieter windows are raised: -30 dBFS


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
    padded = np.pad(samples, FFT_SAMPLES // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT_SAMPLES)[::HOP_SAMPLES]
    hann, filters = _hann(), mel_filters(MEL_BANDS)
    power = np.square(np.abs(np.fft.rfft(frames * hann))).astype(np.float32)
    return power @ filters


@cache
def _hann() -> Floats:
    """Periodic: the last of its 401 points is the first of the next period."""
    return np.hanning(FFT_SAMPLES + 1)[:-1].astype(np.float32)
