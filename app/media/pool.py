"""The media children: decoding and speech detection in processes of their own, in fair turns.

An untrusted file may crash a decoder; then a child dies, and another takes its place. A recording is
decoded step by step in one child, which keeps the decoder open; its spans go to any.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

from app.disk import raise_if_full
from app.errors import InvalidInput, TaskCrashes
from app.media.speech import SPAN_FRAMES
from app.media.uploads import Upload
from app.scheduling.dispatcher import MAX_CRASHES, Dispatcher
from app.scheduling.process import ChildProcess
from app.scheduling.tasks import Done, SlotStatus
from app.shielding import run_shielded
from workers import runtime
from workers.media import tasks as media
from workers.messages import FRAME_SAMPLES, RecordingRefused

log = structlog.get_logger(__name__)

MAX_CHILDREN = 4
STEP_SAMPLES = SPAN_FRAMES * FRAME_SAMPLES  # decoded at a time: 60 s
_HEADROOM_BYTES = 2 << 30  # address space that a child may use beyond its libraries
# Below the workers, even those on the CPU: a worker that lacks work leaves its cores to the children, and
# else a long recording would have its first clips wait until its last are found.
_NICENESS = 15
_START_DEADLINE_S = 120.0
_DEADLINE_S = 120.0  # for a step or a span, which take a second at most


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `workers.media.tasks` to be run in a child."""

    function: Callable[..., Any]
    args: tuple[object, ...]


class MediaWorkerSlot:
    """One media child."""

    batch_limit = 1

    def __init__(self, index: int) -> None:
        self.index = index
        self.status = SlotStatus()
        self.died = asyncio.Event()
        self._child = ChildProcess(runtime.initialise, "", _NICENESS)
        self._child.on_crash = self.died.set

    async def start(self) -> None:
        """Spawn the child and bound its memory."""
        await self._child.start()
        await self._child.call(media.limit_memory, _HEADROOM_BYTES, deadline_s=_START_DEADLINE_S)

    async def run(self, payloads: Sequence[Call]) -> list[Any]:
        """Run one call."""
        [call] = payloads
        return [await self._child.call(call.function, *call.args, deadline_s=_DEADLINE_S)]

    async def close(self) -> None:
        """Kill the child."""
        await self._child.close()


class Media:
    """Decodes recordings and tells where in them somebody speaks."""

    def __init__(self, children: int) -> None:
        self._dispatcher = Dispatcher[Call, Any](
            "media process", [MediaWorkerSlot(index) for index in range(min(MAX_CHILDREN, children))]
        )

        self._left: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Bring the children up, in the background."""
        self._dispatcher.start()

    async def stop(self) -> None:
        """End the children."""
        await self._dispatcher.stop()

    async def decode(self, job: str, upload: Upload, pcm_path: Path) -> AsyncGenerator[tuple[int, bool]]:
        """Decode an upload into 16 kHz mono int16 at `pcm_path`, step by step.

        Yields how many samples are there and whether that is all. Raises InvalidInput for a file in which
        there is nothing to decode, or which crashes decoders.
        """
        # Whoever is cancelled here removes the file afterwards, and it must not be made after that.
        await run_shielded(asyncio.to_thread(_make, pcm_path))
        call = Call(media.decode, (job, str(upload.path), str(pcm_path), STEP_SAMPLES, upload.raw_pcm))
        home: int | None = None
        finished = False
        deaths = 0
        step: asyncio.Future[Done[Any]] | None = None
        try:
            while not finished:
                step = step or self._step(job, call, home)
                decoded, home, died = await asyncio.shield(step)
                finished = decoded.finished
                # Each child begins the file anew, and so may get as far as the step before the deadly one.
                deaths += died
                if deaths >= MAX_CRASHES and not finished:
                    raise _deadly()
                if decoded.warning:
                    log.info("recording is damaged", filename=upload.filename, warning=decoded.warning)
                # The next step is asked for before the spans that this one makes room for: a child that
                # took one of those first would have all others wait for it.
                step = None if finished else self._step(job, call, home)
                yield decoded.samples, finished
        finally:
            if step is not None and not finished:
                self._leave(self._close(job, step, home))

    def _step(self, job: str, call: Call, home: int | None) -> asyncio.Future[Done[Any]]:
        return asyncio.ensure_future(self._run(_decoding(job), call, home))

    async def _close(self, job: str, step: asyncio.Future[Done[Any]], home: int | None) -> None:
        """Have the child that decodes a recording let go of it, once its last step has come to an end."""
        with suppress(Exception, asyncio.CancelledError):
            home = (await step).slot
        if home is not None:
            with suppress(Exception):
                await self._run(f"close {job}", Call(media.close, (job,)), home)

    def _leave(self, work: Coroutine[Any, Any, None]) -> None:
        """Let work go on for which nobody waits."""
        task = asyncio.get_running_loop().create_task(work)
        self._left.add(task)
        task.add_done_callback(self._left.discard)

    async def speech_probabilities(
        self, job: str, pcm_path: Path, start_frame: int, frames: int
    ) -> npt.NDArray[np.float32]:
        """The speech probability of each frame of a span, shape (frames,) or less at the recording's end."""
        call = Call(media.speech_probabilities, (str(pcm_path), start_frame, frames))
        done = await self._run(job, call, None)
        return np.frombuffer(done.result, "<f4")

    def cancel(self, job: str) -> None:
        """Take what is left of a job out of the queue."""
        self._dispatcher.cancel(job)
        self._dispatcher.cancel(_decoding(job))

    async def _run(self, job: str, call: Call, home: int | None) -> Done[Any]:
        try:
            return await self._dispatcher.submit(job, call, key=object(), home=home)
        except RecordingRefused as error:
            raise InvalidInput(error.message, param="file", code=error.code) from None
        except MemoryError:
            raise InvalidInput(
                "The file needs more memory to decode than a recording should. Convert it to WAV or FLAC.",
                param="file",
                code="too_demanding",
            ) from None
        except OSError as error:
            raise_if_full(error)
            raise
        except TaskCrashes:
            raise _deadly() from None


def _make(path: Path) -> None:
    try:
        path.touch()
    except OSError as error:
        raise_if_full(error)
        raise


def _decoding(job: str) -> str:
    """The line in which a job's decoding steps wait. One child alone may do them: in a line with the spans,
    they would keep those from the other children while that one is busy.
    """
    return f"decode {job}"


def _deadly() -> InvalidInput:
    return InvalidInput(
        "The file makes the decoder crash or hang. Convert it to WAV, FLAC or MP3 and send that.",
        param="file",
        code="broken_file",
    )
