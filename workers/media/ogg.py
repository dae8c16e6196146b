"""The parts of an Ogg file that FFmpeg decodes one by one only: it gives up where another format begins."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

_BLOCK_BYTES = 1 << 18
_MAX_PARTS = 1000
_TOGETHER_BYTES = 512  # streams that begin as close as that are there at the same time
# The first page of a stream of sound: its flag is 2 or 3, and it has one segment.
_FIRST_PAGE = re.compile(
    rb"OggS\x00[\x02\x03].{20}\x01.(?=(OpusHead|\x01vorbis|\x7fFLAC|Speex   ))(.{52})", re.DOTALL
)
_PAGE_BYTES = 80  # that match
# By the codec: the part of its first page that must stay the same.
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
    streams: list[tuple[int, list[tuple[bytes, bytes]]]] = []
    for place, codec, page in _first_pages(path):
        if not streams or place - streams[-1][0] > _TOGETHER_BYTES:
            streams.append((place, []))
        streams[-1][1].append((codec, page[_SETTINGS[codec]]))
    changes = [place for (_, before), (place, after) in pairwise(streams) if before != after]
    starts = [0, *changes[: _MAX_PARTS - 1]]
    return list(zip(starts, [*starts[1:], None], strict=True))


def _first_pages(path: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Each page with which a stream begins: its place, the codec, and the first bytes of its content."""
    block = b""
    with path.open("rb") as file:
        while more := file.read(_BLOCK_BYTES):
            block = block[1 - _PAGE_BYTES :] + more
            for page in _FIRST_PAGE.finditer(block):
                yield file.tell() - len(block) + page.start(), page[1], page[2]
