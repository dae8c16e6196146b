"""What a media child does: decode a recording step by step, and tell where in it somebody speaks.

These functions run in a long-lived process of their own, one at a time; the parent only names them, and so
must not load what they import.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from workers import runtime
from workers.media import refusal
from workers.media.decode import Findings, Pcm, decoded_pcm, raw_pcm
from workers.messages import BYTES_PER_SAMPLE, FRAME_SAMPLES, SAMPLE_RATE

__all__ = [
    "WARM_UP_FRAMES",
    "DecodeStep",
    "close",
    "decode",
    "limit_memory",
    "speech_probabilities",
]

MIN_SAMPLES = SAMPLE_RATE // 10  # of a recording
WARM_UP_FRAMES = -(-10 * SAMPLE_RATE // FRAME_SAMPLES)  # before a span, for the detector to settle: 10 s


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """How far a recording has been decoded."""

    samples: int  # decoded so far
    finished: bool
    warning: str | None  # what the sender should know, once finished


@dataclass(slots=True)
class _Session:
    """A recording that is being decoded."""

    pieces: Pcm
    output: BinaryIO
    findings: Findings
    samples: int = 0  # written so far

    def advance(self, max_samples: int) -> bool:
        """Decode about `max_samples` more; whether that was the end."""
        target = self.samples + max_samples
        while self.samples < target:
            piece = next(self.pieces, None)
            if piece is None:
                return True
            self.output.write(piece)
            self.samples += len(piece) // BYTES_PER_SAMPLE
        return False

    def close(self) -> None:
        self.pieces.close()
        self.output.close()


_sessions: dict[str, _Session] = {}


def decode(job: str, source: str, pcm_path: str, max_samples: int, raw: bool = False) -> DecodeStep:
    """Decode about `max_samples` more of `source` into the file at `pcm_path`, which must exist.

    The PCM is s16le, mono, 16 kHz; with `raw` the source is that already. The first call for a `job` in
    this process begins anew: decoding is deterministic, so a child that takes over from one that died
    writes the same samples again. It writes over what is there, since others may be reading that; the file
    is as long as its samples after the last step, and then the job is forgotten.

    Raises `RecordingRefused` if the file holds nothing to transcribe, `OSError` if it or the disk fails.
    """
    session = _sessions.get(job)
    if session is None:
        session = _sessions[job] = _start(Path(source), Path(pcm_path), raw)
    try:
        finished = session.advance(max_samples)
        session.output.flush()
        if finished:
            session.output.truncate()
            _check(session)
    except BaseException:
        close(job)
        raise
    if finished:
        close(job)
    return DecodeStep(session.samples, finished, session.findings.warning if finished else None)


def close(job: str) -> None:
    """Forget a job that is not to be decoded further. The PCM file stays."""
    session = _sessions.pop(job, None)
    if session is not None:
        session.close()


def speech_probabilities(pcm_path: str, start_frame: int, frames: int) -> bytes:
    """How likely each frame holds speech: float32, little-endian, one per frame of `FRAME_SAMPLES`.

    All of the span must be decoded already. Fewer than `frames` come back where the recording ends; its
    last frame may be filled up with silence. The detector first hears up to `WARM_UP_FRAMES` before the
    span, and nothing of what it was asked before: the result depends on the file and the span alone.
    """
    warm_up = min(start_frame, WARM_UP_FRAMES)
    with Path(pcm_path).open("rb") as file:
        file.seek((start_frame - warm_up) * FRAME_SAMPLES * BYTES_PER_SAMPLE)
        pcm = file.read((warm_up + frames) * FRAME_SAMPLES * BYTES_PER_SAMPLE)
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
    probabilities: np.ndarray[Any, np.dtype[np.float32]] = _detector().audio_forward(samples)
    return probabilities[warm_up:].astype("<f4").tobytes()


def limit_memory(headroom_bytes: int) -> None:
    """Let this process map at most `headroom_bytes` more than it has mapped once its libraries are loaded.

    Beyond that, allocations fail: a task raises `RecordingRefused` or `MemoryError`, or a library gives up
    and the process crashes. Either way the machine lives.
    """
    import av  # noqa: F401

    _detector()
    runtime.limit_memory(headroom_bytes)


def _start(source: Path, pcm_path: Path, raw: bool) -> _Session:
    if source.stat().st_size == 0:
        raise refusal.empty_file()
    findings = Findings()
    pieces = raw_pcm(source) if raw else decoded_pcm(source, findings)
    return _Session(pieces, pcm_path.open("r+b"), findings)


def _check(session: _Session) -> None:
    """Raise unless the decoded recording holds something to transcribe."""
    if session.samples >= MIN_SAMPLES:
        return
    if session.findings.damaged:
        raise refusal.nothing_decoded()
    raise refusal.too_short(session.samples / SAMPLE_RATE)


@cache
def _detector() -> Any:
    from silero_vad import load_silero_vad

    return load_silero_vad(sequence=True)
