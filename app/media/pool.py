"""The media workers: processes that decode and encode recordings and find speech, in fair turns.

An untrusted file may crash a decoder: then a process ends, and another takes its place. A recording is
decoded step by step in one process, which keeps the decoder open. Its chunks for speech detection go to any
process.
"""

import asyncio
import math
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

from app.common.concurrency import BackgroundTasks, end_tasks, run_shielded, spawn_shared
from app.common.errors import DiskFull, InvalidInput, SpeakerModelUnavailable, TaskCrashes
from app.intake.disk import DiskSpace, disk_errors
from app.intake.uploads import Upload
from app.media.pcm_files import PcmBudget, audio_too_long, channel_paths, remove_channels
from app.media.peaks import PeakCollector
from app.media.remote_slot import RemoteMediaSlot
from app.media.worker_slot import MediaCall, MediaWorkerSlot
from app.pool.dispatcher import Dispatcher
from app.pool.failure_policy import MAX_CRASHES
from app.pool.tasks import Batch, Outcome, Slot, TaskResult, WorkerProcess
from app.telemetry import traces
from workers.media import encode, sessions, tasks
from workers.media.tasks import DecodeRequest
from workers.media.voices import embed
from workers.messages import (
    BYTES_PER_SAMPLE,
    CHUNK_FRAMES,
    EVERYTHING,
    FRAME_SAMPLES,
    SAMPLE_RATE,
    Decoded,
    RecordingRefused,
    Selection,
    Span,
    SpeakerModel,
)

log = structlog.get_logger(__name__)

FIRST_STEP_SAMPLES = CHUNK_FRAMES * FRAME_SAMPLES  # decoded at first: 60 s, so that speech is found soon
# Later as much as is decoded already, up to this: each step costs the server a millisecond.
STEP_SAMPLES = 8 * FIRST_STEP_SAMPLES
_SLEEP_AFTER_S = 300.0  # without work, after which all but the first end, for the memory that they take
# The fields at fault when a recording is refused for what was selected of it.
_REFUSED_PARAMS = {
    "no_such_track": "audio_track",
    "start_after_end": "start",
    "too_many_channels": "channels",
}
_SPAN_NAMES: dict[Callable[..., Any], str] = {
    tasks.decode: "decode recording",
    tasks.speech_probabilities: "detect speech",
    encode.encode: "encode copy",
    embed.embed: "embed voices",
}


async def _no_speaker_model() -> SpeakerModel:
    """Of media workers that embed no voices."""
    raise SpeakerModelUnavailable("These media workers embed no voices.")


