"""How loud decoded audio is at any time."""

from pathlib import Path

import numpy as np

from workers.messages import SAMPLE_RATE

STEP = SAMPLE_RATE // 100  # samples: 10 ms
_BLOCK = 6000 * STEP  # read at once: a minute
_SILENCE = 1e-9  # energy of a sample, instead of none


class SoundLevels:
    """The levels of a file of int16 samples. Takes about 3 MB for each hour."""

    def __init__(self, pcm_path: Path) -> None:
        """Reads all of the file: call it in a thread or a process. Raises OSError."""
        energies = [np.zeros(1)]
        with pcm_path.open("rb") as file:
            while pcm := file.read(2 * _BLOCK):
                samples = np.frombuffer(pcm, "<i2").astype(np.float64)
                energies.append(np.add.reduceat(samples * samples, np.arange(0, len(samples), STEP)))
        self._sums = np.cumsum(np.concatenate(energies))  # of the energy before each step

    def level(self, start: int, end: int) -> float:
        """The mean level between two samples, in dB of int16's steps. It is that of the steps of 10 ms."""
        first = min(start // STEP, len(self._sums) - 1)
        last = min(max(-(-end // STEP), first + 1), len(self._sums) - 1)
        energy = (self._sums[last] - self._sums[first]) / max(1, (last - first) * STEP)
        return float(10 * np.log10(max(energy, _SILENCE)))
