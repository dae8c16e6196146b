"""The dispatcher, with slots that do as they are told."""

import asyncio
from collections.abc import Sequence

import pytest

from app.errors import NotReady, ProcessCrashed, RequeueBatch, TaskCrashes
from app.scheduling.dispatcher import MAX_CRASHES, Dispatcher
from tests.scheduling.fake_slots import FakeSlot, settle

pytestmark = pytest.mark.timeout(20)


async def run(slots: list[FakeSlot], *payloads: str, batch_limit: int = 4, key: str = "k") -> list[object]:
    """What comes of the payloads, each a job of its own, all submitted at once."""
    for slot in slots:
        slot.batch_limit = batch_limit
    dispatcher = Dispatcher[str, str]("worker", slots)
    dispatcher.start()
    try:
        answers = await asyncio.gather(
            *(dispatcher.submit(f"job{i}", payload, key=key) for i, payload in enumerate(payloads)),
            return_exceptions=True,
        )
    finally:
        await dispatcher.stop()
    return [answer if isinstance(answer, BaseException) else answer[0] for answer in answers]


def test_everybody_gets_an_answer() -> None:
    slots = [FakeSlot(0), FakeSlot(1)]
    assert asyncio.run(run(slots, *"abcdefg")) == list("ABCDEFG")
    assert sum(slot.status.batches for slot in slots) == sum(len(slot.batches) for slot in slots)


def test_the_task_that_kills_is_found_and_the_others_are_answered() -> None:
    slots = [FakeSlot(0), FakeSlot(1)]
    answers = asyncio.run(run(slots, "a", "die", "b", "c", batch_limit=8))
    assert isinstance(answers[1], TaskCrashes)
    assert [answers[i] for i in (0, 2, 3)] == ["A", "B", "C"]
    alone = [batch for slot in slots for batch in slot.batches if batch == ["die"]]
    assert len(alone) == MAX_CRASHES
    assert sum(slot.status.restarts for slot in slots) >= MAX_CRASHES


def test_an_error_of_the_work_is_its_own() -> None:
    slot = FakeSlot(0)
    answers = asyncio.run(run([slot], "a", "raise", "b", batch_limit=8))
    assert isinstance(answers[1], ValueError)
    assert [answers[0], answers[2]] == ["A", "B"]
    assert slot.status.restarts == 0


def test_a_slot_that_dies_idle_is_brought_up_again() -> None:
    async def check() -> None:
        slot = FakeSlot(0)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await settle()
        slot.needs_restart.set()
        await settle()
        assert (slot.starts, slot.status.restarts, slot.status.state) == (2, 1, "idle")
        assert await dispatcher.submit("job", "a") == ("A", 0, 0)
        await dispatcher.stop()

    asyncio.run(check())


def test_one_slot_that_does_not_start_leaves_the_work_to_the_others() -> None:
    slots = [FakeSlot(0, fails=99), FakeSlot(1)]
    assert asyncio.run(run(slots, *"abc")) == ["A", "B", "C"]
    assert slots[0].status.state == "failed"
    assert slots[0].status.error == "no such model"


def test_no_slot_at_all_is_said_at_once() -> None:
    async def check() -> None:
        dispatcher = Dispatcher[str, str]("worker", [FakeSlot(0, fails=99), FakeSlot(1, fails=99)])
        dispatcher.start()
        for _ in range(2):  # one that was waiting, one that comes later
            with pytest.raises(NotReady, match="no such model"):
                await dispatcher.submit("job", "a")
        await dispatcher.stop()

    asyncio.run(check())


def test_a_slot_that_starts_late_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.scheduling.dispatcher._FIRST_BACKOFF_S", 0.01)

    async def check() -> None:
        slot = FakeSlot(0, fails=2)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await asyncio.sleep(0.2)
        assert slot.starts == 3
        assert (slot.status.state, slot.status.error) == ("idle", None)
        assert await dispatcher.submit("job", "a") == ("A", 0, 0)
        await dispatcher.stop()

    asyncio.run(check())


