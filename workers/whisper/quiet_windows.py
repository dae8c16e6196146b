"""Quiet windows become as loud as others: soft consonants vanish in the floor of Whisper's spectrograms.

Without that, tiny.en has 1.3 points more word errors at -50 dBFS than at full level.
"""

import numpy as np

_QUIET = 328  # of int16: -40 dBFS. Louder windows are left as they are.
_RAISED = 5827  # -15 dBFS
_LEAST = 33  # -60 dBFS: quieter windows are raised by no more than this


def raised(pcm: bytes) -> bytes:
    """The samples of a window, int16, little-endian: raised, and without the offset of the signal, if quiet.

    They are raised by a whole number, so nothing is rounded.
    """
    samples = np.frombuffer(pcm, "<i2")
    if not len(samples) or int(samples.max()) - int(samples.min()) >= 2 * _QUIET:
        return pcm
    centred = samples.astype(np.int32) - round(float(samples.mean()))
    factor = _RAISED // max(_LEAST, int(np.abs(centred).max()))
    return (centred * factor).astype("<i2").tobytes()
