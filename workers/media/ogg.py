"""The parts of an Ogg file that FFmpeg decodes one by one only: it gives up where another format begins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MARK = b"OggS"  # with which a page begins
_HEADER_BYTES = 27  # of a page, before the lengths of its segments
_BEGINS = 2  # flag of the first page of a stream
_BLOCK_BYTES = 1 << 18
_MAX_PARTS = 1000
# By the first bytes of a stream of sound: the part of its first page that must stay the same.
_SETTINGS = {
    b"OpusHead": slice(9, 10),
    b"\x01vorbis": slice(11, 16),
    b"\x7fFLAC": slice(27, 31),
    b"Speex   ": slice(36, 52),
}


def formats(path: Path) -> list[tuple[int, int | None]]:
    """From which byte to which each part is of one format. None: to the end. Raises OSError.

    Streams whose sound has the same format are one part, also if they follow each other.
    """
    starts = [0]
    last: list[tuple[bytes, bytes]] = []
    there: list[tuple[bytes, bytes]] = []
    begin, is_beginning = 0, False
    for position, first in _pages(path):
        if first is not None:
            if not is_beginning:
                begin, there = position, []
            there += [(mark, first[part]) for mark, part in _SETTINGS.items() if first.startswith(mark)]
        elif is_beginning and there:
            if last not in ([], there) and len(starts) < _MAX_PARTS:
                starts.append(begin)
            last = there
        is_beginning = first is not None
    return list(zip(starts, [*starts[1:], None], strict=True))


def _pages(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The place of each page, and the content of those with which a stream begins."""
    found: int | None = 0
    with path.open("rb") as file:
        while found is not None:
            page = file.seek(found)
            header = file.read(_HEADER_BYTES)
            if len(header) == _HEADER_BYTES:
                lengths = file.read(header[26])
                yield page, file.read(sum(lengths)) if header[5] & _BEGINS else None
                found = file.seek(page + _HEADER_BYTES + len(lengths) + sum(lengths))
            if len(header) < _HEADER_BYTES or file.read(len(_MARK)) != _MARK:
                found = _next(file, page + len(_MARK))  # this one may be cut off


def _next(file: Any, position: int) -> int | None:
    """The place of the next page after a damage; None if there is none."""
    file.seek(position)
    block = b""
    while more := file.read(_BLOCK_BYTES):
        block = block[-len(_MARK) :] + more
        if (at := block.find(_MARK)) >= 0:
            return int(file.tell() - len(block) + at)
    return None
