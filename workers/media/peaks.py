"""The lowest and the highest sample of each bin of a recording, for the waveform that a player draws."""

import numpy as np

from workers.messages import BYTES_PER_SAMPLE, PEAK_SAMPLES

_BIN_BYTES = PEAK_SAMPLES * BYTES_PER_SAMPLE
_BLOCK_BYTES = 1 << 18  # searched at once: a decoder's chunk is a few bins, and numpy takes as long for one


class PeakFinder:
    """Finds the peaks of a recording that arrives in chunks of any size."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._waiting = 0  # bytes in them
        self._found = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Add the next chunk: s16le, whole samples."""
        self._chunks.append(chunk)
        self._waiting += len(chunk)
        if self._waiting >= _BLOCK_BYTES:
            self._search()

    def take(self, *, finished: bool) -> bytes:
        """The peaks of the bins that are complete since the last call: pairs of int16, little-endian.

        `finished`: the recording has ended, and its last bin may be shorter than the others.
        """
        self._search()
        if finished and self._waiting:
            self._add(b"".join(self._chunks))
        found, self._found = bytes(self._found), bytearray()
        return found

    def _search(self) -> None:
        pcm = b"".join(self._chunks)
        complete = len(pcm) // _BIN_BYTES * _BIN_BYTES
        if complete:
            self._add(pcm[:complete])
        rest = pcm[complete:]
        self._chunks, self._waiting = [rest], len(rest)

    def _add(self, pcm: bytes) -> None:
        """Add the peaks of bins; the last one may be shorter than the others."""
        samples = np.frombuffer(pcm, "<i2")
        starts = np.arange(0, len(samples), PEAK_SAMPLES)
        pairs = np.empty((len(starts), 2), "<i2")
        np.minimum.reduceat(samples, starts, out=pairs[:, 0])
        np.maximum.reduceat(samples, starts, out=pairs[:, 1])
        self._found += pairs.tobytes()
