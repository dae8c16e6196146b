"""The function of a media worker that embeds voices. Nothing is loaded before its first call."""

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from workers import runtime
from workers.media.voices import Floats, unit_rows
from workers.media.voices.ge2e import Ge2e
from workers.media.voices.onnx_model import SUPPORTED, OnnxModel, UnknownVoiceModel, first_line
from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE, Span, SpeakerModel

log = logging.getLogger(__name__)

ONNX = ".onnx"  # what the names of such files end in

_BATCH = 64  # windows at a time, for the memory that they take


class VoiceModel(Protocol):
    """What a front end and its network do together."""

    def embed(self, windows: Sequence[Floats]) -> Floats:
        """The embedding of each window, whose samples are -1 to 1: shape (windows, values), any length."""


def embed(
    pcm_path: str, windows: Sequence[Span], model: SpeakerModel, model_path: str | None = None
) -> bytes:
    """The embedding of the voice in each window, at least one: float32, little-endian, each of length 1.

    `model_path`: where the model's file is, if not at `model.path`.
    The windows must be decoded already. What lies behind the end of the file is left out. The result depends
    on the file, the windows and the model alone. A window without sound or without any sample has an
    embedding too, of no meaning.
    """
    loaded = _loaded(model, model_path or model.path)
    embeddings = []
    with Path(pcm_path).open("rb") as file:
        for first in range(0, len(windows), _BATCH):
            samples = [_read(file, window) for window in windows[first : first + _BATCH]]
            embeddings.append(unit_rows(loaded.embed(samples)))
    log.debug("embedded the voices of %d windows", len(windows))
    return np.concatenate(embeddings).astype("<f4").tobytes()


def fault_of(model: SpeakerModel) -> str | None:
    """What is wrong with a model's file, in one line; None if it embeds a second of noise. Keeps nothing."""
    noise = np.random.default_rng(0).normal(0, 0.1, SAMPLE_RATE).astype(np.float32)
    try:
        _load(model, model.path).embed([noise])
    except UnknownVoiceModel as error:
        return f"{error}. {SUPPORTED}"
    except Exception as error:  # whatever the model's file makes of the noise
        return f"it fails with {first_line(error)}"
    return None


def _load(model: SpeakerModel, path: str) -> VoiceModel:
    with runtime.raised_memory_limit():
        return OnnxModel(path) if Path(model.path).suffix == ONNX else Ge2e(path)


_loaded = cache(_load)


def _read(file: BinaryIO, window: Span) -> Floats:
    """The samples of a window, -1 to 1."""
    start, end = window
    file.seek(start * BYTES_PER_SAMPLE)
    pcm = np.frombuffer(file.read((end - start) * BYTES_PER_SAMPLE), "<i2")
    return pcm.astype(np.float32) / np.float32(32768)
