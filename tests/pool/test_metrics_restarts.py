"""Why a slot's process was replaced, and how long its batches took, as metrics show it."""

import asyncio
import time
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from app.common.errors import DeviceFailed, ProcessCrashed, ProcessHung
from app.pool.dispatcher import Dispatcher
from app.pool.failure_policy import restart_reason
from app.pool.tasks import Batch, RestartReason
from tests.event_loop import until
from tests.pool.fake_slots import FakeSlot, NewDispatcher, TwoBatchSlot

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


def hang_of_a_device() -> DeviceFailed:
    """What a slot raises when its worker hangs."""
    error = DeviceFailed("process 4711 did not answer")
    error.__cause__ = ProcessHung("process 4711 did not answer")
    return error


class EndingSlot(FakeSlot):
    """Its first batch ends with `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(0)
        self.error: Exception | None = error

    async def run(self, payloads: Sequence[str], expected_s: float | None) -> list[str]:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return await super().run(payloads, expected_s)


@pytest.fixture(autouse=True)
def short_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.pool.failure_policy._FIRST_BACKOFF_S", 0.01)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ProcessCrashed("process 4711 crashed"), RestartReason.CRASH),
        (DeviceFailed("an illegal memory access was encountered"), RestartReason.DEVICE),
        (ProcessHung("process 4711 did not answer"), RestartReason.HANG),
        (hang_of_a_device(), RestartReason.HANG),
    ],
)
async def test_a_process_that_fails_with_a_batch(
    serve: NewDispatcher, error: Exception, reason: RestartReason
) -> None:
    assert restart_reason(error) is reason
    slot = EndingSlot(error)
    dispatcher = serve(slot)
    assert (await dispatcher.submit("job", "a")).result == "A"
    assert slot.status.restarts_by == {reason: 1}
    assert slot.status.restarts == 1


async def test_reasons_of_processes_that_end_between_two_batches(serve: NewDispatcher) -> None:
    slot = FakeSlot(0)
    serve(slot)
    for number, ending in enumerate([None, RestartReason.MEMORY, None], start=1):
        await until(lambda: slot.status.state == "idle")
        slot.status.ending = ending
        slot.needs_restart.set()
        await until(lambda number=number: slot.status.restarts == number)  # type: ignore[misc]
    assert slot.status.restarts_by == {RestartReason.CRASH: 2, RestartReason.MEMORY: 1}


async def test_a_probe_that_fails_counts_as_the_device(new_dispatcher: NewDispatcher) -> None:
    class Sick(EndingSlot):
        async def probe(self) -> None:
            await super().probe()
            if self.probes == 1:
                raise hang_of_a_device()

    slot = Sick(DeviceFailed("an illegal memory access was encountered"))
    dispatcher = new_dispatcher(slot)
    with capture_logs() as lines:
        dispatcher.start()
        await dispatcher.submit("job", "a")
    assert slot.status.restarts_by == {RestartReason.DEVICE: 1, RestartReason.HANG: 1}
    logged = [line["reason"] for line in lines if line["event"] == "replacing the process"]
    assert sorted(logged) == ["device", "hang"]


async def test_a_fault_of_the_service_is_no_fault_of_the_process(
    serve: NewDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = FakeSlot(0)
    dispatcher = serve(slot)
    await until(lambda: slot.status.state == "idle")
    with monkeypatch.context() as patch:
        patch.setattr(dispatcher, "_next_batch", lambda *_: 1 / 0)
        slot.needs_restart.clear()
        dispatcher._served[0].wakeup.set()
        await until(lambda: slot.status.restarts == 1)
    assert slot.status.restarts_by == {RestartReason.ERROR: 1}


async def test_a_batch_takes_the_same_time_when_the_clock_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    ended: list[Batch[str, str]] = []
    slot = TwoBatchSlot(0)
    dispatcher = Dispatcher[str, str](
        "worker", [slot], on_batch=lambda slot, batch, outcome: ended.append(batch)
    )
    dispatcher.start()
    slot.unblocked.clear()
    work = [asyncio.create_task(dispatcher.submit("job", payload)) for payload in "ab"]
    await until(lambda: slot.in_flight[-1:] == [[["a"], ["b"]]])
    # The clock goes back by hours, and the event loop's own forward by a minute.
    loop = asyncio.get_running_loop()
    before = loop.time()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now)
        patch.setattr(loop, "time", lambda: before + 60)
        slot.unblocked.set()
        await asyncio.gather(*work)
        await until(lambda: len(ended) == 2)
    await dispatcher.stop()
    assert ended[0].took_s == pytest.approx(60, abs=5)
    assert ended[1].took_s == pytest.approx(0, abs=5), "its worker was busy with the first one before"
    assert ended[0].end >= ended[0].start
