"""Clips that were heard for somebody who went away."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from app.transcription.result_cache import CachedRecording, ResultCache
from workers.messages import ClipResult

RESULT = ClipResult("en", (), ())
Work = Callable[[], Coroutine[Any, Any, ClipResult]]


class Worker:
    """Work that can be counted, and waits until it is let go."""

    def __init__(self, *, free: bool = True) -> None:
        self.begun = 0
        self.free = asyncio.Event()
        if free:
            self.free.set()

    async def __call__(self) -> ClipResult:
        self.begun += 1
        await self.free.wait()
        return RESULT


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_what_was_heard_is_not_heard_again() -> None:
    async def check() -> None:
        memory, worker = ResultCache(), Worker()
        with suppress(ConnectionError), memory.recall("talk") as recording:
            await recording.hear("clip", worker)
            raise ConnectionError
        with memory.recall("talk") as recording:
            assert await recording.hear("clip", worker) == RESULT
            assert await recording.hear("another", worker) == RESULT
        assert worker.begun == 2

    asyncio.run(check())


def test_an_answered_recording_is_forgotten() -> None:
    async def check() -> None:
        memory, worker = ResultCache(), Worker()
        for _ in range(2):
            with memory.recall("talk") as recording:
                await recording.hear("clip", worker)
            await settle()
            assert len(memory) == 0
        assert worker.begun == 2

    asyncio.run(check())


def test_what_nobody_comes_back_for_is_forgotten_in_time() -> None:
    async def check() -> None:
        memory = ResultCache(keep_s=0.05)
        for _ in range(2):  # coming back starts the time anew
            with pytest.raises(ConnectionError), memory.recall("talk"):
                raise ConnectionError
            await asyncio.sleep(0.03)
            assert len(memory) == 1
        await asyncio.sleep(0.06)
        assert len(memory) == 0

    asyncio.run(check())


def test_work_in_hand_goes_on_for_whoever_comes_back() -> None:
    async def check() -> None:
        recording, worker = CachedRecording(), Worker(free=False)
        first = asyncio.create_task(recording.hear("clip", worker))
        await settle()
        first.cancel()
        await settle()
        assert first.cancelled()
        second = asyncio.create_task(recording.hear("clip", worker))
        await settle()
        worker.free.set()
        assert await second == RESULT
        assert worker.begun == 1

    asyncio.run(check())


def test_work_that_another_request_took_back_is_done_again() -> None:
    """Two requests for the same recording at once: one goes away, the other must not notice."""

    async def check() -> None:
        recording = CachedRecording()
        given: list[asyncio.Task[Any]] = []

        async def queued() -> ClipResult:
            given.append(asyncio.current_task())  # type: ignore[arg-type]
            await asyncio.Event().wait()
            return RESULT

        leaves = asyncio.create_task(recording.hear("clip", queued))
        await settle()
        worker = Worker()
        stays = asyncio.create_task(recording.hear("clip", worker))
        await settle()
        leaves.cancel()
        given[0].cancel()  # as the dispatcher does with what is still in its queue
        assert await stays == RESULT
        assert worker.begun == 1

    asyncio.run(check())


def test_a_failure_is_not_remembered() -> None:
    async def check() -> None:
        recording = CachedRecording()

        async def fails() -> ClipResult:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await recording.hear("clip", fails)
        assert await recording.hear("clip", Worker()) == RESULT

    asyncio.run(check())
