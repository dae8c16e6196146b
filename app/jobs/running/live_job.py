"""A job whose recording still comes, from a live stream."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from app.common.concurrency import run_shielded
from app.common.errors import WhisperfleetError
from app.common.options import Options
from app.intake.disk import DiskSpace, Reservation
from app.intake.growing_wav import HEADER_BYTES, GrowingWav, stored_sound
from app.jobs.job import Job, JobProgress, Stage
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.progress import ProgressBuffer
from app.jobs.storage.published_clips import LIVE_CHANNEL, PublishedClip
from app.jobs.storage.store import Store
from app.transcript.packed import pack_result
from app.transcript.timeline import ClipResult
from workers.messages import PCM_16K, SAMPLE_RATE, Encoding, Span

_WRITTEN_S = 1.0  # of sound at once: the end of the service loses no more
_STORE_SIZE_S = 10.0  # between two sizes in the database, which count in the share of its owner

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class LiveJob:
    """A running job. Its sound is stored as the client has sent it, and its text is that of the stream.

    Methods are called in the event loop.
    """

    job: Job
    path: Path  # of the recording
    max_bytes: int
    disk: DiskSpace
    store: Store
    clips: ClipStore
    progress: ProgressBuffer
    on_cancel: Callable[[], None] = lambda: None  # called when the job is cancelled: its stream must end
    is_closed: bool = False
    _wav: GrowingWav | None = None
    encoding: Encoding = PCM_16K  # of all sound
    _start: int = 0  # sample at 16 kHz: of its stream, which is not the first one after a restart
    received: int = 0  # bytes of sound
    _pending: bytearray = field(default_factory=bytearray)  # those that are not written yet
    _size_stored_at: float = 0.0  # monotonic, in s
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_silent(self) -> bool:
        """Whether no sound has come."""
        return self._wav is None and not self._pending

    async def reopen(self) -> None:
        """Go on with the recording that is there. Raises DiskFull and OSError."""
        if not await asyncio.to_thread(self.path.exists):
            return
        self.encoding, self.received = await asyncio.to_thread(stored_sound, self.path)
        self._start = self.received * SAMPLE_RATE // self.encoding.bytes_per_second
        self._wav = await asyncio.to_thread(self._open, HEADER_BYTES + self.received)

    async def append(self, audio: bytes, encoding: Encoding) -> None:
        """Add sound, always in the same encoding. Raises TooLarge, DiskFull and OSError."""
        async with self._writing:
            if self.is_closed:
                return
            self.encoding = encoding
            self._pending += audio
            self.received += len(audio)
            is_due = len(self._pending) >= _WRITTEN_S * encoding.bytes_per_second
            if is_due and self.store.front_end.holds:  # or another one may read the recording by now
                await self._write()
                if time.monotonic() - self._size_stored_at >= _STORE_SIZE_S:
                    await self._store_size()

    def end_sample(self) -> None:
        """What follows begins with a whole sample."""
        rest = len(self._pending) % self.encoding.bytes_per_sample
        del self._pending[len(self._pending) - rest :]

    async def configure(self, model: str, options: Options) -> None:
        """Change the model and the options with which all of it is transcribed."""
        stored = options.model_dump(mode="json")
        await self.store.update(self.job.id, by_run=True, model=model, options=stored)

    def publish(self, clip: Span, result: ClipResult) -> None:
        """Show the text of a clip, whose span is in samples at 16 kHz, until all is transcribed."""
        if self.is_closed:
            return
        clip = (self._start + clip[0], self._start + clip[1])
        key = (*clip, result.language or None, LIVE_CHANNEL)
        self.clips.put(self.job.number, key, 0, pack_result(result))
        self.progress.published(self.job.id, PublishedClip(clip, key, LIVE_CHANNEL))
        recorded_s = round(self.received / self.encoding.bytes_per_second, 3)
        self.progress.progressed(self.job.id, JobProgress(Stage.RECORDING, total_s=recorded_s))

    async def cancel(self) -> None:
        """The job is cancelled: end its stream. What came stays, and may go into the trash."""
        self.on_cancel()
        await self.close()

    async def close(self) -> None:
        """No more sound follows; what cannot be stored of the last second is lost. It may be closed."""
        async with self._writing:
            if self.is_closed:
                return
            self.is_closed = True
            try:
                if self._pending and self.store.front_end.holds:
                    await self._write()
            except (WhisperfleetError, OSError) as error:
                log.warning("the end of a live recording is lost", job=self.job.id, error=str(error))
            with suppress(OSError):
                if self._wav is not None:
                    await run_shielded(asyncio.to_thread(self._wav.close))
        with suppress(WhisperfleetError):
            await self._store_size()
            await self.progress.store()
        self.progress.end(self.job.id)

    async def _write(self) -> None:
        size = len(self._pending) // self.encoding.bytes_per_sample * self.encoding.bytes_per_sample
        audio = bytes(self._pending[:size])
        del self._pending[:size]
        await run_shielded(asyncio.to_thread(self._write_whole, audio))
        self.disk.stored[self.job.submission.owner] += size

    def _write_whole(self, audio: bytes) -> None:
        if self._wav is None:
            self._wav = self._open()
        self._wav.write(audio)

    def _open(self, size: int = 0) -> GrowingWav:
        space = Reservation(self.disk, self.job.submission.owner)
        return GrowingWav(self.path, self.encoding, space, self.max_bytes, size)

    async def _store_size(self) -> None:
        self._size_stored_at = time.monotonic()
        if self._wav is not None:
            await self.store.update(self.job.id, by_run=True, size=self._wav.size)
