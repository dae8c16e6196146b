"""Python objects in little memory: what is kept for long, and seldom looked at."""

import pickle
import zlib
from typing import Any

_LEVEL = 1  # text and numbers: higher levels save little


def pack(value: object) -> bytes:
    """The value as bytes; of text with word times, a twentieth of the memory that the objects take."""
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), _LEVEL)


def unpack(content: bytes) -> Any:
    """The value again. For what this process has packed itself: pickled data can run code."""
    return pickle.loads(zlib.decompress(content))
