"""The functions that a media worker runs: decode a recording step by step, and find speech in it.

A media worker runs them one at a time. The parent only names them, so this module imports PyAV and the speech
detector in functions only.
"""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from workers import calls, runtime
from workers.media import refusal
from workers.media.channels import ChannelFiles, mixed
from workers.media.decode import Pcm, decoded_pcm, raw_pcm
from workers.media.findings import Findings
from workers.media.peaks import PeakFinder
from workers.media.silero import SileroModel
from workers.messages import (
    BYTES_PER_SAMPLE,
    CHUNK_FRAMES,
    EVERYTHING,
    FRAME_SAMPLES,
    SAMPLE_RATE,
    Selection,
    SoundTrack,
    Warnings,
)

log = logging.getLogger(__name__)

MIN_SAMPLES = SAMPLE_RATE // 10  # of a recording, 0.1 s
WARM_UP_FRAMES = -(-10 * SAMPLE_RATE // FRAME_SAMPLES)  # 10 s before each span, for the detector to adapt

_USUAL_S = 1 / 300  # of CPU to decode a second of sound, or to find speech in it: twice what MP3 takes


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """The progress of decoding a recording, or a part of it. Positions are those in the recording."""

    samples: int  # how far it is decoded
    finished: bool
    warnings: Warnings  # for the client, once finished
    declared: int = 0  # where the recording or the part ends, as the file gives it; 0 if it does not
    # Of the bins that are complete since the last step, as `PeakFinder.take` gives them, if they are wanted.
    peaks: bytes = b""
    tracks: tuple[SoundTrack, ...] = ()  # of the file, with the first step
    channels: int = 1  # written, or declared while nothing is decoded; 0 if that is not known yet
    distinct: tuple[int, ...] = (0,)  # once finished: channels that are not the same as an earlier one


@dataclass(slots=True)
class _Session:
    """The decoding of one recording, between two steps."""

    chunks: Pcm
    output: ChannelFiles
    findings: Findings
    selection: Selection
    peaks: PeakFinder | None  # None: nobody wants them
    samples: int = 0  # how far it is decoded

    @property
    def declared(self) -> int:
        """Where the recording or the part ends, as the file gives it; 0 if it does not."""
        declared = round(self.findings.declared_s * SAMPLE_RATE)
        return declared if self.selection.end is None else min(declared, self.selection.end)

    def advance(self, max_samples: int) -> bool:
        """Decode about `max_samples` more, less if they take long. Returns whether that was the end."""
        began_s, begin = time.process_time(), self.samples
        start, end = self.selection.start, self.selection.end
        while self.samples < begin + max_samples:
            chunk = next(self.chunks, None)
            if chunk is None:
                return True
            form = self.findings.pcm_format
            if end is not None:
                chunk = chunk[: (end - self.samples) * form.frame_bytes]
            self.output.write(chunk[max(0, start - self.samples) * form.frame_bytes :], form.channels)
            if self.peaks is not None:
                self.peaks.feed(mixed(chunk, form.channels))
            self.samples += len(chunk) // form.frame_bytes
            if self.samples == end:
                return True
            if chunk and calls.has_taken_long(began_s, (self.samples - begin) / SAMPLE_RATE * _USUAL_S):
                break
        return False

    def close(self) -> None:
        self.chunks.close()
        self.output.close()


_sessions: dict[str, _Session] = {}


def decode(
    session_id: str,
    source: str,
    pcm_path: str,
    max_samples: int,
    raw: bool = False,
    max_declared: float = math.inf,
    selection: Selection = EVERYTHING,
    more_channels: tuple[str, ...] = (),
    find_peaks: bool = True,
) -> DecodeStep:
    """Decode about `max_samples` more of `source` into the file at `pcm_path`, which must exist.

    Less if that takes long: see `calls.has_taken_long`.

    With `more_channels`, `pcm_path` gets the first channel, and each further one a file of its own, which
    must exist. A source with fewer channels leaves the last files empty. Without, all channels are mixed.
    `find_peaks`: also find the peaks, for a waveform.

    If nothing is decoded yet, and the file gives an end after `max_declared` samples, this decodes nothing.

    The PCM is s16le, mono, 16 kHz; with `raw`, the source has that format already. The first call
    with a `session_id` in this process starts at the beginning: decoding is deterministic, so a worker that
    replaces a crashed one writes the same samples again. It overwrites the file in place, because other
    processes may be reading it. After the last step, the file is truncated to its samples, and the worker
    forgets the session.

    A sample has the same place in the file as in the recording, so a part has a hole before it, which takes
    no space. What precedes the part is decoded for the peaks, and where seeking is not exact.

    Raises `RecordingRefused` if the file contains nothing to transcribe, `OSError` if a file operation fails.
    """
    session = _sessions.get(session_id)
    is_new = session is None
    if session is None:
        session = _sessions[session_id] = _start(
            Path(source), [pcm_path, *more_channels], raw, selection, PeakFinder() if find_peaks else None
        )
    try:
        if is_new:
            next(session.chunks)  # opens the source; the first chunk is empty
            session.samples = session.findings.skipped_s * SAMPLE_RATE
        findings = session.findings
        if session.samples == findings.skipped_s * SAMPLE_RATE and session.declared > max_declared:
            return DecodeStep(
                0, False, (), session.declared, tracks=findings.tracks, channels=findings.declared_channels
            )
        finished = session.advance(max_samples)
        session.output.flush()
        distinct = session.output.finish() if finished else (0,)
        if finished:
            _check(session)
    except BaseException:
        close(session_id)
        raise
    if finished:
        close(session_id)
    log.debug("decoded %d samples of a recording", session.samples)
    warnings = tuple(session.findings.warnings()) if finished else ()
    peaks = session.peaks.take(finished=finished) if session.peaks is not None else b""
    tracks = session.findings.tracks if is_new else ()
    channels = session.output.channels
    return DecodeStep(
        session.samples, finished, warnings, session.declared, peaks, tracks, channels, distinct
    )


def close(session_id: str) -> None:
    """Close a session of decoding. The PCM file stays."""
    session = _sessions.pop(session_id, None)
    if session is not None:
        session.close()


def speech_probabilities(pcm_path: str, start_frame: int, frames: int) -> bytes:
    """The probability of speech in each frame of `FRAME_SAMPLES`: float32, little-endian.

    The span must be decoded already. At the end of the recording, the result has fewer than `frames` values,
    and the last frame may be padded with silence. If they take long, it has those of the first chunks: see
    `calls.has_taken_long`. The detector first gets up to `WARM_UP_FRAMES` frames before each chunk of
    `CHUNK_FRAMES` and keeps no state between them, so the result depends on the file and the chunks alone.
    """
    began_s, found, done = time.process_time(), bytearray(), 0
    with Path(pcm_path).open("rb") as file:
        for first in range(start_frame, start_frame + frames, CHUNK_FRAMES):
            warm_up = min(first, WARM_UP_FRAMES)
            count = min(CHUNK_FRAMES, start_frame + frames - first)
            file.seek((first - warm_up) * FRAME_SAMPLES * BYTES_PER_SAMPLE)
            pcm = file.read((warm_up + count) * FRAME_SAMPLES * BYTES_PER_SAMPLE)
            samples = np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32768)
            found += _detector().probabilities(samples)[warm_up:].astype("<f4").tobytes()
            done += count
            if calls.has_taken_long(began_s, done * FRAME_SAMPLES / SAMPLE_RATE * _USUAL_S):
                break
    log.debug("computed the speech probabilities of %d frames", done)
    return bytes(found)


