"""The function of a media worker that embeds voices. Nothing is loaded before its first call."""

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from workers import runtime
from workers.media.voices.ge2e import Ge2e
from workers.messages import BYTES_PER_SAMPLE, Span, SpeakerModel

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float32]

_BATCH = 64  # windows at a time, for the memory that they take
_LEAST_LENGTH = 1e-6  # of an embedding that has a direction


class VoiceModel(Protocol):
    """What a front end and its network do together."""

    def embed(self, windows: Sequence[Floats]) -> Floats:
        """The embedding of each window, whose samples are -1 to 1: shape (windows, values), any length."""


def embed(pcm_path: str, windows: Sequence[Span], model: SpeakerModel) -> bytes:
    """The embedding of the voice in each window, at least one: float32, little-endian, each of length 1.

    The windows must be decoded already. What lies behind the end of the file is left out. The result depends
    on the file, the windows and the model alone. A window without sound or without any sample has an
    embedding too, of no meaning.
    """
    loaded = _load(model)
    embeddings = []
    with Path(pcm_path).open("rb") as file:
        for first in range(0, len(windows), _BATCH):
            samples = [_read(file, window) for window in windows[first : first + _BATCH]]
            embeddings.append(_unit(loaded.embed(samples)))
    log.debug("embedded the voices of %d windows", len(windows))
    return np.concatenate(embeddings).astype("<f4").tobytes()


@cache
def _load(model: SpeakerModel) -> VoiceModel:
    with runtime.raised_memory_limit():
        return Ge2e(model.path)


def _read(file: BinaryIO, window: Span) -> Floats:
    """The samples of a window, -1 to 1."""
    start, end = window
    file.seek(start * BYTES_PER_SAMPLE)
    pcm = np.frombuffer(file.read((end - start) * BYTES_PER_SAMPLE), "<i2")
    return pcm.astype(np.float32) / np.float32(32768)


def _unit(embeddings: Floats) -> Floats:
    """The embeddings with length 1. Those without a direction get the same one."""
    clean = np.where(np.isfinite(embeddings).all(1, keepdims=True), embeddings, 0)
    lengths = np.linalg.norm(clean, axis=1, keepdims=True)
    without = np.float32(embeddings.shape[1] ** -0.5)
    return np.where(lengths > _LEAST_LENGTH, clean / np.maximum(lengths, _LEAST_LENGTH), without)
