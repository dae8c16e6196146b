"""The lowest and the highest sample of each bin of a recording, for the waveform that a player draws."""

import numpy as np

from workers.messages import BYTES_PER_SAMPLE, PEAK_SAMPLES

_BIN_BYTES = PEAK_SAMPLES * BYTES_PER_SAMPLE
_BLOCK_BYTES = 400 * _BIN_BYTES  # searched at once: numpy takes as long for a decoder's small chunk


class PeakFinder:
    """Finds the peaks of a recording that arrives in chunks of any size."""

    def __init__(self) -> None:
        self._pcm = bytearray()  # not searched yet
        self._found = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Add the next chunk: s16le, whole samples."""
        self._pcm += chunk
        if len(self._pcm) >= _BLOCK_BYTES:
            self._search(len(self._pcm) // _BIN_BYTES * _BIN_BYTES)

    def take(self, *, finished: bool) -> bytes:
        """The peaks of the bins that are complete since the last call: pairs of int16, little-endian.

        `finished`: the recording has ended, and its last bin may be shorter than the others.
        """
        self._search(len(self._pcm) if finished else len(self._pcm) // _BIN_BYTES * _BIN_BYTES)
        found, self._found = bytes(self._found), bytearray()
        return found

    def _search(self, size: int) -> None:
        """Search the first `size` bytes."""
        if not size:
            return
        samples = np.frombuffer(self._pcm, "<i2", size // BYTES_PER_SAMPLE)
        starts = np.arange(0, len(samples), PEAK_SAMPLES)
        pairs = np.empty((len(starts), 2), "<i2")
        np.minimum.reduceat(samples, starts, out=pairs[:, 0])
        np.maximum.reduceat(samples, starts, out=pairs[:, 1])
        self._found += pairs.tobytes()
        del samples  # it holds the buffer
        del self._pcm[:size]
