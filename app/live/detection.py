"""The process that examines all live streams: one call takes the new audio of all of them."""

import asyncio
import contextvars
from collections.abc import Sequence
from typing import Protocol

import structlog

from app.common.concurrency import Wakeup, end_tasks
from app.common.errors import ProcessCrashed
from app.pool.process import ChildProcess
from workers import runtime
from workers.media import live_speech
from workers.messages import DetectedSpeech, NewAudio

# Audio is collected for so long: a call takes a millisecond of the server, whatever is in it.
_INTERVAL_S = 0.06
_DEADLINE_S = 60.0
_IDLE_S = 60.0  # after which the process ends, and freed memory is returned
_RETRY_S = 1.0  # after the process has crashed, or did not start
_START_S = 120.0  # in which the process can be started, or its streams are given up
# With audio that makes the process crash: that of all streams, since something else may be why, and of one.
_ATTEMPTS, _ATTEMPTS_ALONE = 2, 3
# Before the workers: each word waits for it.
_NICENESS = 5

log = structlog.get_logger(__name__)


class Speaker(Protocol):
    """A stream, as `SpeechDetection` sees it."""

    def next_audio(self) -> NewAudio | None:
        """The audio that has come since the last call; None if there is none."""

    def detected(self, examined: DetectedSpeech | OSError) -> None:
        """What was found in it, or why it could not be stored."""

    def failed(self) -> None:
        """One of the above has raised an error, or the audio makes the process crash."""


class SpeechDetection:
    """Examines streams while they have audio. The process runs while it is needed."""

    def __init__(self) -> None:
        self._waiting: dict[Speaker, None] = {}  # with new audio, in order
        self._wakeup = Wakeup()
        # One for good: it knows whether a process that was killed has ended.
        self._child = ChildProcess(runtime.initialise, "", _NICENESS)
        self._loop: asyncio.Task[None] | None = None

    def wake(self, stream: Speaker) -> None:
        """A stream has new audio."""
        self._waiting[stream] = None
        self._wakeup.set()
        if self._loop is None or self._loop.done():
            # Not in the context of the stream that came first: its request is not that of the others.
            self._loop = asyncio.create_task(self._examine_on(), context=contextvars.Context())

    def forget(self, stream: Speaker) -> None:
        """A stream has ended. It may still learn what was found in its last audio."""
        self._waiting.pop(stream, None)

    async def stop(self) -> None:
        """End the process."""
        await end_tasks(self._loop)
        await self._child.close()

    async def _examine_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            waiting, self._waiting = self._waiting, {}
            self._wakeup.clear()
            arrived = [
                (stream, audio) for stream in waiting if (audio := self._next_audio(stream)) is not None
            ]
            if arrived:
                await self._examine(arrived)
                self._waiting |= dict.fromkeys(stream for stream, _ in arrived)  # that may have more by now
                await asyncio.sleep(max(0.0, began + _INTERVAL_S - loop.time()))
            elif not self._waiting:
                await self._wakeup.wait(_IDLE_S)
                if not self._waiting:
                    await self._child.close()
                    # Messages of many streams at once leave freed memory between what stays.
                    runtime.release_freed_memory()

    def _next_audio(self, stream: Speaker) -> NewAudio | None:
        try:
            return stream.next_audio()
        except Exception:  # it must not keep the others from being examined
            log.exception("audio not taken")
            stream.failed()
            return None

    def _answer(self, stream: Speaker, answer: DetectedSpeech | OSError | None) -> None:
        try:
            if answer is None:
                stream.failed()
            else:
                stream.detected(answer)
        except Exception:
            log.exception("audio not examined")
            stream.failed()

    async def _examine(self, arrived: Sequence[tuple[Speaker, NewAudio]]) -> None:
        """Examine the audio of streams; one by one if the process crashes again, since one may be why."""
        try:
            answers = await self._detect([audio for _, audio in arrived], _ATTEMPTS)
            for place, (stream, audio) in enumerate(arrived):
                if answers is not None:
                    self._answer(stream, answers[place])
                else:
                    alone = await self._detect([audio], _ATTEMPTS_ALONE)
                    self._answer(stream, alone[0] if alone else None)
        except ProcessCrashed as error:
            log.error("live streams have ended", error=error.message)
            for stream, _ in arrived:
                self._answer(stream, None)

    async def _detect(
        self, arrived: Sequence[NewAudio], attempts: int
    ) -> Sequence[DetectedSpeech | OSError] | None:
        """Examine the audio of streams. None if the process crashes each time: it takes nothing along.

        Raises ProcessCrashed if it cannot be started.
        """
        for _ in range(attempts):
            await self._start_process()
            try:
                return await self._child.call(live_speech.detect, arrived, deadline_s=_DEADLINE_S)
            except ProcessCrashed as error:
                log.warning("the process that examines streams failed", error=error.message)
            except Exception:
                log.exception("streams not examined")
            await self._child.close()
            await asyncio.sleep(_RETRY_S)
        return None

    async def _start_process(self) -> None:
        """Start the process unless it runs. Raises ProcessCrashed if it cannot be started."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + _START_S
        while not self._child.is_started:
            try:
                await self._child.start()
            except Exception as error:  # of the machine: streams wait, and nothing of them is lost
                log.warning("the process that examines streams does not start", error=str(error))
                if loop.time() >= give_up_at:
                    raise ProcessCrashed("the process that examines streams cannot be started") from error
                await asyncio.sleep(_RETRY_S)
