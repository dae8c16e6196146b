"""silero-vad's sequence model on onnxruntime.

Importing the package `silero_vad` imports torch, which its sequence model does not use. Torch would take
190 MiB of each media worker. So this module uses the package's model file alone.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workers.messages import FRAME_SAMPLES

_FILE = "data/silero_vad_16k_sequence.onnx"
_CONTEXT_SAMPLES = 64  # of the previous frame, before each frame
_MAX_FRAMES = 512  # in one call of the model
_STATE_SHAPE = (1, 1, 128)

Floats = npt.NDArray[np.float32]


class SileroModel:
    """The model, for 16 kHz. It keeps no state between calls."""

    def __init__(self) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(
            model_file(), sess_options=options, providers=["CPUExecutionProvider"]
        )

    def probabilities(self, samples: Floats) -> Floats:
        """The probability of speech in each frame of `FRAME_SAMPLES`: shape (frames,).

        The last frame may be padded with silence. The values equal those of silero-vad's `audio_forward`.
        """
        framed = _with_context(samples)
        hidden = cell = np.zeros(_STATE_SHAPE, np.float32)
        found = [np.zeros(0, np.float32)]
        for first in range(0, len(framed), _MAX_FRAMES):
            block = {"input": framed[first : first + _MAX_FRAMES], "h": hidden, "c": cell}
            values, hidden, cell = self._session.run(["speech_probs", "hn", "cn"], block)
            found.append(values.reshape(-1))
        return np.concatenate(found)


def model_file() -> Path:
    """The model's file in the installed package. Raises ModuleNotFoundError without the package."""
    spec = find_spec("silero_vad")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("silero-vad is not installed", name="silero_vad")
    return Path(spec.origin).parent / _FILE


def _with_context(samples: Floats) -> Floats:
    """The frames, each after the end of the previous one: shape (frames, context + frame)."""
    frames = -(-len(samples) // FRAME_SAMPLES)
    padded = np.zeros(_CONTEXT_SAMPLES + frames * FRAME_SAMPLES, np.float32)
    padded[_CONTEXT_SAMPLES : _CONTEXT_SAMPLES + len(samples)] = samples
    if not frames:
        return np.zeros((0, _CONTEXT_SAMPLES + FRAME_SAMPLES), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(padded, _CONTEXT_SAMPLES + FRAME_SAMPLES)
    return np.ascontiguousarray(windows[::FRAME_SAMPLES])
