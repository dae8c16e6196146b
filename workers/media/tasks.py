"""The functions that a media worker runs: decode a recording step by step, and find speech in it.

A media worker runs them one at a time. The parent only names them, so this module imports PyAV and the speech
detector in functions only.
"""

import logging
import math
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from workers import calls, runtime
from workers.media import quiet_sound, refusal
from workers.media.channels import ChannelFiles, mixed
from workers.media.decode import Pcm, decoded_pcm, raw_pcm
from workers.media.findings import Findings
from workers.media.peaks import PeakFinder
from workers.media.sessions import session
from workers.media.silero import Floats, framed, silero
from workers.messages import (
    BYTES_PER_SAMPLE,
    CHUNK_FRAMES,
    EVERYTHING,
    FRAME_SAMPLES,
    MAX_TRACKS,
    SAMPLE_RATE,
    Decoded,
    Selection,
)

log = logging.getLogger(__name__)

MIN_SAMPLES = SAMPLE_RATE // 10  # of a recording, 0.1 s
WARM_UP_FRAMES = -(-10 * SAMPLE_RATE // FRAME_SAMPLES)  # 10 s before each span, for the detector to adapt

_USUAL_S = 1 / 300  # of CPU to decode a second of sound, or to find speech in it: twice what MP3 takes


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """What to decode, and where to."""

    source: str
    # Files that exist: for the mix of all channels, or for each channel. A source with fewer leaves the last
    # ones empty.
    pcm_paths: tuple[str, ...]
    raw: bool = False  # the source is s16le, mono, 16 kHz already
    selection: Selection = EVERYTHING
    find_peaks: bool = True  # for a waveform


class _Decoding:
    """The decoding of one recording, between two steps."""

    def __init__(self, request: DecodeRequest) -> None:
        source, selection = Path(request.source), request.selection
        if source.stat().st_size == 0:
            raise refusal.empty_file()
        self.finished = False
        self._findings = Findings()
        self._selection = selection
        self._peaks = PeakFinder() if request.find_peaks else None
        self._samples: int | None = None  # how far it is decoded; None until the source is open
        self._output = ChannelFiles([Path(path) for path in request.pcm_paths], selection.start)
        self._chunks: Pcm = (
            raw_pcm(source, self._findings, selection.track)
            if request.raw
            else decoded_pcm(
                source,
                self._findings,
                track=selection.track,
                separate=len(request.pcm_paths) > 1,
                start_s=0.0 if request.find_peaks else selection.start / SAMPLE_RATE,
            )
        )

    def advance(self, max_samples: int, max_declared: float) -> Decoded:
        """Decode about `max_samples` more, or nothing yet if the end that the file gives is too late."""
        findings = self._findings
        if self._samples is None:
            next(self._chunks)  # opens the source; the first chunk is empty
            self._samples = findings.skipped_s * SAMPLE_RATE
        declared, tracks = round(findings.declared_s * SAMPLE_RATE), findings.tracks[:MAX_TRACKS]
        if self._selection.end is not None:
            declared = min(declared, self._selection.end)
        if self._samples == findings.skipped_s * SAMPLE_RATE and declared > max_declared:
            return Decoded(0, False, tracks, declared=declared, files=findings.declared_channels)
        self._samples = self._decode(self._samples, self._samples + max_samples)
        self._output.flush()
        channels = self._output.finish() if self.finished else (0,)
        if self.finished:
            _check(self._samples, self._selection.start, findings)
        log.debug("decoded %d samples of a recording", self._samples)
        return Decoded(
            self._samples,
            self.finished,
            tracks,
            channels,
            declared,
            tuple(findings.warnings()) if self.finished else (),
            self._output.channels,
            self._peaks.take(finished=self.finished) if self._peaks is not None else b"",
        )

    def _decode(self, at: int, target: int) -> int:
        """Decode from the sample `at` to about `target`, less if that takes long. Returns up to where."""
        began_s, begin = time.process_time(), at
        start, end = self._selection.start, self._selection.end
        while at < target and at != end:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.finished = True
                return at
            form = self._findings.pcm_format
            if end is not None:
                chunk = chunk[: (end - at) * form.frame_bytes]
            self._output.write(chunk[max(0, start - at) * form.frame_bytes :], form.channels)
            if self._peaks is not None:
                self._peaks.feed(mixed(chunk, form.channels))
            at += len(chunk) // form.frame_bytes
            if chunk and calls.has_taken_long(began_s, (at - begin) / SAMPLE_RATE * _USUAL_S):
                break
        self.finished = at == end
        return at

    def close(self) -> None:
        self._chunks.close()
        self._output.close()


def decode(
    session_id: str, request: DecodeRequest, max_samples: int, max_declared: float = math.inf
) -> Decoded:
    """Decode about `max_samples` more of a recording, less if that takes long: see `calls.has_taken_long`.

    If nothing is decoded yet, and the file gives an end after `max_declared` samples, this decodes nothing.

    The PCM is s16le, mono, 16 kHz. The first call with a `session_id` in this process starts at the
    beginning: decoding is deterministic, so a worker that replaces a crashed one writes the same samples
    again. It overwrites the files in place, because other processes may be reading them. After the last step,
    they are truncated to their samples, and the worker forgets the session.

    A sample has the same place in the file as in the recording, so a part has a hole before it, which takes
    no space. What precedes the part is decoded for the peaks, and where seeking is not exact.

    Raises `RecordingRefused` if the file contains nothing to transcribe, `OSError` if a file operation fails.
    """
    with session(session_id, lambda: _Decoding(request)) as decoding:
        return decoding.advance(max_samples, max_declared)


def speech_probabilities(pcm_path: str, start_frame: int, frames: int, *beside: str) -> bytes:
    """The probability of speech in each frame of `FRAME_SAMPLES`: float32, little-endian.

    The span must be decoded already. At the end of the recording, the result has fewer than `frames` values,
    and the last frame may be padded with silence. If they take long, it has those of the first chunks: see
    `calls.has_taken_long`. The detector first gets up to `WARM_UP_FRAMES` frames before each chunk of
    `CHUNK_FRAMES` and keeps no state between them, so the result depends on the file and the chunks alone.

    Quiet sound is raised: see `quiet_sound`. `beside`: the files of the other channels, if each has its own.
    Where one of them is loud, nothing is raised: it may be the same voice.
    """
    began_s, found, done = time.process_time(), bytearray(), 0
    with ExitStack() as opened:
        files = [opened.enter_context(Path(path).open("rb")) for path in (pcm_path, *beside)]
        for first in range(start_frame, start_frame + frames, CHUNK_FRAMES):
            warm_up = min(first, WARM_UP_FRAMES)
            count = min(CHUNK_FRAMES, start_frame + frames - first)
            sound, *others = (_read_frames(file, first - warm_up, warm_up + count) for file in files)
            levels = [quiet_sound.frame_levels(channel) for channel in (sound, *others)]
            gains = quiet_sound.recording_gains(np.maximum.reduce(levels))
            values, _ = quiet_sound.probabilities(sound, gains)
            found += values[warm_up:].astype("<f4").tobytes()
            done += count
            if calls.has_taken_long(began_s, done * FRAME_SAMPLES / SAMPLE_RATE * _USUAL_S):
                break
    log.debug("computed the speech probabilities of %d frames", done)
    return bytes(found)


def _read_frames(file: BinaryIO, first: int, count: int) -> Floats:
    file.seek(first * FRAME_SAMPLES * BYTES_PER_SAMPLE)
    return framed(np.frombuffer(file.read(count * FRAME_SAMPLES * BYTES_PER_SAMPLE), "<i2"))


def limit_memory(headroom_bytes: int) -> None:
    """Load the libraries, then let this process map at most `headroom_bytes` more.

    Beyond that, allocations fail: a task raises `RecordingRefused` or `MemoryError`, or a library aborts the
    process. The machine's memory does not fill up.
    """
    import av  # noqa: F401

    silero()
    runtime.limit_memory(headroom_bytes)


def _check(samples: int, start: int, findings: Findings) -> None:
    """Raise `RecordingRefused` if a decoded recording, or its part from `start` on, is too short."""
    if samples - start >= MIN_SAMPLES:
        return
    if findings.damaged:
        raise refusal.nothing_decoded()
    if start:
        raise refusal.outside(start / SAMPLE_RATE, samples / SAMPLE_RATE)
    raise refusal.too_short(samples / SAMPLE_RATE)
