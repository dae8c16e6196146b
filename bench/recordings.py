"""Recordings for the benchmarks: a talk of the tests, repeated, in any length and format."""

import io
import json
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

RATE = 16_000  # Hz
TALK = Path(__file__).parents[1] / "tests" / "data" / "talk.flac"

_CODECS = {".flac": ("flac", "flac"), ".wav": ("wav", "pcm_s16le"), ".mp3": ("mp3", "libmp3lame")}
_FRAME_SAMPLES = RATE  # per frame


@dataclass(frozen=True)
class Recording:
    """A file, its length, and its true transcript."""

    path: Path
    seconds: float
    truth: str


def talk_for(folder: Path, seconds: float, suffix: str = ".flac", talk: Path = TALK) -> Recording:
    """A recording of complete talks, as close as possible to `seconds`, so that its transcript is known.

    The transcript of `talk` is beside it as JSON: {"cues": [{"text": ...}]}.
    """
    pcm = read(talk)
    times = max(1, round(seconds * RATE / len(pcm)))
    path = folder / f"talk-{round(seconds)}{suffix}"
    length_s = times * len(pcm) / RATE
    write(path, length_s, talk)
    cues = json.loads(talk.with_suffix(".json").read_text())["cues"]
    return Recording(path, length_s, " ".join(cue["text"] for cue in cues * times))


def write(path: Path, seconds: float, talk: Path = TALK) -> None:
    """Write the talk, repeated for `seconds`, in the format of the path's suffix. Uses bounded memory."""
    import av

    container, codec = _CODECS[path.suffix]
    with av.open(str(path), "w", format=container) as output:
        stream: Any = output.add_stream(codec, rate=RATE, layout="mono")
        if codec == "libmp3lame":
            stream.bit_rate = 64_000
        written = 0
        for chunk in _chunks(read(talk), round(seconds * RATE)):
            frame = av.AudioFrame.from_ndarray(chunk.reshape(1, -1), format="s16", layout="mono")
            frame.sample_rate, frame.pts = RATE, written
            written += len(chunk)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


def write_large(path: Path, size: int, *, talk: bool) -> None:
    """Write a WAV file of about so many bytes, 48 kHz stereo: the talk if it is wanted, then silence."""
    with wave.open(str(path), "wb") as out:
        out.setparams((2, 2, 3 * RATE, 0, "NONE", ""))
        if talk:
            out.writeframes(np.repeat(read(TALK), 3 * 2).astype("<i2").tobytes())
        second = bytes(3 * RATE * 2 * 2)
        while out.tell() * 2 * 2 < size:
            out.writeframes(second)


def clips_of(seconds: float, count: int) -> list[bytes]:
    """`count` WAV files, each with a different part of the talk."""
    pcm, samples = read(TALK), round(seconds * RATE)
    files = []
    for number in range(count):
        start = number * (len(pcm) - samples) // max(1, count - 1)
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setparams((1, 2, RATE, 0, "NONE", ""))
            out.writeframes(pcm[start : start + samples].astype("<i2").tobytes())
        files.append(file.getvalue())
    return files


@cache
def read(path: Path) -> np.ndarray:
    """The samples of a 16 kHz mono recording: int16, shape (n,)."""
    import av

    with av.open(str(path)) as container:
        frames = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    return np.concatenate(frames).astype(np.int16)


def resampled(pcm: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """The samples at another rate: int16, shape (n,). Linear interpolation would cost words."""
    import av

    frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler("s16", "mono", wanted)
    parts = [part.to_ndarray()[0] for given in (frame, None) for part in resampler.resample(given)]
    return np.concatenate(parts)


def _chunks(pcm: np.ndarray, samples: int) -> Iterator[np.ndarray]:
    """`samples` samples of the repeated talk, in chunks of up to a second."""
    position = 0
    while position < samples:
        start = position % len(pcm)
        chunk = pcm[start : start + min(_FRAME_SAMPLES, samples - position)]
        yield chunk
        position += len(chunk)
