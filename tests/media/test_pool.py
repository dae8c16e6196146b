"""The media room, with children that do as they are told."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.media.pool import Call, MediaPool
from app.media.uploads import Upload
from app.scheduling.dispatcher import Dispatcher
from app.scheduling.tasks import SlotStatus
from workers.media import tasks as media
from workers.media.tasks import DecodeStep

pytestmark = pytest.mark.timeout(20)

STEPS = 6


class ChildProcess:
    """Takes its time: over a step until a span is at work elsewhere, and over a span until a step is."""

    batch_limit = 1

    def __init__(self, index: int, starts: asyncio.Event, at_work: dict[object, asyncio.Event]) -> None:
        self.index = index
        self.status = SlotStatus()
        self.needs_restart = asyncio.Event()
        self.homes: list[int] = []
        self._starts = starts
        self._at_work = at_work
        self._steps = 0

    async def start(self) -> None:
        await self._starts.wait()

    async def run(self, payloads: Sequence[Call]) -> list[Any]:
        [call] = payloads
        self._at_work[call.function].set()
        if call.function is media.decode:
            self._steps += 1
            if self._steps == 1:
                await asyncio.sleep(0)
            else:
                await self._meet(media.speech_probabilities)
            self._at_work[call.function].clear()
            return [DecodeStep(self._steps, self._steps == STEPS, None)]
        if call.args[1] != STEPS - 1:  # the last span has no step left beside it
            await self._meet(media.decode)
        self._at_work[call.function].clear()
        return [b"\0\0\0\0"]

    async def _meet(self, other: object) -> None:
        async with asyncio.timeout(5):
            await self._at_work[other].wait()

    async def close(self) -> None: ...


@pytest.mark.parametrize("home", [0, 1])
def test_one_child_decodes_while_the_other_looks_for_speech(tmp_path: Path, home: int) -> None:
    async def go() -> list[int]:
        at_work = {media.decode: asyncio.Event(), media.speech_probabilities: asyncio.Event()}
        starts = [asyncio.Event(), asyncio.Event()]
        starts[home].set()
        room = MediaPool(2)
        room._dispatcher = Dispatcher(
            "media", [ChildProcess(index, starts[index], at_work) for index in range(2)]
        )
        room.start()
        spans = []
        async for samples, _ in room.decode("job", Upload(tmp_path / "x", "x", 1, ""), tmp_path / "pcm"):
            starts[1 - home].set()
            spans.append(
                asyncio.create_task(room.speech_probabilities("job", tmp_path / "pcm", samples - 1, 1))
            )
        found = await asyncio.gather(*spans)
        await room.stop()
        return [len(one) for one in found]

    assert asyncio.run(go()) == [1] * STEPS
