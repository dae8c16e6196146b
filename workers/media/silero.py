"""silero-vad's sequence model on onnxruntime.

Importing the package `silero_vad` imports torch, which its sequence model does not use. Torch would take
190 MiB of each media worker. So this module uses the package's model file alone.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.messages import FRAME_SAMPLES

_FILE = "data/silero_vad_16k_sequence.onnx"
CONTEXT_SAMPLES = 64  # of the previous frame, before each frame
_MAX_FRAMES = 512  # in one call of the model

Floats = npt.NDArray[np.float32]
Samples = npt.NDArray[np.int16]

SILENT: Floats = np.zeros((2, 1, 1, 128), np.float32)  # the state of the model before the first frame
NO_SAMPLES: Samples = np.zeros(CONTEXT_SAMPLES, np.int16)


class SileroModel:
    """The model, for 16 kHz. It keeps no state between calls."""

    def __init__(self) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(
            model_file(), sess_options=options, providers=["CPUExecutionProvider"]
        )

    def probabilities(self, frames: Floats, state: Floats = SILENT) -> tuple[Floats, Floats]:
        """The probability of speech in each frame, shape (frames,), and the state after the last one.

        `frames`: see `framed`. `state`: after the frame before the first. The values equal those of
        silero-vad's `audio_forward`.
        """
        hidden, cell = state
        found = [np.zeros(0, np.float32)]
        for first in range(0, len(frames), _MAX_FRAMES):
            block = {"input": frames[first : first + _MAX_FRAMES], "h": hidden, "c": cell}
            values, hidden, cell = self._session.run(["speech_probs", "hn", "cn"], block)
            found.append(values.reshape(-1))
        return np.concatenate(found), np.stack((hidden, cell))


@cache
def silero() -> SileroModel:
    """The model of this process. The first call loads it."""
    return SileroModel()


def framed(pcm: Samples, before: Samples = NO_SAMPLES) -> Floats:
    """Frames of `FRAME_SAMPLES`, each behind `CONTEXT_SAMPLES` before it: shape (frames, context + frame).

    `before`: the samples before the first frame. The last frame may be padded with silence.
    """
    frames = -(-len(pcm) // FRAME_SAMPLES)
    length = CONTEXT_SAMPLES + FRAME_SAMPLES
    if not frames:
        return np.zeros((0, length), np.float32)
    padded = np.zeros(CONTEXT_SAMPLES + frames * FRAME_SAMPLES, np.float32)
    padded[:CONTEXT_SAMPLES] = before
    padded[CONTEXT_SAMPLES : CONTEXT_SAMPLES + len(pcm)] = pcm
    windows = np.lib.stride_tricks.sliding_window_view(padded, length)[::FRAME_SAMPLES]
    return windows / np.float32(32768)


def model_file() -> Path:
    """The model's file in the installed package. Raises ModuleNotFoundError without the package."""
    spec = find_spec("silero_vad")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("silero-vad is not installed", name="silero_vad")
    return Path(spec.origin).parent / _FILE
