"""Log-mel spectrograms, as faster-whisper computes them."""

from collections.abc import Sequence

import numpy as np
import torch

from workers.mel import FFT_SAMPLES, HOP_SAMPLES, mel_filters
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE

Tensor = torch.Tensor


class Spectrograms:
    """Computes the spectrograms of several windows at once, on the device."""

    def __init__(self, mel_bins: int, device: str, windows: int) -> None:
        """For up to so many windows."""
        self._filters = torch.from_numpy(mel_filters(mel_bins).T.copy()).to(device)
        self._hann = torch.hann_window(FFT_SAMPLES, dtype=torch.float64).float().to(device)
        size = windows * (FULL_CONTEXT_S * SAMPLE_RATE + FFT_SAMPLES)
        # A GPU reads such memory without a copy between.
        self._samples = torch.empty(size, dtype=torch.int16, pin_memory=device != "cpu")

    def upload(self, audio: Sequence[bytes], context_s: int, first: int = 0) -> tuple[Tensor, Tensor]:
        """The samples of windows on the device, (windows, samples), and how many frames each has.

        With one hop of silence behind them, and mirrored at both ends. What the context lacks is left out.
        `first`: the place of the first window; those at other places may be on their way still.
        """
        edge, length = FFT_SAMPLES // 2, context_s * SAMPLE_RATE + FFT_SAMPLES
        samples = self._samples[first * length :][: len(audio) * length].view(-1, length)
        frames = []
        for row, pcm in zip(samples.numpy(), audio, strict=True):
            window = np.frombuffer(pcm, "<i2")
            end = edge + len(window) + HOP_SAMPLES
            whole, behind = row[edge:end], row[end:]
            whole[: len(window)] = window[: len(whole)]
            whole[len(window) :] = 0
            row[:edge] = np.pad(whole[:FFT_SAMPLES], (edge, 0), "reflect")[:edge]
            mirrored = np.pad(whole[-FFT_SAMPLES:], (0, edge), "reflect")[-edge:][: len(behind)]
            behind[: len(mirrored)], behind[len(mirrored) :] = mirrored, 0
            frames.append((end - edge) // HOP_SAMPLES)
        on_device = samples.to(self._hann.device, non_blocking=True)
        return on_device, torch.tensor(frames).to(self._hann.device, non_blocking=True)

    def __call__(self, samples: Tensor, lengths: Tensor) -> Tensor:
        """The spectrograms of windows as `upload` gives them: (windows, mel bins, frames), float32.

        Frames behind a window's audio are 0.
        """
        frames = (samples.shape[1] - FFT_SAMPLES) // HOP_SAMPLES
        spectrum = torch.stft(
            samples.float() / 32768,
            FFT_SAMPLES,
            HOP_SAMPLES,
            window=self._hann,
            center=False,
            return_complex=True,
        )
        mel = self._filters @ spectrum[..., :frames].abs() ** 2
        logs = mel.clamp(min=1e-10).log10()
        exists = torch.arange(frames, device=lengths.device) < lengths[:, None, None]
        loudest = logs.masked_fill(~exists, -torch.inf).amax((1, 2), keepdim=True)
        return torch.where(exists, (torch.maximum(logs, loudest - 8) + 4) / 4, 0)
