"""What a process for live streams is asked: where somebody speaks in audio that has just arrived.

It keeps nothing between calls. What a stream needs of the audio before is in its `CarriedAudio`, which comes
and goes with each call: so a process that crashes takes nothing along, and another one goes on from there.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from workers.media import quiet_sound
from workers.media.silero import CONTEXT_SAMPLES, NO_SAMPLES, framed
from workers.messages import (
    BYTES_PER_SAMPLE,
    FRAME_SAMPLES,
    SAMPLE_RATE,
    CarriedAudio,
    DetectedSpeech,
    Encoding,
    NewAudio,
)

Samples = npt.NDArray[np.int16]
T = TypeVar("T", bound=np.generic)

_ZERO_CROSSINGS = 32  # of the filter on either side
_KAISER_BETA = 8.0  # 80 dB below in the stop band


def detect(arrived: Sequence[NewAudio]) -> list[DetectedSpeech | OSError]:
    """Convert the new audio of streams, write it to their files, and find speech in it.

    The answers are in the order of the streams; an error stands for that of a stream's file alone.
    """
    return [_detect_or_error(new) for new in arrived]


def _detect_or_error(new: NewAudio) -> DetectedSpeech | OSError:
    try:
        return _detect(new)
    except OSError as error:
        return error


def _detect(new: NewAudio) -> DetectedSpeech:
    carried = new.carried
    if new.copied is not None:
        _copy(*new.copied, new.pcm_path)
    decoded = _decoded(new.audio, carried.encoding)
    samples, unconverted = _at_16_khz(decoded, carried.encoding.rate, carried.unconverted)
    _write(new.pcm_path, carried.position, samples.tobytes())
    unexamined = np.concatenate((_carried(carried.unexamined, NO_SAMPLES), samples))
    whole = CONTEXT_SAMPLES + (len(unexamined) - CONTEXT_SAMPLES) // FRAME_SAMPLES * FRAME_SAMPLES
    frames = framed(unexamined[CONTEXT_SAMPLES:whole], unexamined[:CONTEXT_SAMPLES])
    before = _carried(carried.levels, quiet_sound.NO_LEVELS)
    gains, latest = quiet_sound.live_gains(quiet_sound.frame_levels(frames), before)
    states = _carried(carried.model_states, quiet_sound.NO_SOUND)
    probabilities, states = quiet_sound.probabilities(frames, gains, states)
    rest = unexamined[whole - CONTEXT_SAMPLES :].tobytes()
    position = carried.position + len(samples)
    now = CarriedAudio(carried.encoding, unconverted, position, rest, states.tobytes(), latest.tobytes())
    return DetectedSpeech(now, probabilities.tobytes())


def _carried(values: bytes, first: npt.NDArray[T]) -> npt.NDArray[T]:
    """The values that were carried, or the `first` ones of a stream."""
    return np.frombuffer(values, first.dtype).reshape(-1, *first.shape[1:]) if values else first


def _copy(path: str, first: int, new_path: str) -> None:
    """Copy the samples of a file from `first` on into a new one, at the same place."""
    with Path(path).open("rb") as file:
        file.seek(first * BYTES_PER_SAMPLE)
        _write(new_path, first, file.read())


def _write(path: str, position: int, pcm: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        left = memoryview(pcm)
        at = position * BYTES_PER_SAMPLE
        while left:
            written = os.pwrite(descriptor, left, at)
            left, at = left[written:], at + written
    finally:
        os.close(descriptor)


def _decoded(audio: bytes, encoding: Encoding) -> Samples:
    """The samples as one channel: the mean of several."""
    samples: Samples
    if encoding.law:
        samples = _LAWS[encoding.law][np.frombuffer(audio, "u1")]
    elif encoding.width == 1:
        samples = (np.frombuffer(audio, "u1").astype(np.int16) - 128) << 8
    else:  # the two upper bytes
        whole = np.frombuffer(audio, "u1").reshape(-1, encoding.width)
        samples = np.ascontiguousarray(whole[:, -BYTES_PER_SAMPLE:]).view("<i2")[:, 0]
    if encoding.channels > 1:
        samples = np.rint(samples.reshape(-1, encoding.channels).mean(axis=1)).astype(np.int16)
    return samples


def _at_16_khz(new: Samples, rate: int, unconverted: bytes) -> tuple[Samples, bytes]:
    """The samples at 16 kHz that are certain now, and what the next call needs as `unconverted`."""
    if rate == SAMPLE_RATE:
        return new, b""
    common = gcd(rate, SAMPLE_RATE)
    up, down = SAMPLE_RATE // common, rate // common
    filters = _filters(up, down)
    taps = filters.shape[1]
    # Silence before the first sample, so that the times stay as they are.
    before = _carried(unconverted, np.zeros(taps // 2 - 1, np.int16))
    samples = np.concatenate((before, new))
    steps = max(0, len(samples) - taps + 1) // down
    if not steps:
        return np.zeros(0, np.int16), samples.tobytes()
    windows = np.lib.stride_tricks.sliding_window_view(samples, taps)
    converted = np.empty((steps, up))
    for phase in range(up):
        first = phase * down // up
        converted[:, phase] = windows[first::down][:steps] @ filters[phase]
    rounded = np.clip(np.rint(converted.reshape(-1)), -32768, 32767).astype(np.int16)
    return rounded, samples[steps * down :].tobytes()


@lru_cache(maxsize=16)  # clients choose the rates
def _filters(up: int, down: int) -> npt.NDArray[np.float64]:
    """For each of the `up` samples between `down` samples, the weights of those around it: shape (up, taps).

    A sinc with a Kaiser window. The middle of the weights is half way after `taps // 2 - 1` whole samples.
    """
    half = _ZERO_CROSSINGS * max(up, down) // up
    # At the lower Nyquist frequency, so that next to nothing below is lost: a model trained with noise up to
    # there takes what lacks it for other sounds.
    cutoff = min(1.0, up / down)
    weights = np.empty((up, 2 * half))
    for phase in range(up):
        late = phase * down / up - phase * down // up
        distance = np.arange(1 - half, half + 1) - late
        window = np.i0(_KAISER_BETA * np.sqrt(np.maximum(0, 1 - (distance / half) ** 2))) / np.i0(
            _KAISER_BETA
        )
        taps = np.sinc(cutoff * distance) * window
        weights[phase] = taps / taps.sum()
    return weights


def _ulaw() -> npt.NDArray[np.int16]:
    """What each byte means in mu-law (ITU-T G.711)."""
    code = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (code >> 4) & 7, code & 15
    size = (((mantissa.astype(np.int32) << 3) + 132) << exponent) - 132
    return np.where(code & 128, -size, size).astype(np.int16)


def _alaw() -> npt.NDArray[np.int16]:
    """What each byte means in A-law (ITU-T G.711)."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent, mantissa = (code >> 4) & 7, code & 15
    step = (mantissa.astype(np.int32) << 4) + 8
    size = np.where(exponent == 0, step, (step + 256) << np.maximum(exponent.astype(np.int32) - 1, 0))
    return np.where(code & 128, size, -size).astype(np.int16)


_LAWS = {"ulaw": _ulaw(), "alaw": _alaw()}  # the sample that each byte means
