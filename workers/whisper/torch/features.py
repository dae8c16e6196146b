"""Log-mel spectrograms, as faster-whisper computes them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from workers.mel import FFT_SAMPLES, HOP_SAMPLES, mel_filters
from workers.messages import SAMPLE_RATE

if TYPE_CHECKING:
    import numpy.typing as npt

Tensor = torch.Tensor

FRAMES_PER_SECOND = SAMPLE_RATE // HOP_SAMPLES


class Spectrograms:
    """Computes the spectrograms of several windows at once, on the device."""

    def __init__(self, mel_bins: int, device: str) -> None:
        self._filters = torch.from_numpy(mel_filters(mel_bins).T.copy()).to(device)
        self._hann = torch.hann_window(FFT_SAMPLES, dtype=torch.float64).float().to(device)

    def __call__(self, audio: Sequence["npt.NDArray[np.int16]"], context_s: int) -> Tensor:
        """The spectrograms of windows (padded as `padded` does): (windows, mel bins, frames), float32.

        Frames behind a window's audio are 0.
        """
        device = self._hann.device
        frames = context_s * FRAMES_PER_SECOND
        samples = torch.zeros((len(audio), FFT_SAMPLES + frames * HOP_SAMPLES), dtype=torch.int16)
        for row, window in zip(samples, audio, strict=True):
            row[: len(window)] = torch.from_numpy(window[: len(row)])
        lengths = torch.tensor(
            [(len(window) - FFT_SAMPLES) // HOP_SAMPLES for window in audio], device=device
        )
        spectrum = torch.stft(
            samples.to(device).float() / 32768,
            FFT_SAMPLES,
            HOP_SAMPLES,
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
    samples = np.pad(np.frombuffer(pcm, "<i2"), (0, HOP_SAMPLES))
    return np.pad(samples, FFT_SAMPLES // 2, mode="reflect")
