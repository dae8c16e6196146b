"""The bytes that FFmpeg gets of a file: all of them, those behind its tags, or what libsndfile decodes of it.

The parent imports this module, so it imports soundfile in functions only.
"""

import re
import struct
from collections.abc import Iterator
from errno import EILSEQ
from io import SEEK_SET, FileIO
from pathlib import Path
from typing import Any, BinaryIO

_TAG_HEADER_BYTES = 10
_MAX_TAGS = 100
_LONG_TAGS_BYTES = 500_000  # FFmpeg looks for what follows them in the first megabyte only
_FREE_FORMAT = re.compile(rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff][\x00-\x0b]")  # MPEG audio without a bit rate
_MISREAD = (
    "G721",
    "G723",
    "NMS_ADPCM",
)  # codings of libsndfile that FFmpeg takes for others without an error
_WEAK = ("HTK", "MAT4", "MPC2K", "RAW", "SD2", "SDS")  # formats of libsndfile with a short mark or none
_AU_FLOAT = 6
_NO_LENGTH = 0xFFFFFFFF  # FFmpeg then reads to the end

# How files begin, by FFmpeg's name of their format, if it may end where another file was joined to the first.
_BEGINNINGS = {
    "amr": re.compile(rb"#!AMR(-WB)?\n"),
    "flv": re.compile(rb"FLV\x01[\x00-\x05]\x00{3}\x09\x00{4}"),
    "matroska,webm": re.compile(rb"\x1aE\xdf\xa3.{1,60}?\x42\x82[\x84\x88](webm|matroska)", re.DOTALL),
    "ogg": re.compile(rb"OggS\x00[\x02\x03]"),
}
_BEGINNING_BYTES = 80  # at most, that match
_BLOCK_BYTES = 1 << 18


class Source(FileIO):
    """A file from the byte `skip` on.

    A failed seek returns -1, as FFmpeg expects: damaged files have wrong offsets.
    """

    coding: str | None = None  # FFmpeg knows it

    def __init__(self, path: Path, skip: int = 0) -> None:
        super().__init__(path)
        self._skip = super().seek(skip)

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        try:
            return super().seek(offset + (self._skip if whence == SEEK_SET else 0), whence) - self._skip
        except (OSError, OverflowError):
            return -1


class FloatSource:
    """An AU file of floats without a length, decoded by libsndfile while it is read, from its beginning."""

    def __init__(self, file: Any) -> None:
        """`file`: the `soundfile.SoundFile`, which this closes."""
        file.seekable = lambda: False  # else each read would end with a seek, which fails for DWVW
        self._file = file
        self.coding = str(file.subtype).lower()
        self._head = struct.pack(">4s5I", b".snd", 24, _NO_LENGTH, _AU_FLOAT, file.samplerate, file.channels)

    def read(self, size: int) -> bytes:
        """The next bytes: the header, then about `size` of samples, at least those of a frame."""
        import av
        from soundfile import SoundFileError

        if self._head:
            head, self._head = self._head, b""
            return head
        try:
            frames = self._file.read(max(1, size // (4 * self._file.channels)), "float32", always_2d=True)
        except SoundFileError:
            raise av.InvalidDataError(EILSEQ, "libsndfile cannot decode the rest") from None
        return bytes(frames.astype(">f4").tobytes())

    def close(self) -> None:
        self._file.close()


def readers(path: Path) -> Iterator[Source | FloatSource]:
    """The ways in which the sound of a file may be decoded, the likely one first. The caller closes each.

    Raises OSError.
    """
    with path.open("rb") as file:
        start = _skip_tags(file)
        head = file.read(4)
    if head == b"RIFX":  # FFmpeg swaps the bytes of its samples, without an error
        return (yield from _by_libsndfile(path))
    if _FREE_FORMAT.match(head):
        yield from _by_libsndfile(path)
    elif head in (b"RIFF", b".snd"):
        yield from _by_libsndfile(path, _MISREAD)
    if start > _LONG_TAGS_BYTES:  # FFmpeg takes all that follows for MP3
        yield Source(path, start)
    yield Source(path)
    if head[:1] != b"\xff":  # libsndfile takes much for MP3
        yield from _by_libsndfile(path)


def skipped_bytes(path: Path) -> int:
    """The length of the tags of a file that FFmpeg does not get, as `readers` has it. Raises OSError."""
    with path.open("rb") as file:
        return start if (start := _skip_tags(file)) > _LONG_TAGS_BYTES else 0


def next_file(path: Path, form: str, place: int) -> int:
    """Where the next one begins of files that were joined, from the byte `place` on; 0 if there is none.

    `form`: FFmpeg's name of their format. Raises OSError.
    """
    if form not in _BEGINNINGS:
        return 0
    block = b""
    with path.open("rb") as file:
        file.seek(place)
        while more := file.read(_BLOCK_BYTES):
            block = block[-_BEGINNING_BYTES:] + more
            if found := _BEGINNINGS[form].search(block):
                return file.tell() - len(block) + found.start()
    return 0


def tag_bytes(size: bytes) -> int:
    """The length of an ID3 tag behind its header, from the last four bytes of that: 7 bits of each."""
    return sum((byte & 0x7F) << shift for byte, shift in zip(size, (21, 14, 7, 0), strict=True))


def _skip_tags(file: BinaryIO) -> int:
    """Skip the ID3 tags with which a file begins. Returns where they end."""
    end = 0
    for _ in range(_MAX_TAGS):
        header = file.read(_TAG_HEADER_BYTES)
        if header[:3] != b"ID3" or len(header) < _TAG_HEADER_BYTES:
            break
        footer = _TAG_HEADER_BYTES if header[5] & 0x10 else 0
        end = file.seek(end + _TAG_HEADER_BYTES + tag_bytes(header[6:]) + footer)
    return file.seek(end)


def _by_libsndfile(path: Path, codings: tuple[str, ...] = ("",)) -> Iterator[FloatSource]:
    """The file, if libsndfile recognises a recording in it in one of `codings`, as their names begin."""
    from soundfile import SoundFile, SoundFileError

    try:
        file = SoundFile(str(path))
    except SoundFileError:
        return
    if file.format in _WEAK or not file.subtype.startswith(codings):
        file.close()
    else:
        yield FloatSource(file)
