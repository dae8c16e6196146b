"""Writes each channel of a recording to a file, and finds channels that are the same."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt

from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE

# Two channels are the same if the loudest second of their difference is so much quieter than the loudest
# second of the louder one: 40 dB. Encoders leave such differences between the channels of a mono recording.
# So are they if that is true of their sum: one of them is upside down, as a wrong cable makes it.
SAME_RATIO = 1e-4

Samples = npt.NDArray[np.int16]


class ChannelFiles:
    """The files for the channels of a recording, of which there may be fewer than files."""

    def __init__(self, paths: Sequence[Path], start: int) -> None:
        """Opens files that exist, to be written in place from the sample `start` on. Raises OSError."""
        with ExitStack() as opened:
            self._files = [opened.enter_context(path.open("r+b")) for path in paths]
            for file in self._files:
                file.seek(start * BYTES_PER_SAMPLE)
            self._opened = opened.pop_all()
        self.channels = 1
        self._loudness = _Loudness(1)

    def write(self, pcm: bytes, channels: int) -> None:
        """Write the next samples: those of all channels side by side, as many channels in each call."""
        if channels != self.channels:
            self.channels, self._loudness = channels, _Loudness(channels)
        if channels == 1 or not pcm:
            self._files[0].write(pcm)
            return
        samples = np.frombuffer(pcm, "<i2").reshape(-1, channels).T
        for file, channel in zip(self._files, samples, strict=False):
            file.write(channel.tobytes())
        self._loudness.feed(samples)

    def flush(self) -> None:
        """Let other processes read what is written."""
        for file in self._files:
            file.flush()

    def finish(self) -> tuple[int, ...]:
        """End the files with their samples. Returns the numbers of the channels that differ, from 0."""
        for file in self._files[: self.channels]:
            file.truncate()
        return self._loudness.distinct()

    def close(self) -> None:
        self._opened.close()


def mixed(pcm: bytes, channels: int) -> bytes:
    """The mean of all channels, from samples side by side."""
    if channels == 1 or not pcm:
        return pcm
    mean: Samples = np.frombuffer(pcm, "<i2").reshape(-1, channels).mean(1).astype("<i2")
    return mean.tobytes()


class _Loudness:
    """The energy of the loudest second of each channel, and of the difference and the sum of each two."""

    def __init__(self, channels: int) -> None:
        self._loudest = np.zeros((2, channels, channels))  # of difference and sum; on the diagonal, of one
        self._waiting: list[Samples] = []
        self._count = 0

    def feed(self, samples: Samples) -> None:
        """Add the next samples, shape (channels, n)."""
        self._waiting.append(samples)
        self._count += samples.shape[1]
        if self._count >= SAMPLE_RATE:
            self._measure()

    def distinct(self) -> tuple[int, ...]:
        """The channels that are not the same as an earlier one."""
        self._measure()
        energies = self._loudest[0].diagonal()
        found: list[int] = []
        for channel, energy in enumerate(energies):
            limits = SAME_RATIO * np.maximum(energies[found], energy)
            if not (self._loudest[:, channel, found] <= limits).any():
                found.append(channel)
        return tuple(found)

    def _measure(self) -> None:
        if not self._count:
            return
        samples = np.concatenate(self._waiting, axis=1)
        for start in range(0, self._count, SAMPLE_RATE):
            second = samples[:, start : start + SAMPLE_RATE].astype(np.float64)
            products = second @ second.T  # exact: sums of integers below 2**53
            energies = products.diagonal()
            for loudest, sign in zip(self._loudest, (-1, 1), strict=True):
                joined = energies[:, None] + energies + 2 * sign * products
                np.fill_diagonal(joined, energies)
                np.maximum(loudest, joined, out=loudest)
        self._waiting, self._count = [], 0
