"""Slots whose device fails, and errors that may come from a slot or from a task."""

import asyncio
from collections.abc import Sequence

import pytest

from app.common.errors import NotReady
from app.pool.dispatcher import Dispatcher
from app.pool.failure_policy import MAX_CRASHES
from tests.event_loop import until
from tests.pool.fake_slots import FakeSlot, NewDispatcher, SickSlot

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


@pytest.fixture(autouse=True)
def short_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 0.01)
    monkeypatch.setattr("app.pool.failure_policy._MAX_BACKOFF_S", 0.05)


async def submit_all(dispatcher: Dispatcher[str, str], payloads: Sequence[str]) -> list[str]:
    """The results of the tasks of one job."""
    answers = await asyncio.gather(*(dispatcher.submit("job", payload, key="k") for payload in payloads))
    return [answer.result for answer in answers]


async def until_state(slot: FakeSlot, state: str) -> None:
    await until(lambda: slot.status.state == state)


async def until_error(slot: FakeSlot, part: str) -> None:
    await until(lambda: part in str(slot.status.error))


class BrokenSlot(FakeSlot):
    """Raises an error for every batch that no row of known errors matches."""

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        self.batches.append(list(payloads))
        await asyncio.sleep(0)
        raise ValueError("this slot cannot do anything")


async def test_a_slot_whose_device_fails_drains_no_queue(serve: NewDispatcher) -> None:
    sick, sound = SickSlot(0, batch_limit=4), FakeSlot(1, batch_limit=4)
    dispatcher = serve(sick, sound)
    assert await submit_all(dispatcher, ["a"] * 200) == ["A"] * 200
    assert len(sick.batches) == 1
    await until_state(sick, "failed")
    assert "quarantined, since its device failed" in str(sick.status.error)
    assert "illegal memory access" in str(sick.status.error)
    assert sick.status.restarts >= 1
    assert sound.status.restarts == 0


async def test_a_quarantined_slot_serves_again_when_its_probe_succeeds(serve: NewDispatcher) -> None:
    slots = [SickSlot(0), SickSlot(1)]
    dispatcher = serve(*slots)
    with pytest.raises(NotReady, match="no worker could be started: quarantined"):
        await submit_all(dispatcher, ["a"] * 20)
    assert [slot.status.state for slot in slots] == ["failed", "failed"]
    assert sum(len(slot.batches) for slot in slots) <= 2
    with pytest.raises(NotReady, match="illegal memory access"):
        await dispatcher.submit("job", "a")
    probes = slots[1].probes
    slots[1].is_sick = False
    await until_state(slots[1], "idle")
    assert slots[1].status.error is None
    assert slots[1].probes > probes
    assert await submit_all(dispatcher, ["a"] * 20) == ["A"] * 20


async def test_cancel_ends_a_task_that_waits_for_the_verdict_on_its_devices(serve: NewDispatcher) -> None:
    class StartsOnce(SickSlot):
        async def start(self) -> None:
            await super().start()
            if self.starts > 1:
                await asyncio.Event().wait()

    slots = [StartsOnce(index) for index in range(MAX_CRASHES)]
    dispatcher = serve(*slots, FakeSlot(MAX_CRASHES, failing_starts=99))
    task = asyncio.create_task(dispatcher.submit("job", "a"))
    for slot in slots:
        await until_state(slot, "restarting")
    assert not task.done()
    dispatcher.cancel("job")
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_slot_that_raises_errors_nobody_knows_is_quarantined_as_well(serve: NewDispatcher) -> None:
    broken, sound = BrokenSlot(0), FakeSlot(1)
    dispatcher = serve(broken, sound, retries_errors=True)
    # It serves again after its probe, when all tasks may be done already.
    quarantined = asyncio.create_task(until_error(broken, "succeed on other slots"))
    assert await submit_all(dispatcher, ["a"] * 200) == ["A"] * 200
    await quarantined
    assert broken.probes >= 2
    assert len(broken.batches) < 100, "a share as large as the sound one's"


@pytest.mark.parametrize(("bound_to", "batches"), [(None, [2]), (None, [1, 1]), (0, [2, 0])])
async def test_a_task_that_raises_twice_has_failed(
    serve: NewDispatcher, bound_to: int | None, batches: list[int]
) -> None:
    """A task that is bound to a slot runs there both times."""
    pair = [FakeSlot(index, batch_limit=4) for index in range(len(batches))]
    dispatcher = serve(*pair, retries_errors=True)
    with pytest.raises(ValueError, match="cannot be done"):
        await dispatcher.submit("job", "raise", affinity=bound_to)
    assert [len(slot.batches) for slot in pair] == batches
