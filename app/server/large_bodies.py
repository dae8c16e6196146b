"""Bodies that are compressed while they wait for their clients. Imports little: `Helper` calls it."""

import zlib
from typing import NamedTuple, Self

PART_BYTES = 1 << 16  # that are sent at a time
LARGE_BYTES = 1 << 18  # smaller ones stay as they are

_LEVEL = 1  # they are compressed only until they are sent


class Compressed(NamedTuple):
    """A large body."""

    size: int  # bytes, before it was compressed
    parts: tuple[bytes, ...]  # of `PART_BYTES` each, compressed by zlib

    @classmethod
    def of(cls, body: bytes | memoryview) -> Self:
        """A body, compressed. Uses CPU time: let `Helper` or a thread call it."""
        starts = range(0, len(body), PART_BYTES)
        return cls(len(body), tuple(zlib.compress(body[at : at + PART_BYTES], _LEVEL) for at in starts))


def compress(body: bytes) -> bytes | Compressed:
    """A body, in the form in which it may wait. Uses CPU time: let `Helper` call it."""
    return body if len(body) <= LARGE_BYTES else Compressed.of(body)
