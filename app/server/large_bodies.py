"""Bodies that are compressed while they wait for their clients. Imports little: `Helper` calls it."""

import zlib
from typing import NamedTuple

PART_BYTES = 1 << 16  # that are sent at a time
LARGE_BYTES = 1 << 18  # smaller ones stay as they are

_LEVEL = 1  # they are compressed only until they are sent


class Compressed(NamedTuple):
    """A large body."""

    size: int  # bytes, before it was compressed
    parts: tuple[bytes, ...]  # of `PART_BYTES` each, compressed by zlib


def compress(body: bytes | memoryview) -> bytes | Compressed:
    """A body, in the form in which it may wait. Uses CPU time: let `Helper` or a thread call it."""
    if len(body) <= LARGE_BYTES:
        return bytes(body)
    starts = range(0, len(body), PART_BYTES)
    return Compressed(
        len(body), tuple(zlib.compress(body[start : start + PART_BYTES], _LEVEL) for start in starts)
    )
