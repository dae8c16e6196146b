"""The bytes that FFmpeg gets of a file: all of them, those behind its tags, or what libsndfile decodes of it.

The parent imports this module, so it imports soundfile in functions only.
"""

import struct
from collections.abc import Callable, Sequence
from errno import EILSEQ
from functools import partial
from io import SEEK_END, SEEK_SET, FileIO, RawIOBase
from pathlib import Path

from workers.media.ogg import formats

_HEAD_BYTES = 4096  # of a file, that tell what only libsndfile decodes
_TAG_HEADER_BYTES = 10
_MAX_TAGS = 100
_LONG_TAGS_BYTES = 500_000  # FFmpeg looks for what follows them in the first megabyte only
_MP3_HEADER_BYTES = 4
# Codings that FFmpeg takes for others. Some write AMR with the number of NMS ADPCM, whose blocks are larger.
_AU_CODINGS = (23, 25, 26)  # G.721, G.723-24 and G.723-40
_WAV_G721, _WAV_NMS = 0x40, 0x38
_AMR_BYTES = 32  # in a frame, at most
_WEAK = ("HTK", "MAT4", "MPC2K", "RAW", "SD2", "SDS")  # formats of libsndfile with a short mark or none
_WAV_FLOAT = 3
_NO_LENGTH = 0xFFFFFFFF  # FFmpeg then reads to the end

Way = Callable[[Path], "Source | FloatWav | None"]


class Source(FileIO):
    """A file from the byte `skip` on, up to `end`.

    A failed seek returns -1, as FFmpeg expects: damaged files have wrong offsets.
    """

    coding: str | None = None  # FFmpeg knows it

    def __init__(self, path: Path, skip: int = 0, end: int | None = None) -> None:
        super().__init__(path)
        self._skip, self._end = skip, end
        super().seek(skip)

    def read(self, size: int | None = -1) -> bytes:
        if self._end is not None:
            size = max(0, min(size or 0, self._end - super().tell()))
        return super().read(size)

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        if whence == SEEK_END and self._end is not None:
            offset, whence = self._end - self._skip + offset, SEEK_SET
        try:
            return super().seek(offset + (self._skip if whence == SEEK_SET else 0), whence) - self._skip
        except (OSError, OverflowError):
            return -1

    def tell(self) -> int:
        return super().tell() - self._skip


def ways_to_read(path: Path) -> Sequence[Way]:
    """The ways in which the sound of a file may be decoded, the likely one first. Raises OSError."""
    start = _tags_bytes(path)
    with path.open("rb") as file:
        file.seek(start)
        head = file.read(_HEAD_BYTES)
    if head[:4] == b"OggS":
        return (partial(Source, end=formats(path)[0][1]),)
    if head[:4] == b"RIFX" and head[8:12] == b"WAVE":
        return (_by_libsndfile,)  # FFmpeg swaps the bytes of its samples, without an error
    if _is_misread(head) or (head[:1] == b"\xff" and _is_free_format(head)):
        return (_by_libsndfile, Source)
    if start > _LONG_TAGS_BYTES:  # FFmpeg takes all that follows for MP3
        return (partial(Source, skip=start), Source)
    # libsndfile takes much for MP3.
    return (Source,) if head[:1] == b"\xff" else (Source, _by_libsndfile)


def _tags_bytes(path: Path) -> int:
    """The length of the ID3 tags with which a file begins."""
    position = 0
    with path.open("rb") as file:
        for _ in range(_MAX_TAGS):
            header = file.read(_TAG_HEADER_BYTES)
            if header[:3] != b"ID3" or len(header) < _TAG_HEADER_BYTES:
                break
            size = 0
            for byte in header[6:]:
                size = size << 7 | byte & 0x7F
            footer = _TAG_HEADER_BYTES if header[5] & 0x10 else 0
            position = file.seek(position + _TAG_HEADER_BYTES + size + footer)
    return position


def _is_misread(head: bytes) -> bool:
    """Whether FFmpeg would take the sound of a file for another coding, without an error."""
    if head[:4] == b".snd":
        return int.from_bytes(head[12:16]) in _AU_CODINGS
    if head[:4] != b"RIFF" or (chunk := head.find(b"fmt ")) < 0:
        return False
    coding, block_bytes = (int.from_bytes(head[chunk + at :][:2], "little") for at in (8, 20))
    return coding == _WAV_G721 or (coding == _WAV_NMS and block_bytes > _AMR_BYTES)


def _is_free_format(head: bytes) -> bool:
    """Whether a file begins with the header of a frame of MPEG audio that names no bit rate."""
    _, version, rate, *_ = head.ljust(_MP3_HEADER_BYTES, b"\xff")
    return version >= 0xE0 and version >> 1 & 3 != 0 and rate >> 4 == 0 and rate >> 2 & 3 != 3


def _by_libsndfile(path: Path) -> "FloatWav | None":
    """What libsndfile decodes of a file; None if it recognises no recording in it."""
    from soundfile import SoundFileError

    try:
        wav = FloatWav(path)
    except SoundFileError:
        return None
    if wav.form in _WEAK:
        wav.close()
        return None
    return wav


class FloatWav(RawIOBase):
    """A WAV file of floats without a length, decoded by libsndfile while it is read, from its beginning."""

    def __init__(self, path: Path) -> None:
        """Raises `soundfile.SoundFileError` if libsndfile does not recognise the file."""
        from soundfile import SoundFile

        class Forward(SoundFile):  # type: ignore[misc]
            def seekable(self) -> bool:
                """Else each read would end with a seek, which fails for DWVW."""
                return False

        self._file = Forward(str(path))
        self.form, self.coding = str(self._file.format), str(self._file.subtype).lower()
        channels, rate = self._file.channels, self._file.samplerate
        self._frame_bytes = 4 * channels
        fields = (16, _WAV_FLOAT, channels, rate, rate * self._frame_bytes, self._frame_bytes, 32)
        head = struct.pack("<4sI8sIHHIIHH", b"RIFF", _NO_LENGTH, b"WAVEfmt ", *fields)
        self._head = head + struct.pack("<4sI", b"data", _NO_LENGTH)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes: the header, then about `size` of samples, at least those of a frame."""
        import av
        from soundfile import SoundFileError

        if self._head:
            head, self._head = self._head, b""
            return head
        try:
            frames = self._file.read(max(1, size // self._frame_bytes), "float32", always_2d=True)
        except SoundFileError:
            raise av.InvalidDataError(EILSEQ, "libsndfile cannot decode the rest") from None
        return bytes(frames.astype("<f4").tobytes())

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()
