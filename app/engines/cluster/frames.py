"""Pickled messages of any size between the server and the bridge to Ray: a length, then a pickle."""

import pickle
import struct
from typing import Any

MAX_BYTES = 256 << 20  # of a message; the largest are batches of audio, 16 MB
LENGTH = struct.Struct("!Q")


class FrameTooLarge(ValueError):
    """A message is larger than `MAX_BYTES`."""


def framed(*messages: object) -> list[bytes]:
    """Messages with their lengths, in pieces. Raises as `pickled` does if it cannot pickle one of them."""
    pieces = []
    for message in messages:
        first, *others = pickled(message)
        pieces += [LENGTH.pack(len(first) + sum(map(len, others))) + first, *others]
    return pieces


def pickled(message: object) -> list[bytes]:
    """A pickled message in pieces. Large bytes objects in it are pieces by themselves, and not copied.

    Raises FrameTooLarge, and what pickle raises if the message cannot be pickled.
    """
    pieces = _Pieces()
    pickle.Pickler(pieces, protocol=5).dump(message)
    if sum(map(len, pieces)) > MAX_BYTES:
        raise FrameTooLarge(f"a message is larger than {MAX_BYTES >> 20} MiB")
    return pieces


def result_of(answer: bytes) -> Any:
    """The result in a pickled answer: whether it is one, and the result or an error. Raises the error."""
    is_result, value = pickle.loads(answer)
    if not is_result:
        raise value
    return value


class _Pieces(list[bytes]):
    """A file that keeps what is written: pickle writes bytes objects of 64 KiB or more without a copy."""

    write = list.append
