"""Has media workers encode recordings, or spans of them, as files that browsers play."""

import asyncio
import math
import uuid
from contextlib import closing
from pathlib import Path

from app.common.concurrency import run_shielded
from app.common.errors import NOT_KEPT, AudioNotKept, DiskFull, InvalidInput
from app.intake.disk import DiskSpace, Reservation, disk_errors, disk_full
from app.media.pcm_files import audio_too_long
from app.media.pool import MediaPool, WorkerSession
from workers.media import encode
from workers.media.encode import EncodeRequest, EncodeStep
from workers.messages import TrackChoice

_STEP_S = 60.0  # of the recording, decoded at a time
_STEP_BYTES = 12 << 20  # that a step adds at most: 48 kHz stereo that FLAC cannot make smaller
_PCM_PARTS = {"flac": 1.0, "ogg": 0.25}  # what is reserved of the size of the decoded sound: surely enough
_SLACK_S = 0.01  # that a span may end after the recording: clients round its length


class SoundEncoder:
    """Encodes recordings on this machine. As many as it has media workers are in progress; others wait."""

    def __init__(self, pool: MediaPool, disk: DiskSpace, max_duration_s: float = math.inf) -> None:
        self._pool = pool
        self._disk = disk
        self._max_duration_s = max_duration_s
        self._turns = asyncio.Semaphore(pool.local_count)

    async def encode(
        self,
        source: Path,
        target: Path,
        form: str,
        *,
        track: TrackChoice = None,
        start_s: float = 0.0,
        end_s: float = math.inf,
    ) -> None:
        """Encode a track of a recording, or the span from `start_s` to `end_s`, into the new file `target`.

        `form` is `flac` or `ogg`. The caller removes the target, also after an error or a cancellation. No
        worker creates it again.

        Raises AudioNotKept if the source is gone, InvalidInput if the span is not one of the recording or
        nothing can be decoded, TooLarge if the recording is longer than the limit, and DiskFull.
        """
        request = EncodeRequest(str(source), str(target), form, track, start_s, end_s)
        async with self._turns:
            with disk_errors():
                # Only the service's own user may read it.
                await run_shielded(asyncio.to_thread(target.touch, 0o600, exist_ok=False))
            with closing(self._disk.reserve()) as space:
                try:
                    step = await self._run(request, space)
                except FileNotFoundError:
                    raise AudioNotKept(NOT_KEPT) from None
        _check_span(request, step)

    async def _run(self, request: EncodeRequest, space: Reservation) -> EncodeStep:
        """Run all steps in one worker, or from the beginning in another one if it crashes."""
        line = uuid.uuid4().hex
        session = WorkerSession(self._pool, line)
        is_first = True
        try:
            while not session.finished:
                await asyncio.to_thread(space.check, _STEP_BYTES)
                session.start_step(encode.encode, request, _STEP_S)
                step: EncodeStep = await session.end_step()
                space.written = max(space.written, step.size)
                if max(step.decoded_s, step.declared_s) > self._max_duration_s + _SLACK_S:
                    raise audio_too_long(self._max_duration_s)
                if is_first and not session.finished:
                    await self._reserve(request, step, space)
                is_first = False
            return step
        finally:
            self._pool.cancel(line)
            session.close()

    async def _reserve(self, request: EncodeRequest, step: EncodeStep, space: Reservation) -> None:
        """Reserve the disk space of the whole result if the file says how long the recording is."""
        seconds = min(request.end_s, step.declared_s) - request.start_s
        if seconds > 0:
            size = int(seconds * step.pcm_bytes_s * _PCM_PARTS[request.form])
            try:
                await asyncio.to_thread(space.expect, size)
            except DiskFull:
                raise disk_full() from None


def _check_span(request: EncodeRequest, end: EncodeStep) -> None:
    """Raise InvalidInput if the recording has turned out to be shorter than the span says."""
    if not math.isinf(request.end_s):
        check_within("end", request.end_s, end.decoded_s)
    if not end.samples:
        check_within("start", request.start_s, end.decoded_s)
        raise InvalidInput("`end`: the span is shorter than one sample. Ask for a longer one.", param="end")


def check_within(name: str, seconds: float, duration_s: float) -> None:
    """Raise InvalidInput if the parameter `name` lies after the end of the recording."""
    if seconds > duration_s + _SLACK_S:
        raise InvalidInput(
            f"`{name}` is {seconds:g} s, and the recording has {duration_s:.2f} s. Choose a span of it.",
            param=name,
        )
