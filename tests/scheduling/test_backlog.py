"""Which tasks share a batch, and which slot gets how many of them: seen through the dispatcher."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from app.errors import RequeueBatch
from app.scheduling.batching import BatchCost
from app.scheduling.dispatcher import Dispatcher
from bench import virtual_clock
from tests.scheduling.fake_slots import FakeSlot, settle

pytestmark = pytest.mark.timeout(20)


def test_what_is_queued_is_spread_over_all_idle_slots() -> None:
    async def check() -> None:
        slots = [FakeSlot(index, batch_limit=8) for index in range(3)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        waiting = [asyncio.create_task(dispatcher.submit("job", payload)) for payload in "abcdef"]
        await asyncio.gather(*waiting)
        await dispatcher.stop()
        assert [slot.batches for slot in slots] == [[["a", "b"]], [["c", "d"]], [["e", "f"]]]

    asyncio.run(check())


def test_a_batch_holds_what_decodes_alike_up_to_the_limit() -> None:
    async def check() -> None:
        slot = FakeSlot(0, batch_limit=3)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        tasks = [
            asyncio.create_task(dispatcher.submit(f"j{p}", p, key=p[0]))
            for p in ("a1", "b1", "a2", "a3", "a4")
        ]
        await settle()
        dispatcher.start()
        await asyncio.gather(*tasks)
        await dispatcher.stop()
        assert slot.batches == [["a1", "a2", "a3"], ["b1"], ["a4"]]

    asyncio.run(check())


class TimedSlot(FakeSlot):
    """Takes as long as a batch is expected to; payloads are "job:tokens"."""

    async def run(self, payloads: Sequence[str]) -> list[str]:
        self.batches.append(list(payloads))
        await asyncio.sleep(BatchCost().seconds([length_of(payload) for payload in payloads]))
        return list(payloads)


def length_of(payload: str) -> float:
    return float(payload.partition(":")[2])


async def submit_all(dispatcher: Dispatcher[str, str], payloads: Sequence[str]) -> None:
    await asyncio.gather(
        *(
            dispatcher.submit(payload.partition(":")[0], payload, size=length_of(payload))
            for payload in payloads
        )
    )


def test_what_is_left_is_shared_with_the_slots_that_are_still_busy() -> None:
    """As long as nobody looked at them, a free slot took all that it could."""

    async def check() -> list[list[int]]:
        slots = [TimedSlot(index, batch_limit=8) for index in range(4)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        await submit_all(dispatcher, ["film:50"] * 40)
        await dispatcher.stop()
        return [[len(batch) for batch in slot.batches] for slot in slots]

    for sizes in virtual_clock.run(check()):
        assert (len(sizes), sum(sizes)) == (2, 10)


def test_clips_of_like_length_share_a_batch() -> None:
    async def check() -> list[list[str]]:
        slot = TimedSlot(0, batch_limit=4)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await settle()
        await submit_all(dispatcher, ["film:90", "film:10"] * 4)
        await dispatcher.stop()
        return slot.batches

    assert virtual_clock.run(check()) == [["film:90"] * 4, ["film:10"] * 4]


def test_jobs_keep_their_turns_and_give_what_is_alike() -> None:
    async def check() -> list[list[str]]:
        slot = TimedSlot(0, batch_limit=4)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await settle()
        await submit_all(dispatcher, ["a:90", "a:10", "a:90", "b:10", "b:10", "b:90", "b:90", "c:1"])
        await dispatcher.stop()
        return slot.batches

    assert virtual_clock.run(check())[0] == ["a:90", "b:90", "c:1", "a:90"]


def test_the_first_in_line_is_not_passed_over_for_ever() -> None:
    """However many longer clips keep coming, just as fast as they can be heard."""

    async def check() -> float:
        dispatcher = Dispatcher[str, str]("worker", [TimedSlot(0, batch_limit=4)])
        dispatcher.start()
        await settle()
        long: list[asyncio.Task[object]] = []

        async def keep_coming() -> None:
            for number in itertools.count():
                long.append(asyncio.create_task(dispatcher.submit("film", "film:99", size=99)))
                await asyncio.sleep(0 if number < 8 else 0.102)

        flood = asyncio.create_task(keep_coming())
        await asyncio.sleep(2)
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(100):
            await dispatcher.submit("film", "film:1", size=1)
        waited = asyncio.get_running_loop().time() - began
        flood.cancel()
        dispatcher.cancel("film")
        await asyncio.gather(*long, return_exceptions=True)
        await dispatcher.stop()
        return waited

    assert virtual_clock.run(check()) < 5


def film(clips: int, slots: Sequence[FakeSlot]) -> float:
    """The time in which so many clips of 50 tokens are heard."""

    async def check() -> float:
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        await submit_all(dispatcher, ["film:50"] * clips)
        await dispatcher.stop()
        return asyncio.get_running_loop().time()

    return virtual_clock.run(check())


@pytest.mark.parametrize("smaller", [1, 2, 5])
@pytest.mark.parametrize("jobs", [1, 2])
def test_each_slot_keeps_its_own_limit(smaller: int, jobs: int) -> None:
    async def check() -> None:
        slots = [TimedSlot(0, batch_limit=8), TimedSlot(1, batch_limit=smaller)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        await submit_all(dispatcher, [f"film{number % jobs}:{number % 100}" for number in range(200)])
        await dispatcher.stop()
        assert [max(len(batch) for batch in slot.batches) for slot in slots] == [8, smaller]

    virtual_clock.run(check())


@pytest.mark.parametrize("smaller", [1, 2])
def test_slots_of_different_limits_come_to_their_end_together(smaller: int) -> None:
    slots = [TimedSlot(0, batch_limit=8), TimedSlot(1, batch_limit=smaller)]
    per_second = sum(slot.batch_limit / BatchCost().seconds([50] * slot.batch_limit) for slot in slots)
    assert film(60, slots) < 60 / per_second * 1.1


class ShrinkingSlot(TimedSlot):
    """Finds out in no time that there is room for no more than `room` clips at once."""

    def __init__(self, index: int, room: int) -> None:
        super().__init__(index, batch_limit=8)
        self.room = room

    async def run(self, payloads: Sequence[str]) -> list[str]:
        if len(payloads) > self.room:
            self.batch_limit = max(1, len(payloads) // 2)
            await asyncio.sleep(0.001)
            raise RequeueBatch("out of memory")
        return await super().run(payloads)


@pytest.mark.parametrize("room", [1, 2])
def test_a_limit_that_shrinks_meanwhile_is_kept_from_then_on(room: int) -> None:
    slots = [TimedSlot(0, batch_limit=8), ShrinkingSlot(1, room)]
    per_second = sum(limit / BatchCost().seconds([50] * limit) for limit in (8, room))
    assert film(60, slots) < 60 / per_second * 1.1
    assert max(len(batch) for batch in slots[1].batches) == room
    assert sum(len(batch) for slot in slots for batch in slot.batches) == 60


def test_what_was_given_back_says_nothing_about_a_pace() -> None:
    """A slot that was thought to be as fast as it gave a batch back got nearly all that was left."""

    class Hasty(TimedSlot):
        gave_back = False

        async def run(self, payloads: Sequence[str]) -> list[str]:
            if not self.gave_back:
                self.gave_back = True
                await asyncio.sleep(0.001)
                raise RequeueBatch("not now")
            return await super().run(payloads)

    slots = [TimedSlot(0, batch_limit=8), Hasty(1, batch_limit=8)]
    film(20, slots)
    assert [sum(len(batch) for batch in slot.batches) for slot in slots] == [10, 10]


def test_a_task_that_processes_died_of_shares_no_batch() -> None:
    async def check() -> None:
        slot = TimedSlot(0, batch_limit=4)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        tasks = [asyncio.create_task(dispatcher.submit("film", "film:50", size=50)) for _ in range(3)]
        tasks.append(asyncio.create_task(dispatcher.submit("film", "suspect:50", size=50, deaths=1)))
        tasks.append(asyncio.create_task(dispatcher.submit("film", "film:50", size=50)))
        await settle()
        dispatcher.start()
        await asyncio.gather(*tasks)
        await dispatcher.stop()
        assert ["suspect:50"] in slot.batches
        assert sum(len(batch) for batch in slot.batches) == 5

    virtual_clock.run(check())
