"""A WAV file that grows while its sound comes: it is complete after each write, whatever ends the service."""

import os
import struct
from io import BufferedRandom, BufferedWriter
from pathlib import Path

from app.intake.disk import Reservation, disk_errors
from app.intake.file_sink import too_large
from workers.messages import Encoding

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_MOST = (1 << 32) - _HEADER.size  # bytes of sound that a header can say
_FORMATS = {"": 1, "alaw": 6, "ulaw": 7}


class GrowingWav:
    """Its methods may block: call them in threads, one at a time."""

    def __init__(self, path: Path, encoding: Encoding, space: Reservation, max_bytes: int) -> None:
        """`space` says whether the disk and its owner's share have space for more."""
        self.size = 0  # bytes of the file
        self._encoding = encoding
        self._space = space
        self._max_bytes = max_bytes
        with disk_errors():
            # Only the service's own user may read recordings.
            self._file: BufferedWriter | BufferedRandom = os.fdopen(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            )

    def write(self, audio: bytes) -> None:
        """Add whole samples. Raises TooLarge, DiskFull and OSError."""
        size = max(self.size, _HEADER.size) + len(audio)
        if size > self._max_bytes:
            raise too_large(self._max_bytes, "file")
        with disk_errors():
            self._space.check(len(audio))
            self._file.seek(size - len(audio))
            self._file.write(audio)
            self._file.flush()  # before the header says that it is there
            self._file.seek(0)
            self._file.write(self._header(size - _HEADER.size))
            self._file.flush()
        self.size = size

    def close(self) -> None:
        """The file survives a power cut from now on. Raises OSError."""
        with self._file as file:
            os.fsync(file.fileno())

    def _header(self, size: int) -> bytes:
        encoding, size = self._encoding, min(size, _MOST)
        return _HEADER.pack(
            *(b"RIFF", _HEADER.size - 8 + size, b"WAVE"),
            *(b"fmt ", 16, _FORMATS[encoding.law], encoding.channels, encoding.rate),
            *(encoding.bytes_per_second, encoding.bytes_per_sample, 8 * encoding.width),
            *(b"data", size),
        )
