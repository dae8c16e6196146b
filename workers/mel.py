"""Mel filters, as librosa and openai-whisper have them."""

from functools import cache

import numpy as np
import numpy.typing as npt

from workers.messages import SAMPLE_RATE

FFT_SAMPLES = 400  # 25 ms
HOP_SAMPLES = 160  # 10 ms
# Slaney's mel scale: linear below 1 kHz, logarithmic above.
_LINEAR_HZ = 200 / 3  # per mel
_BREAK_HZ, _BREAK_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27  # per mel


@cache
def mel_filters(bands: int) -> npt.NDArray[np.float32]:
    """Triangles of equal area on Slaney's scale: shape (frequencies, bands)."""
    highest = _BREAK_MEL + float(np.log(SAMPLE_RATE / 2 / _BREAK_HZ) / _LOG_STEP)
    mels = np.linspace(0, highest, bands + 2)
    logarithmic = _BREAK_HZ * np.exp(_LOG_STEP * (mels - _BREAK_MEL))
    edges = np.where(mels < _BREAK_MEL, mels * _LINEAR_HZ, logarithmic)
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    frequencies = np.fft.rfftfreq(FFT_SAMPLES, 1 / SAMPLE_RATE)[:, None]
    rising = (frequencies - low) / (centre - low)
    falling = (high - frequencies) / (high - centre)
    triangles: npt.NDArray[np.float64] = np.maximum(0, np.minimum(rising, falling))
    return (triangles * (2 / (high - low))).astype(np.float32)
