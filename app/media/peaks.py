"""The peaks of a recording, for the waveform that a player draws: the lowest and highest sample of each bin.

A bin has `PEAK_SAMPLES`; the last one may be shorter. Stored peaks are one byte for the version of the
format, the samples of the recording (uint64) and its greatest amplitude (uint16, 0 to 32768), little-endian.
Then come, compressed with zlib, the lowest samples of all bins and after them the highest: int8, where 127
stands for the greatest amplitude. So the waveform of a quiet recording is as fine as that of a loud one.
"""

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workers.messages import PEAK_SAMPLES

_VERSION = 1
_HEADER = struct.Struct("<BQH")
_STEPS = 127  # from silence to the greatest amplitude
_PAIR_BYTES = 4  # a bin's lowest and highest sample: int16
_LEVEL = 6  # of zlib
FULL_SCALE = 32768  # of int16


class PeakCollector:
    """Collects the peaks of a recording while it is decoded."""

    def __init__(self) -> None:
        self._pairs = bytearray()
        self._samples = 0

    def add(self, samples: int, peaks: bytes, *, finished: bool) -> None:
        """Add the peaks of the bins that a step has completed; `samples` are decoded after it.

        A worker that takes over from a crashed one decodes from the start: its first step replaces all.
        """
        bins = -(-samples // PEAK_SAMPLES) if finished else samples // PEAK_SAMPLES
        self._pairs[bins * _PAIR_BYTES - len(peaks) :] = peaks
        self._samples = samples

    def pack(self) -> bytes:
        """The peaks as they are stored. Uses CPU time on long recordings: call it in a thread."""
        pairs = np.frombuffer(self._pairs, "<i2").reshape(-1, 2)
        loudest = max(-int(pairs.min(initial=0)), int(pairs.max(initial=0)))
        scaled = pairs.T * np.float32(_STEPS / max(1, loudest))
        content = zlib.compress(np.rint(scaled, out=scaled).astype(np.int8).tobytes(), _LEVEL)
        return _HEADER.pack(_VERSION, self._samples, loudest) + content


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peaks of a recording, or of equal shares of it."""

    samples: int  # of the recording
    loudest: int  # the greatest amplitude of the recording, 0 to `FULL_SCALE`
    lowest: npt.NDArray[np.int8]  # shape (n,); 127 stands for `loudest`
    highest: npt.NDArray[np.int8]  # the same

    @classmethod
    def unpack(cls, content: bytes) -> "Peaks":
        """The stored peaks, one for each bin."""
        _, samples, loudest = _HEADER.unpack_from(content)
        values = np.frombuffer(zlib.decompress(memoryview(content)[_HEADER.size :]), np.int8)
        lowest, highest = values.reshape(2, -1)
        return cls(samples, loudest, lowest, highest)

    def resample(self, points: int) -> "Peaks":
        """The peaks of `points` equal shares of the recording.

        A share has the bins from the one in which it starts to the one before that in which the next starts,
        and one bin at least.
        """
        starts = self._starts(points)
        # For a start that equals the next one, `reduceat` gives the value of that one bin.
        lowest = np.minimum.reduceat(self.lowest, starts)
        return Peaks(self.samples, self.loudest, lowest, np.maximum.reduceat(self.highest, starts))

    def loudness(self, points: int) -> npt.NDArray[np.int8]:
        """How loud the same shares are: the root mean square of the amplitudes of their bins."""
        starts = self._starts(points)
        squares = np.maximum(-self.lowest.astype(np.float64), self.highest) ** 2
        bins = np.diff(starts, append=len(squares)).clip(1)
        loudness: npt.NDArray[np.int8] = np.rint(np.sqrt(np.add.reduceat(squares, starts) / bins)).astype(
            np.int8
        )
        return loudness

    def _starts(self, points: int) -> npt.NDArray[np.int64]:
        """The bin in which each share starts."""
        return np.arange(points, dtype=np.int64) * self.samples // (points * PEAK_SAMPLES)

    def level(self, value: int) -> float:
        """What one of the values stands for, -1 to 1."""
        return value / _STEPS * self.loudest / FULL_SCALE