def test_cancelling_takes_back_what_waits_and_nothing_else() -> None:
    async def check() -> None:
        slot = FakeSlot(0)
        slot.open.clear()
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await settle()
        gone = [asyncio.create_task(dispatcher.submit("gone", payload)) for payload in ("in hand", "x", "y")]
        stays = asyncio.create_task(dispatcher.submit("stays", "b"))
        await settle()
        for task in gone[:1]:
            task.cancel()
        dispatcher.cancel("gone")
        slot.open.set()
        assert await stays == ("B", 0, 0)
        assert [type(e) for e in await asyncio.gather(*gone, return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 3
        assert slot.batches == [["in hand"], ["b"]]
        await dispatcher.stop()

    asyncio.run(check())


def test_a_task_goes_to_its_home() -> None:
    async def check() -> None:
        slots = [FakeSlot(0), FakeSlot(1)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        assert [await dispatcher.submit("job", "a", home=1) for _ in range(3)] == [("A", 1, 0)] * 3
        await dispatcher.stop()

    asyncio.run(check())


def test_work_that_nobody_wants_any_more_is_not_tried_again() -> None:
    async def check() -> None:
        slot = FakeSlot(0)
        slot.open.clear()
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await settle()
        gone = asyncio.create_task(dispatcher.submit("gone", "die"))
        await settle()
        dispatcher.cancel("gone")
        slot.open.set()
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert slot.batches == [["die"]]
        await dispatcher.stop()

    asyncio.run(check())


def test_a_home_that_lost_its_process_holds_nobody_up() -> None:
    async def check() -> None:
        slots = [FakeSlot(0), FakeSlot(1)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        slots[0].fails = 99
        slots[0].needs_restart.set()
        await settle()
        assert await dispatcher.submit("job", "a", home=0) == ("A", 1, 0)
        await dispatcher.stop()

    asyncio.run(check())


def test_a_home_that_dies_just_then_holds_nobody_up() -> None:
    class Gone(FakeSlot):
        async def start(self) -> None:
            await super().start()
            if self.starts > 1:
                await asyncio.Event().wait()

    async def check() -> None:
        slots = [FakeSlot(0), Gone(1)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        task = asyncio.create_task(dispatcher.submit("job", "a", home=1))
        slots[1].needs_restart.set()
        assert await task == ("A", 0, 0)
        await dispatcher.stop()

    asyncio.run(check())


def test_draining_ends_what_is_in_hand_and_begins_nothing() -> None:
    async def check() -> None:
        slots = [FakeSlot(0), FakeSlot(1, batch_limit=2)]
        for slot in slots:
            slot.open.clear()
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        tasks = [asyncio.create_task(dispatcher.submit("job", p)) for p in ("a", "b", "c", "die", "d")]
        await settle()
        in_hand = [list(slot.batches) for slot in slots]
        draining = asyncio.create_task(dispatcher.drain(10))
        slots[0].open.set()
        await settle()
        assert not draining.done()
        slots[1].open.set()
        await draining
        assert [slot.batches for slot in slots] == in_hand
        begun = [payload for [batch] in in_hand for payload in batch]
        done = [task.result().result for task in tasks if task.done()]
        assert done == [payload.upper() for payload in begun if payload != "die"]
        await settle()
        tasks.append(asyncio.create_task(dispatcher.submit("job", "late")))
        await settle()
        assert [slot.batches for slot in slots] == in_hand
        dispatcher.cancel("job")
        await asyncio.gather(*tasks, return_exceptions=True)
        await dispatcher.stop()

    asyncio.run(check())


def test_draining_waits_no_longer_than_it_may() -> None:
    async def check() -> None:
        slot = FakeSlot(0)
        slot.open.clear()
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await settle()
        task = asyncio.create_task(dispatcher.submit("job", "a"))
        await settle()
        await dispatcher.drain(0.01)
        assert not task.done()
        task.cancel()
        await dispatcher.stop()

    asyncio.run(check())


def test_an_answer_tells_how_many_processes_died_before_it() -> None:
    class Recovering(FakeSlot):
        async def run(self, payloads: Sequence[str]) -> list[str]:
            if len(self.batches) < 2:
                self.batches.append(list(payloads))
                raise ProcessCrashed("killed")
            return await super().run(payloads)

    async def check() -> None:
        dispatcher = Dispatcher[str, str]("worker", [Recovering(0)])
        dispatcher.start()
        assert await dispatcher.submit("job", "a") == ("A", 0, 2)
        await dispatcher.stop()

    asyncio.run(check())


def test_a_slot_that_dies_idle_is_noticed_while_it_waits() -> None:
    async def check() -> None:
        slots = [FakeSlot(index) for index in range(2)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        assert await dispatcher.submit("job", "a") == ("A", 0, 0)
        slots[1].needs_restart.set()
        await settle()
        assert [slot.starts for slot in slots] == [1, 2]
        await dispatcher.stop()

    asyncio.run(check())


def test_deaths_are_told_as_they_are_counted() -> None:
    async def check() -> None:
        told: list[int] = []
        slot = FakeSlot(0, batch_limit=4)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        innocent = asyncio.create_task(dispatcher.submit("job", "a", on_crash=lambda deaths: told.append(-1)))
        guilty = asyncio.create_task(dispatcher.submit("job", "die", on_crash=told.append))
        await settle()
        dispatcher.start()
        with pytest.raises(TaskCrashes):
            await guilty
        assert await innocent == ("A", 0, 0)
        await dispatcher.stop()
        # The first process died with both in hand: that is held against neither.
        assert slot.batches[0] == ["a", "die"]
        assert told == [1, 2, 3]

    asyncio.run(check())


def test_deaths_of_an_earlier_run_count() -> None:
    async def check() -> None:
        told: list[int] = []
        slot = FakeSlot(0, batch_limit=4)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        suspect = asyncio.create_task(
            dispatcher.submit("job", "die", deaths=MAX_CRASHES - 1, on_crash=told.append)
        )
        other = asyncio.create_task(dispatcher.submit("job", "a"))
        await settle()
        dispatcher.start()
        with pytest.raises(TaskCrashes, match="3 processes crashed on it"):
            await suspect
        assert await other == ("A", 0, 0)
        assert told == [MAX_CRASHES]
        assert slot.batches == [["die"], ["a"]]  # a suspect shares no batch
        with pytest.raises(TaskCrashes):
            await dispatcher.submit("job", "die", deaths=MAX_CRASHES)
        assert len(slot.batches) == 2
        await dispatcher.stop()

    asyncio.run(check())


def test_a_count_that_cannot_be_kept_stops_nobody() -> None:
    def fail(deaths: int) -> None:
        raise OSError("disk full")

    async def check() -> None:
        dispatcher = Dispatcher[str, str]("worker", [FakeSlot(0)])
        dispatcher.start()
        with pytest.raises(TaskCrashes):
            await dispatcher.submit("job", "die", on_crash=fail)
        assert await dispatcher.submit("job", "a") == ("A", 0, 0)
        await dispatcher.stop()

    asyncio.run(check())


class ShortSlot(FakeSlot):
    """Has room for `room` payloads, and asks for a new process where it has none for a single one."""

    def __init__(self, index: int, room: int) -> None:
        super().__init__(index, batch_limit=8)
        self.room = room

    async def start(self) -> None:
        await super().start()
        if self.starts > 1:
            self.room = max(self.room, 1)

    async def run(self, payloads: Sequence[str]) -> list[str]:
        answers = await super().run(payloads)
        if len(payloads) > self.room:
            self.batch_limit = max(1, len(payloads) // 2)
            if len(payloads) == 1:
                self.needs_restart.set()
            raise RequeueBatch("out of memory")
        return answers


def test_a_batch_that_is_given_back_is_done_in_smaller_ones() -> None:
    async def check() -> None:
        told: list[int] = []
        slot = ShortSlot(0, room=2)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        tasks = [
            asyncio.create_task(dispatcher.submit(f"job{p}", p, on_crash=told.append)) for p in "abcdefgh"
        ]
        await settle()
        dispatcher.start()
        assert [done.result for done in await asyncio.gather(*tasks)] == list("ABCDEFGH")
        await dispatcher.stop()
        assert slot.batches == [
            list("abcdefgh"),
            list("abcd"),
            list("ab"),
            list("cd"),
            list("ef"),
            list("gh"),
        ]
        assert (slot.status.batches, slot.status.restarts, slot.starts, told) == (4, 0, 1, [])

    asyncio.run(check())


def test_a_slot_that_asks_for_a_new_process_gets_one_and_nobody_is_blamed() -> None:
    async def check() -> None:
        told: list[int] = []
        slot = ShortSlot(0, room=0)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        tasks = [asyncio.create_task(dispatcher.submit("job", p, on_crash=told.append)) for p in "abc"]
        await settle()
        dispatcher.start()
        assert [tuple(done) for done in await asyncio.gather(*tasks)] == [
            ("A", 0, 0),
            ("B", 0, 0),
            ("C", 0, 0),
        ]
        await dispatcher.stop()
        assert slot.batches == [list("abc"), ["a"], ["a"], ["b"], ["c"]]
        assert (slot.status.restarts, slot.starts, told) == (1, 2, [])

    asyncio.run(check())


def test_what_is_given_back_for_a_job_that_was_cancelled_is_dropped() -> None:
    async def check() -> None:
        slot = ShortSlot(0, room=1)
        slot.open.clear()
        dispatcher = Dispatcher[str, str]("worker", [slot])
        gone = asyncio.create_task(dispatcher.submit("gone", "a"))
        stays = asyncio.create_task(dispatcher.submit("stays", "b"))
        await settle()
        dispatcher.start()
        await settle()
        dispatcher.cancel("gone")
        slot.open.set()
        assert await stays == ("B", 0, 0)
        with pytest.raises(asyncio.CancelledError):
            await gone
        assert slot.batches == [["a", "b"], ["b"]]
        await dispatcher.stop()

    asyncio.run(check())


def test_a_task_that_is_put_back_when_no_slot_comes_up_any_more_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.scheduling.dispatcher._FIRST_BACKOFF_S", 0.01)

    async def check() -> None:
        slots = [FakeSlot(0, fails=99), FakeSlot(1)]
        dispatcher = Dispatcher[str, str]("worker", slots)
        dispatcher.start()
        await settle()
        assert [slot.status.state for slot in slots] == ["failed", "idle"]
        slots[1].fails = 3  # once its process has died
        slots[1].up.clear()
        with pytest.raises(NotReady, match="no such model"):
            await dispatcher.submit("job", "die")
        assert slots[1].batches == [["die"]]
        await slots[1].up.wait()
        await settle()
        assert await dispatcher.submit("job", "a") == ("A", 1, 0)
        await dispatcher.stop()

    asyncio.run(check())


def test_a_slot_that_fails_for_days_is_still_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.scheduling.dispatcher._FIRST_BACKOFF_S", 1e-9)
    monkeypatch.setattr("app.scheduling.dispatcher._MAX_BACKOFF_S", 1e-9)

    async def check() -> None:
        slot = FakeSlot(0, fails=2000)
        dispatcher = Dispatcher[str, str]("worker", [slot])
        dispatcher.start()
        await slot.up.wait()
        await settle()
        assert await dispatcher.submit("job", "a") == ("A", 0, 0)
        await dispatcher.stop()

    asyncio.run(check())


def test_an_answer_too_few_is_a_failure_and_not_the_end_of_the_slot() -> None:
    class Forgetful(FakeSlot):
        async def run(self, payloads: Sequence[str]) -> list[str]:
            return (await super().run(payloads))[1:]

    async def check() -> None:
        dispatcher = Dispatcher[str, str]("worker", [Forgetful(0)])
        dispatcher.start()
        for _ in range(2):
            with pytest.raises(ValueError, match="zip"):
                await dispatcher.submit("job", "a")
        await dispatcher.stop()

    asyncio.run(check())