class MediaPool:
    """Decodes recordings, detects speech in them and embeds the voices."""

    def __init__(
        self,
        workers: int,
        disk: DiskSpace,
        speaker_model: Callable[[], Awaitable[SpeakerModel]] = _no_speaker_model,
    ) -> None:
        """`workers`: how many there are on this machine. `disk`: the one to which recordings are decoded.

        `speaker_model` returns the model that embeds voices, or raises SpeakerModelUnavailable.
        """
        self.local_count = workers
        self.speaker_model = speaker_model
        self._disk = disk
        self.dispatcher = Dispatcher[MediaCall, Any](
            "media process",
            [MediaWorkerSlot(index) for index in range(workers)],
            sleep_after_s=_SLEEP_AFTER_S,
            always_awake=1,
            charges_owners=True,
            can_run=lambda slot, call: not isinstance(slot, RemoteMediaSlot) or slot.can_run(call),
            on_batch=_trace_call,
        )
        self._background = BackgroundTasks()

    def start(self) -> None:
        """Start the first worker, in the background. The others start when there is work for them."""
        self.dispatcher.start(awake=1)

    async def stop(self) -> None:
        """End the workers, and the tasks that wait for them."""
        await self.dispatcher.stop()
        await end_tasks(*self._background)

    def add_remote(self, process: WorkerProcess) -> int:
        """Have a worker more, whose process runs on another machine once there is work. Returns its number.

        It comes after the local ones: a recording is sent only while they are busy. `dispatcher` removes and
        drains it.
        """
        slot = RemoteMediaSlot(self.dispatcher.free_index, process)
        slot.status.state = "asleep"
        self.dispatcher.add_slot(slot)
        return slot.index

    @property
    def worker_count(self) -> int:
        """How many workers there are, on any machine."""
        return len(self.dispatcher.slots)

    @property
    def busy_ratio(self) -> float:
        """The part of the workers that work now, 0 to 1. Those that are asleep count as idle."""
        busy = sum(slot.status.state == "busy" for slot in self.dispatcher.slots)
        return busy / self.worker_count

    async def decode(
        self,
        job: Hashable,
        upload: Upload,
        pcm_path: Path,
        max_duration_s: float = math.inf,
        peaks: PeakCollector | None = None,
        selection: Selection = EVERYTHING,
        separate: bool = False,
    ) -> AsyncGenerator[Decoded]:
        """Decode an upload, or what is selected of it, into 16 kHz mono int16 at `pcm_path`, step by step.

        `separate`: each channel by itself at its `channel_path`; of those that are the same, only the first.

        Yields how far it is decoded after each step; `peaks`, if given, has the peaks up to there. Raises
        InvalidInput for a file that has nothing to decode, that lacks what is selected, that has too many
        channels to separate or that crashes decoders, TooLarge for one that is longer than `max_duration_s`,
        or says so, and DiskFull, or OutgrowsDisk if the decoded audio itself fills the disk.
        """
        paths = channel_paths(pcm_path) if separate else (pcm_path,)
        with disk_errors():
            # A cancelled caller removes the files afterwards, so none may be created after the cancellation.
            sizes = await run_shielded(asyncio.to_thread(_create, paths))
        session = WorkerSession(self, ("decode", job))
        files = tuple(map(str, paths))
        request = DecodeRequest(str(upload.path), files, upload.raw_pcm, selection, peaks is not None)
        with closing(self._disk.reserve()) as space:
            space.written = sum(max(0, size - selection.start * BYTES_PER_SAMPLE) for size in sizes)
            budget = PcmBudget(self._disk, space, pcm_path, max_duration_s, selection.start, len(paths))

            async def start_step(samples: int) -> None:
                most = await asyncio.to_thread(budget.before_step, samples)
                session.start_step(tasks.decode, request, samples, most)

            try:
                await start_step(FIRST_STEP_SAMPLES)
                while not session.finished:
                    decoded: Decoded = await session.end_step()
                    if peaks is not None:
                        peaks.add(decoded.samples, decoded.peaks, finished=decoded.finished)
                    if decoded.samples > max_duration_s * SAMPLE_RATE:
                        raise audio_too_long(max_duration_s)
                    if decoded.warnings:
                        texts = [warning.message for warning in decoded.warnings]
                        log.info("recording has problems", filename=upload.filename, warnings=texts)
                    if not decoded.finished:
                        await budget.after_step(decoded.samples, decoded.declared, decoded.files)
                        # The next step is queued before the chunks of this one: a worker that took such a
                        # chunk first would keep all others waiting for it.
                        await start_step(min(max(decoded.samples, FIRST_STEP_SAMPLES), STEP_SAMPLES))
                    elif separate:
                        await asyncio.to_thread(remove_channels, pcm_path, but=decoded.channels)
                    yield decoded
            except DiskFull as error:
                raise await budget.explain(error) from error
            finally:
                session.close()

    async def speech_probabilities(
        self, job: Hashable, pcm_path: Path, start_frame: int, frames: int, *beside: Path
    ) -> npt.NDArray[np.float32]:
        """The speech probability of each frame of a chunk: shape (frames,), less at the recording's end.

        `beside`: see `tasks.speech_probabilities`. Raises as `decode` does.
        """
        found = np.zeros(0, np.float32)
        while len(found) < frames:
            args = (str(pcm_path), start_frame + len(found), frames - len(found), *map(str, beside))
            done = await self.run(job, MediaCall(tasks.speech_probabilities, args))
            if not done.result:
                break
            found = np.concatenate([found, np.frombuffer(done.result, "<f4")])
        return found

    async def embed_voices(
        self, job: Hashable, pcm_path: Path, windows: Sequence[Span]
    ) -> npt.NDArray[np.float32]:
        """The embedding of the voice in each window of a recording, all of them decoded.

        Shape (windows, values), rows of length 1; (0, 0) without windows. One call of a worker embeds all of
        them: give those of one clip. Raises SpeakerModelUnavailable, TaskCrashes if the model crashes each
        worker, MemoryError, NotReady, and the model's own errors.
        """
        if not windows:
            return np.zeros((0, 0), np.float32)
        model = await self.speaker_model()
        call = MediaCall(embed.embed, (str(pcm_path), tuple(windows), model))
        done = await self.dispatcher.submit(("voices", job), call, key=object())
        return np.frombuffer(done.result, "<f4").reshape(len(windows), -1)

    async def fault_of_speaker_model(self, model: SpeakerModel) -> str | None:
        """What is wrong with the file of a model that embeds voices, in one line; None if it can be used.

        Raises TaskCrashes if the model crashes each worker, and NotReady.
        """
        done = await self.dispatcher.submit(
            "speaker model", MediaCall(embed.fault_of, (model,)), key=object()
        )
        fault: str | None = done.result
        return fault

    def cancel(self, job: Hashable) -> None:
        """Remove a job's tasks from the queue."""
        # A job has three lines. Only one worker can run its decoding steps, and the voices of many clips may
        # wait: in one line with its chunks for speech detection, they would keep these from free workers.
        for line in (job, ("decode", job), ("voices", job)):
            self.dispatcher.cancel(line)

    async def run(self, line: Hashable, call: MediaCall, slot: int | None = None) -> TaskResult[Any]:
        """Run a call in its turn; on one slot only, if given. Errors are those of the client's file."""
        try:
            with disk_errors():
                return await self.dispatcher.submit(line, call, key=object(), affinity=slot)
        except RecordingRefused as error:
            param = _REFUSED_PARAMS.get(error.code, "file")
            raise InvalidInput(error.message, param=param, code=error.code) from None
        except MemoryError:
            raise InvalidInput(
                "The file needs more memory to decode than a recording should. Convert it to WAV or FLAC.",
                param="file",
                code="too_demanding",
            ) from None
        except TaskCrashes:
            raise crashes_decoders() from None

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background; `stop` ends it."""
        self._background.spawn(work)


@dataclass(slots=True)
class WorkerSession:
    """A recording in a worker that keeps its decoder or encoder open between the steps.

    A new process begins again. `line`: of the steps in the queue.
    """

    pool: MediaPool
    line: Hashable
    finished: bool = False
    # The decoder of a job that was cancelled and starts again may not be closed yet.
    _id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _step: asyncio.Future[TaskResult[Any]] | None = None
    _slot: int | None = None
    _crashes: int = 0

    def start_step(self, function: Callable[..., Any], *args: object) -> None:
        """Queue the next step: a call of `function` with the id of the session and `args`."""
        call = MediaCall(function, (self._id, *args))
        self._step = spawn_shared(self.pool.run(self.line, call, self._slot))

    async def end_step(self) -> Any:
        """What the step returns, once it is done. Raises as `MediaPool.run`."""
        assert self._step is not None
        step, self._slot, crash_count = await asyncio.shield(self._step)
        self.finished = step.finished
        # A new process works from the start, so it may reach the step before the one that crashes.
        self._crashes += crash_count
        if self._crashes >= MAX_CRASHES and not self.finished:
            raise crashes_decoders()
        return step

    def close(self) -> None:
        """Close the decoder or encoder in the background, unless it has finished: after a step in flight."""
        if self._step is not None and not self.finished:
            self.pool.spawn(self._close_after(self._step))

    async def _close_after(self, step: asyncio.Future[TaskResult[Any]]) -> None:
        await asyncio.wait([step])
        if not step.cancelled() and step.exception() is None:
            self._slot = step.result().slot
        if self._slot is not None:
            with suppress(Exception):
                await self.pool.run(("close", self._id), MediaCall(sessions.close, (self._id,)), self._slot)


def _trace_call(slot: Slot[MediaCall, Any], batch: Batch[MediaCall, Any], outcome: Outcome) -> None:
    """A worker is done with a call. Its span begins when the worker got it."""
    [task] = batch.tasks
    name = _SPAN_NAMES.get(task.payload.function)
    if not traces.is_on() or name is None:  # it closes what was cancelled, and nobody waits for it
        return
    waited_s = max(0.0, asyncio.get_running_loop().time() - task.queued_at - (time.time() - batch.sent))
    traces.add(
        traces.span_in(task.context),
        name,
        batch.sent,
        batch.end,
        {
            "whisperfleet.media_worker": batch.slot,
            "whisperfleet.waited_s": round(waited_s, 3),
            "whisperfleet.outcome": outcome.value,
        },
    )


def _create(paths: Sequence[Path]) -> list[int]:
    """Create files unless an earlier run did. Returns their sizes in bytes. Raises OSError."""
    for path in paths:
        path.touch()
    return [path.stat().st_size for path in paths]


def crashes_decoders() -> InvalidInput:
    """The error for a file on which every process crashed."""
    return InvalidInput(
        "The file makes the decoder crash or hang. Convert it to WAV, FLAC or MP3 and send that.",
        param="file",
        code="broken_file",
    )
