"""Log-mel spectrograms, as faster-whisper computes them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from workers.messages import SAMPLE_RATE

if TYPE_CHECKING:
    import numpy.typing as npt

Tensor = torch.Tensor

_FFT_SAMPLES = 400
_HOP_SAMPLES = 160
FRAMES_PER_SECOND = SAMPLE_RATE // _HOP_SAMPLES

# Slaney's mel scale: linear up to 1 kHz, then logarithmic.
_HZ_PER_MEL = 200 / 3
_BREAK_HZ, _BREAK_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27  # per mel
_MOST_MEL = 45.245640471924965  # of 8 kHz


class Spectrograms:
    """Computes the spectrograms of several windows at once, on the device."""

    def __init__(self, mel_bins: int, device: str) -> None:
        self._filters = torch.from_numpy(_mel_filters(mel_bins)).to(device)
        self._hann = torch.hann_window(_FFT_SAMPLES, dtype=torch.float64).float().to(device)

    def __call__(self, audio: Sequence["npt.NDArray[np.int16]"], context_s: int) -> Tensor:
        """The spectrograms of windows (padded as `padded` does): (windows, mel bins, frames), float32.

        Frames behind a window's audio are 0.
        """
        device = self._hann.device
        frames = context_s * FRAMES_PER_SECOND
        samples = torch.zeros((len(audio), _FFT_SAMPLES + frames * _HOP_SAMPLES), dtype=torch.int16)
        for row, window in zip(samples, audio, strict=True):
            row[: len(window)] = torch.from_numpy(window[: len(row)])
        lengths = torch.tensor(
            [(len(window) - _FFT_SAMPLES) // _HOP_SAMPLES for window in audio], device=device
        )
        spectrum = torch.stft(
            samples.to(device).float() / 32768,
            _FFT_SAMPLES,
            _HOP_SAMPLES,
            window=self._hann,
            center=False,
            return_complex=True,
        )
        mel = self._filters @ spectrum[..., :frames].abs() ** 2
        logs = mel.clamp(min=1e-10).log10()
        exists = torch.arange(frames, device=device) < lengths[:, None, None]
        loudest = logs.masked_fill(~exists, -torch.inf).amax((1, 2), keepdim=True)
        return torch.where(exists, (torch.maximum(logs, loudest - 8) + 4) / 4, 0)


def padded(pcm: bytes) -> "npt.NDArray[np.int16]":
    """A window's samples with one hop of silence behind them, mirrored at both ends."""
    samples = np.pad(np.frombuffer(pcm, "<i2"), (0, _HOP_SAMPLES))
    return np.pad(samples, _FFT_SAMPLES // 2, mode="reflect")


def _mel_filters(mel_bins: int) -> "npt.NDArray[np.float32]":
    """Triangular filters of equal area: shape (mel bins, frequencies)."""
    mels = np.linspace(0, _MOST_MEL, mel_bins + 2)
    hertz = np.where(
        mels < _BREAK_MEL, _HZ_PER_MEL * mels, _BREAK_HZ * np.exp(_LOG_STEP * (mels - _BREAK_MEL))
    )
    frequencies = np.fft.rfftfreq(_FFT_SAMPLES, 1 / SAMPLE_RATE)
    rising = (frequencies - hertz[:-2, None]) / np.diff(hertz)[:-1, None]
    falling = (hertz[2:, None] - frequencies) / np.diff(hertz)[1:, None]
    area = 2 / (hertz[2:] - hertz[:-2])
    filters: npt.NDArray[np.float32] = (np.minimum(rising, falling).clip(min=0) * area[:, None]).astype("f4")
    return filters