def limit_memory(headroom_bytes: int) -> None:
    """Load the libraries, then let this process map at most `headroom_bytes` more.

    Beyond that, allocations fail: a task raises `RecordingRefused` or `MemoryError`, or a library aborts the
    process. The machine's memory does not fill up.
    """
    import av  # noqa: F401

    _detector()
    runtime.limit_memory(headroom_bytes)


def _start(
    source: Path, pcm_paths: Sequence[str], raw: bool, selection: Selection, peaks: PeakFinder | None
) -> _Session:
    if source.stat().st_size == 0:
        raise refusal.empty_file()
    findings, track = Findings(), selection.track
    start_s = selection.start / SAMPLE_RATE if peaks is None else 0.0
    chunks = (
        raw_pcm(source, findings, track)
        if raw
        else decoded_pcm(source, findings, track=track, separate=len(pcm_paths) > 1, start_s=start_s)
    )
    output = ChannelFiles([Path(path) for path in pcm_paths], selection.start)
    return _Session(chunks, output, findings, selection, peaks)


def _check(session: _Session) -> None:
    """Raise `RecordingRefused` if the decoded recording, or its part, is too short to transcribe."""
    start = session.selection.start
    if session.samples - start >= MIN_SAMPLES:
        return
    if session.findings.damaged:
        raise refusal.nothing_decoded()
    if start:
        raise refusal.outside(start / SAMPLE_RATE, session.samples / SAMPLE_RATE)
    raise refusal.too_short(session.samples / SAMPLE_RATE)


@cache
def _detector() -> SileroModel:
    return SileroModel()
