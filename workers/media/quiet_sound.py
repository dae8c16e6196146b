"""Speech detection that finds quiet voices: sound is raised before the speech model gets it.

The model finds 99 % of a voice that peaks at -40 dBFS, 73 % at -50 and 7 % at -60, where Whisper still
transcribes all. Sound that is not quiet is left exactly as it is.
"""

import numpy as np

from workers.media.silero import CONTEXT_SAMPLES, SILENT, Floats, silero
from workers.messages import FRAME_SAMPLES, SAMPLE_RATE


def _db(decibels: float) -> np.float32:
    return np.float32(10 ** (decibels / 20))


_QUIET = _db(-45)  # what is quieter is raised
_RAISED = _db(-15)  # to this, where the model takes least noise and music for speech
_LEAST = _db(-60)  # quieter sound is raised by no more than this: it may be the noise of a microphone
_DISTINCT = _db(-15)  # against the loudest sound around: what is louder is a pause of somebody who talks
_BACKGROUND = _db(-35)  # against it: what is quieter is a television behind somebody who talks
_LOUD_PART = 50  # the loudest sound lasts for one part in so many: a slammed door does not count
_NEAR_FRAMES = SAMPLE_RATE // FRAME_SAMPLES  # a second: quiet sound is so far from any other, on either side
_AROUND_FRAMES = 5 * _NEAR_FRAMES  # the gain is that of the loudest quiet sound so near, so it changes slowly
_LASTING_FRAMES = 4  # 0.1 s: what is shorter in a stream is a click

NO_LEVELS: Floats = np.zeros(_LASTING_FRAMES, np.float32)  # before the first frame of a stream
# The states of the model before that: after all sound as it is, and after what was raised.
NO_SOUND: Floats = np.stack((SILENT, SILENT))


def probabilities(frames: Floats, gains: Floats, states: Floats = NO_SOUND) -> tuple[Floats, Floats]:
    """The probability of speech in each frame, shape (n,), and the states of the model after the last one.

    Frames with a gain over 1 are examined by themselves: the values of all others are those without any gain.
    """
    found, plain = silero().probabilities(frames, states[0])
    is_raised = gains > 1
    quiet = frames[is_raised]
    without_offset = quiet - quiet.mean(axis=1, keepdims=True)
    found[is_raised], raised = silero().probabilities(without_offset * gains[is_raised, None], states[1])
    return found, np.stack((plain, raised))


def frame_levels(frames: Floats) -> Floats:
    """The peak level of each frame, 0 to 1, whatever the offset of the signal: shape (n,)."""
    levels: Floats = np.ptp(frames[:, CONTEXT_SAMPLES:], axis=1) / 2
    return levels


def recording_gains(levels: Floats) -> Floats:
    """How much to raise each frame of a part of a recording, from their levels: shape (n,), at least 1."""
    if not len(levels):
        return levels
    loudest = np.sort(levels)[-1 - len(levels) // _LOUD_PART]
    limit = _QUIET if loudest < _QUIET else min(_QUIET, loudest * _DISTINCT)
    is_quiet = _highest(levels, _NEAR_FRAMES) < limit
    around = _highest(np.where(is_quiet, levels, np.float32(0)), _AROUND_FRAMES)
    is_raised = is_quiet & (around > loudest * _BACKGROUND)
    return np.where(is_raised, _raising_gains(around), np.float32(1))


def live_gains(levels: Floats, before: Floats) -> tuple[Floats, Floats]:
    """How much to raise each frame of a stream, from their levels, and what the next call needs as `before`.

    The loudest sound so far decides: a pause of somebody who talks does not make a voice of a television.
    """
    recent = np.concatenate((before[1:], levels))
    lasting = np.minimum.reduce([recent[first:][: len(levels)] for first in range(_LASTING_FRAMES)])
    loudest = np.maximum.accumulate(np.concatenate((before[:1], lasting)))
    gains = np.where(loudest[1:] < _QUIET, _raising_gains(np.maximum(loudest[1:], levels)), np.float32(1))
    return gains, np.concatenate((loudest[-1:], recent[len(levels) :]))


def _raising_gains(levels: Floats) -> Floats:
    return np.maximum(np.float32(1), _RAISED / np.maximum(levels, _LEAST))


def _highest(levels: Floats, reach: int) -> Floats:
    """The highest level within `reach` frames of each."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(levels, reach), 2 * reach + 1)
    highest: Floats = windows.max(axis=1)
    return highest
