"""The voices in a recording: embeddings of short windows of its speech, and these as bytes. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from workers.messages import Span

Embeddings = npt.NDArray[np.float32]  # shape (n, values), each row of length 1


@dataclass(frozen=True, slots=True, eq=False)
class Voices:
    """Windows of speech, in order, and the embedding of each."""

    windows: tuple[Span, ...]  # samples of the recording
    embeddings: Embeddings


def pack_voices(voices: Voices) -> bytes:
    """The voices as bytes: the embeddings as 16-bit floats, which are as exact as needed to compare them."""
    windows = np.array(voices.windows, "<i8").reshape(-1, 2)
    header = np.array([len(windows), voices.embeddings.shape[1]], "<i4")
    return header.tobytes() + windows.tobytes() + voices.embeddings.astype("<f2").tobytes()


def unpack_voices(content: bytes) -> Voices:
    """The reverse of `pack_voices`; each embedding has length 1 again."""
    count, values = np.frombuffer(content, "<i4", 2).tolist()
    windows = np.frombuffer(content, "<i8", 2 * count, 8).reshape(-1, 2)
    embeddings = np.frombuffer(content, "<f2", count * values, 8 + 16 * count).astype(np.float32)
    embeddings = embeddings.reshape(count, values)
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return Voices(tuple(map(tuple, windows.tolist())), embeddings / np.maximum(lengths, 1e-9))


def unpack_all(contents: Iterable[bytes]) -> Voices:
    """The voices of all clips as one."""
    clips = [clip for clip in map(unpack_voices, contents) if clip.windows]
    if not clips:
        return Voices((), np.zeros((0, 0), np.float32))
    windows = tuple(chain.from_iterable(clip.windows for clip in clips))
    return Voices(windows, np.concatenate([clip.embeddings for clip in clips]))
