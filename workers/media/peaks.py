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
            self._add(np.frombuffer(b"".join(self._chunks), "<i2").reshape(1, -1))
        found, self._found = bytes(self._found), bytearray()
        return found

    def _search(self) -> None:
        pcm = b"".join(self._chunks)
        complete = len(pcm) // _BIN_BYTES
        self._add(np.frombuffer(pcm, "<i2", complete * PEAK_SAMPLES).reshape(complete, PEAK_SAMPLES))
        rest = pcm[complete * _BIN_BYTES :]
        self._chunks, self._waiting = [rest], len(rest)

    def _add(self, bins: np.ndarray[tuple[int, int], np.dtype[np.int16]]) -> None:
        """Add the peaks of complete bins, shape (bins, samples)."""
        pairs = np.stack([bins.min(axis=1), bins.max(axis=1)], axis=1)
        self._found += pairs.astype("<i2").tobytes()
