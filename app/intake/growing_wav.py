"""A WAV file that grows while its sound comes: it is complete after each write, whatever ends the service."""

import os
import struct
from io import BufferedRandom, BufferedWriter
from pathlib import Path

from app.intake.disk import Reservation, disk_errors
from app.intake.file_sink import too_large
from workers.messages import Encoding

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
HEADER_BYTES = _HEADER.size
_MOST = (1 << 32) - HEADER_BYTES  # bytes of sound that a header can say
_FORMATS = {"": 1, "alaw": 6, "ulaw": 7}


def stored_sound(path: Path) -> tuple[Encoding, int]:
    """The encoding of the sound in a `GrowingWav`, and its bytes. Raises OSError."""
    with path.open("rb") as file:
        fields = _HEADER.unpack(file.read(HEADER_BYTES))
    law = next(law for law, number in _FORMATS.items() if number == fields[5])
    return Encoding(fields[7], fields[10] // 8, fields[6], law), min(
        fields[-1], path.stat().st_size - HEADER_BYTES
    )


class GrowingWav:
    """Its methods may block: call them in threads, one at a time."""

    def __init__(
        self, path: Path, encoding: Encoding, space: Reservation, max_bytes: int, size: int = 0
    ) -> None:
        """`space` says whether the disk and its owner's share have space for more. `size`: bytes of the file,
        if it is there and goes on.
        """
        self.size = size  # bytes of the file
        self._encoding = encoding
        self._space = space
        self._max_bytes = max_bytes
        with disk_errors():
            # Only the service's own user may read recordings.
            self._file: BufferedWriter | BufferedRandom = os.fdopen(
                os.open(path, os.O_WRONLY | (0 if size else os.O_CREAT | os.O_EXCL), 0o600), "wb"
            )

    def write(self, audio: bytes) -> None:
        """Add whole samples. Raises TooLarge, DiskFull and OSError."""
        size = max(self.size, HEADER_BYTES) + len(audio)
        if size > self._max_bytes:
            raise too_large(self._max_bytes, "file")
        with disk_errors():
            self._space.check(len(audio))
            self._file.seek(size - len(audio))
            self._file.write(audio)
            self._file.flush()  # before the header says that it is there
            self._file.seek(0)
            self._file.write(self._header(size - HEADER_BYTES))
            self._file.flush()
        self.size = size

    def close(self) -> None:
        """The file survives a power cut from now on. Raises OSError."""
        with self._file as file:
            os.fsync(file.fileno())

    def _header(self, size: int) -> bytes:
        encoding, size = self._encoding, min(size, _MOST)
        return _HEADER.pack(
            *(b"RIFF", HEADER_BYTES - 8 + size, b"WAVE"),
            *(b"fmt ", 16, _FORMATS[encoding.law], encoding.channels, encoding.rate),
            *(encoding.bytes_per_second, encoding.bytes_per_sample, 8 * encoding.width),
            *(b"data", size),
        )
