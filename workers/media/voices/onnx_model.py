"""Voice models in ONNX files, run by onnxruntime, each with the front end that it was trained with."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from workers.media.voices import Floats, unit_rows
from workers.messages import SAMPLE_RATE

SUPPORTED = (
    "Supported are ONNX files of WeSpeaker (as CAM++ and ResNet34), of 3D-Speaker (as CAM++ and ERes2Net) "
    "and of NeMo's TitaNet, for 16 kHz"
)
BANDS = 80
_INT16_SCALE = 32768.0
_LEAST_SAMPLES = 400  # the first frame: 25 ms
_LEAST_FRAMES = 50  # 0.5 s: the statistics of fewer frames are undefined or say nothing
_PADDED_TO = 16  # frames, for which TitaNet was trained


class UnknownVoiceModel(Exception):
    """A file is no voice model of a kind that is known here. The message is one line."""


class OnnxModel:
    """A voice model, on the CPU with one thread. It keeps no state between calls."""

    def __init__(self, path: str) -> None:
        """Load the file. Raises UnknownVoiceModel."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        options.log_severity_level = 3  # errors: warnings are for the model's author
        try:
            self._session: Any = onnxruntime.InferenceSession(
                path, sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # a dozen classes of onnxruntime, which the parent must not import
            raise UnknownVoiceModel(f"onnxruntime cannot load it ({first_line(error)})") from None
        self._front_end = front_end_of(
            {value.name: value.shape for value in self._session.get_inputs()},
            {value.name: value.shape for value in self._session.get_outputs()},
            self._session.get_modelmeta().custom_metadata_map,
        )

    def embed(self, windows: Sequence[Floats]) -> Floats:
        """As `VoiceModel`. One window after the other: a result does not depend on the other windows."""
        return unit_rows(np.stack([self._embed(window) for window in windows]))

    def _embed(self, window: Floats) -> Floats:
        inputs, output = self._front_end(np.pad(window, (0, max(0, _LEAST_SAMPLES - len(window)))))
        try:
            embedding: Floats = self._session.run([output], inputs)[0].reshape(-1)
        except Exception as error:  # as above
            raise RuntimeError(first_line(error)) from None
        return embedding


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return (str(error).splitlines() or [repr(error)])[0]


# From samples, -1 to 1, to the model's inputs and the name of the output with the embedding.
FrontEnd = Callable[[Floats], tuple[dict[str, Any], str]]
Shapes = Mapping[str, Sequence[object]]  # by name; numbers, and names of the dimensions that may vary


def front_end_of(inputs: Shapes, outputs: Shapes, metadata: Mapping[str, str]) -> FrontEnd:
    """The front end of a model, by its inputs, its outputs and what sherpa-onnx adds as metadata.

    Raises UnknownVoiceModel.
    """
    rate = metadata.get("sample_rate", str(SAMPLE_RATE))
    if rate != str(SAMPLE_RATE):
        raise UnknownVoiceModel(f"it is for {rate} Hz")
    framework = metadata.get("framework")
    if set(inputs) == {"audio_signal", "length"} and "embs" in outputs and framework in (None, "nemo"):
        if list(inputs["audio_signal"])[1:2] == [BANDS]:
            return _titanet
    elif len(inputs) == len(outputs) == 1 and framework in (None, "wespeaker", "3d-speaker"):
        [(name, shape)], [(output, output_shape)] = inputs.items(), outputs.items()
        if len(shape) == 3 and shape[2] == BANDS and len(output_shape) == 2:
            # WeSpeaker computes them with Hamming's window from samples in the range of int16; 3D-Speaker
            # with the defaults of torchaudio from samples up to 1.
            settings = ("povey", 1.0) if framework == "3d-speaker" else ("hamming", _INT16_SCALE)
            return lambda samples: ({name: kaldi_fbank(samples, *settings)[None]}, output)
    found = "; ".join(
        f"{kind} {', '.join(f'{name}{list(shape)}' for name, shape in values.items())}"
        for kind, values in (("inputs", inputs), ("outputs", outputs))
    )
    raise UnknownVoiceModel(f"its {found} are those of another model")


def kaldi_fbank(samples: Floats, window_type: str, scale: float) -> Floats:
    """Kaldi's log mel filter banks, without their mean over time: shape (frames, 80).

    Frames have 25 ms and begin 10 ms apart. `scale` is that of the samples, -1 to 1, which matters only near
    silence.
    """
    from kaldi_native_fbank import FbankOptions, OnlineFbank

    options = FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.window_type = window_type
    options.mel_opts.num_bins = BANDS
    fbank = OnlineFbank(options)
    fbank.accept_waveform(SAMPLE_RATE, samples * np.float32(scale))
    fbank.input_finished()
    frames = np.stack([fbank.get_frame(index) for index in range(fbank.num_frames_ready)])
    frames -= frames.mean(0)
    return _at_least(frames, _LEAST_FRAMES)


def nemo_mel(samples: Floats) -> Floats:
    """NeMo's log mel spectrogram, each band with mean 0 and variance 1: shape (frames, 80)."""
    from kaldi_native_fbank import NemoFbankOptions, OnlineNemoFbank

    fbank = OnlineNemoFbank(NemoFbankOptions())
    fbank.accept_waveform(SAMPLE_RATE, samples)
    fbank.input_finished()
    frames = np.asarray(fbank.get_frames(0, fbank.num_frames_ready, True)[0], np.float32)
    frames -= frames.mean(0)
    frames /= frames.std(0, ddof=1 if len(frames) > 1 else 0) + np.float32(1e-5)
    return _at_least(frames, _LEAST_FRAMES)


def _titanet(samples: Floats) -> tuple[dict[str, Any], str]:
    frames = nemo_mel(samples)
    padded = np.pad(frames, ((0, -len(frames) % _PADDED_TO), (0, 0)))
    length = np.array([len(frames)], np.int64)
    return {"audio_signal": padded.T[None], "length": length}, "embs"


def _at_least(frames: Floats, count: int) -> Floats:
    """The frames, repeated until there are enough."""
    return np.tile(frames, (-(-count // len(frames)), 1)) if len(frames) < count else frames
