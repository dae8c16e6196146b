"""Encodes a recording, or a span of it, as a file that browsers play: block by block, in a media worker.

The parent only names these functions, so this module imports soundfile in functions only.
"""

import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from workers import calls
from workers.media import refusal
from workers.media.decode import decoded_pcm
from workers.media.findings import Findings
from workers.media.mixer import PcmFormat
from workers.media.sessions import session
from workers.messages import TrackChoice

SUBTYPES = {"flac": "PCM_16", "ogg": "VORBIS"}  # as libsndfile calls them, by format
_USUAL_S = 1 / 50  # of CPU for each second of usual sound: twice what Vorbis takes


@dataclass(frozen=True, slots=True)
class EncodeRequest:
    """What to encode. Times in seconds of the recording."""

    source: str
    target: str  # a file that exists
    form: str  # a key of `SUBTYPES`
    track: TrackChoice = None
    start_s: float = 0.0
    end_s: float = math.inf


@dataclass(frozen=True, slots=True)
class EncodeStep:
    """The progress of an encoding."""

    decoded_s: float  # of the recording so far, from its start
    samples: int  # of each channel in the result so far
    size: int  # bytes in the result so far
    finished: bool
    declared_s: float  # length of the recording as its file gives it; 0 if it does not
    pcm_bytes_s: int  # bytes of the decoded sound in each second


class _Target(FileIO):
    """The file to write. Keeps the error of a failed write: libsndfile reports it without its number."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        written = 0
        try:
            while self.error is None and written < len(data):
                written += super().write(data[written:])
        except OSError as error:
            self.error = error
        return written


class _Encoder:
    """One encoding, between two steps."""

    def __init__(self, request: EncodeRequest) -> None:
        self.finished = False
        self._request = request
        self._findings = Findings()
        source = Path(request.source)
        # A copy has the same samples from any place on. Recordings, which have no suffix, may have others.
        start_s = request.start_s if source.suffix == ".flac" else 0.0
        self._chunks = decoded_pcm(source, self._findings, None, request.track, start_s=start_s)
        self._position: int | None = None  # of the next sample in the recording, once its rate is known
        self._samples = 0  # written
        self._writer: Any = None
        # The file must exist: a step that runs after the parent has given up creates none.
        self._target = _Target(request.target, "r+")
        self._target.truncate()

    def advance(self, seconds: float) -> EncodeStep:
        """Decode about so many seconds more, less if they take long, and encode those of the span."""
        began_s, begin = time.process_time(), self._decoded_s
        while not self.finished and self._decoded_s < begin + seconds:
            chunk = next(self._chunks, None)
            self.finished = chunk is None or self._write(chunk)
            if chunk and calls.has_taken_long(began_s, (self._decoded_s - begin) * _USUAL_S):
                break
        if self.finished:
            self._finish()
        form = self._findings.pcm_format
        size = os.fstat(self._target.fileno()).st_size
        declared_s = self._findings.declared_s
        pcm_bytes_s = form.rate * form.frame_bytes
        return EncodeStep(self._decoded_s, self._samples, size, self.finished, declared_s, pcm_bytes_s)

    def close(self) -> None:
        self._chunks.close()
        if self._writer is not None:
            with suppress(Exception):  # the file is of no use
                self._writer.close()
        self._target.close()

    @property
    def _decoded_s(self) -> float:
        return (self._position or 0) / self._findings.pcm_format.rate

    def _write(self, chunk: bytes) -> bool:
        """Encode the part of a chunk that is in the span. Returns whether the span ends with it."""
        if not chunk:
            return False
        form, request = self._findings.pcm_format, self._request
        if self._position is None:
            self._position = self._findings.skipped_s * form.rate
        first = round(request.start_s * form.rate) - self._position
        last = math.inf if math.isinf(request.end_s) else round(request.end_s * form.rate) - self._position
        frames = np.frombuffer(chunk, "<i2").reshape(-1, form.channels)
        self._position += len(frames)
        self._encode(frames[max(0, first) : max(0, min(last, len(frames)))], form)
        return last <= len(frames)

    def _encode(self, frames: Any, form: PcmFormat) -> None:
        # By the second: the Vorbis encoder puts all that it gets at once on the stack.
        for start in range(0, len(frames), form.rate):
            part = frames[start : start + form.rate]
            self._call(self._opened(form).write, part)
            self._samples += len(part)

    def _opened(self, form: PcmFormat) -> Any:
        if self._writer is None:
            from soundfile import SoundFile

            name = self._request.form
            self._writer = SoundFile(
                self._target, "w", form.rate, form.channels, SUBTYPES[name], format=name.upper()
            )
        return self._writer

    def _finish(self) -> None:
        """Complete the file, and have the disk store all of it."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            self._call(writer.close)
        os.fsync(self._target.fileno())
        if not self._position:
            raise refusal.nothing_decoded() if self._findings.damaged else refusal.too_short(0)

    def _call(self, function: Any, *args: Any) -> None:
        """Call libsndfile. Raises OSError if the file cannot be written."""
        try:
            function(*args)
        except Exception:
            if self._target.error is None:
                raise
        if self._target.error is not None:
            raise self._target.error


def encode(session_id: str, request: EncodeRequest, seconds: float) -> EncodeStep:
    """Decode about `seconds` more of a recording, less if they take long, and encode what is in the span.

    The first call with a `session_id` in this process starts at the beginning, with an empty file. After the
    last step the file is complete and on the disk, and the worker forgets the session. A FLAC file has the
    decoded samples exactly; an Ogg file has Vorbis. What precedes the span is skipped in a copy alone.

    Raises `RecordingRefused` if the source cannot be decoded, and `OSError` if a file operation fails.
    """
    with session(session_id, lambda: _Encoder(request)) as encoder:
        return encoder.advance(seconds)
