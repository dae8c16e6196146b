"""Slots that hand over a batch while their worker decodes the one before."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.engines.window_request import WindowInMemory, WindowRequest
from app.errors import DeviceFailed, ProcessHung, ProcessLost, RequeueBatch
from tests.engines.fake_slot import FakeSlot
from workers.messages import AnyWindow, DecodingOptions, Window, WindowResult
from workers.whisper import worker as whisper

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

OUT_OF_MEMORY = RuntimeError("CUDA failed with error out of memory")
DEVICE_ERROR = RuntimeError("CUDA failed with error an illegal memory access was encountered")


class ExchangingSlot(FakeSlot):
    """Its worker answers as `worker.exchange` does, with an error for the batches of some languages."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(overlap=True, **limits)
        self.errors: dict[str, Exception] = {}  # by language of a batch
        self.failing_exchanges: list[Exception] = []
        self.worker: list[Sequence[AnyWindow]] = []  # what it has

    async def _call(self, function: Callable[..., Any], *args: Any, deadline_s: float) -> Any:
        if function not in (whisper.hand_over, whisper.exchange):
            return await super()._call(function, *args, deadline_s=deadline_s)
        self.deadlines_s.append(deadline_s)
        if self.failing_exchanges:
            raise self.failing_exchanges.pop()
        if args[0] is not None:
            self.worker.append(args[0])
        if function is whisper.hand_over:
            return None
        try:
            return self.answer(self.worker.pop(0), "exchange")
        except RuntimeError as error:
            return error

    def decode_batch(self, windows: Sequence[Window], call: str = "decode") -> list[WindowResult]:
        name = str(windows[0].decoding.language)
        self.calls.append(f"{call} {name}")
        if name in self.errors:
            raise self.errors[name]
        return [WindowResult(name, (), (), None, 0, 0, 0, 1)] * len(windows)


def batch(name: str, model: str = "main", windows: int = 1) -> list[WindowInMemory]:
    """Windows of one second whose result has `name` for its language."""
    return [
        WindowInMemory(Window(bytes(32_000), ((0, 16_000),), DecodingOptions(model, language=name)))
    ] * windows


def names(answers: list[whisper.Answer] | None) -> list[str] | None:
    if answers is None:
        return None
    return [type(each).__name__ if isinstance(each, OSError) else each.language for each in answers]


@pytest.fixture
async def slot() -> ExchangingSlot:
    slot = ExchangingSlot()
    await slot.start()
    return slot


async def test_an_exchange_answers_the_batch_before(slot: ExchangingSlot) -> None:
    await slot.hand_over(batch("a", windows=2))
    assert names(await slot.exchange(batch("b"))) == ["a", "a"]
    assert names(await slot.exchange(None)) == ["b"]
    assert slot.overlaps
    assert slot.calls == ["spawn", "load main", "exchange a", "exchange b"]


async def test_batches_are_answered_in_order(slot: ExchangingSlot) -> None:
    slot.errors |= {"b": RuntimeError("cannot be done"), "c": OUT_OF_MEMORY}
    await slot.hand_over(batch("a"))
    await slot.hand_over(batch("b"))
    assert names(await slot.exchange(batch("c", windows=2))) == ["a"]
    with pytest.raises(RuntimeError, match="cannot be done"):
        await slot.exchange(None)
    with pytest.raises(RequeueBatch):
        await slot.exchange(batch("d"))
    assert names(await slot.exchange(None)) == ["d"]


async def test_a_batch_between_two_whose_model_is_not_loaded_keeps_its_place(slot: ExchangingSlot) -> None:
    await slot.hand_over(batch("a"))
    await slot.hand_over(batch("b", "a"))
    assert names(await slot.exchange(batch("c"))) == ["a"]
    assert slot.worker == [], "it runs nothing while it loads a model"
    assert names(await slot.exchange(None)) == ["b"]
    assert len(slot.worker) == 1
    assert names(await slot.exchange(None)) == ["c"]
    assert slot.calls[2:] == ["exchange a", "load a", "decode b", "exchange c"]


async def test_a_worker_that_may_have_a_batch_gets_no_more(slot: ExchangingSlot) -> None:
    """It would answer that batch instead of the next one."""
    await slot.hand_over(batch("a", "a"))
    await slot.hand_over(batch("b"))
    await slot.hand_over(batch("c"))
    slot.failing_exchanges = [MemoryError()]
    answers = [names(await slot.exchange(None)) for _ in "abc"]
    assert answers == [["a"], ["b"], ["c"]]
    assert slot.needs_restart.is_set()
    assert slot.calls[-2:] == ["decode b", "decode c"]


async def test_a_batch_of_a_model_that_is_not_loaded_runs_when_it_is_answered(slot: ExchangingSlot) -> None:
    await slot.hand_over(batch("a"))
    assert names(await slot.exchange(batch("b", "a"))) == ["a"]
    assert names(await slot.exchange(batch("c", "a"))) == ["b"]
    assert names(await slot.exchange(batch("d"))) == ["c"], "handed over: its model is loaded by now"
    assert names(await slot.exchange(None)) == ["d"]
    assert slot.calls == [
        "spawn",
        "load main",
        "exchange a",
        "load a",
        "decode b",
        "exchange c",
        "exchange d",
    ]


async def test_a_failed_handing_over_costs_no_results(slot: ExchangingSlot) -> None:
    await slot.hand_over(batch("a", "a"))  # its model is not loaded: it runs when it is answered
    slot.failing_exchanges = [ProcessHung("no answer")]
    assert names(await slot.exchange(batch("b", "a"))) == ["a"]
    assert names(await slot.exchange(None)) == ["b"]
    assert slot.calls[-1] == "decode b"


async def test_memory_that_is_short_requeues_one_batch(slot: ExchangingSlot) -> None:
    slot.errors["a"] = OUT_OF_MEMORY
    await slot.hand_over(batch("a", windows=8))
    with pytest.raises(RequeueBatch):
        await slot.exchange(batch("b"))
    assert slot.batch_limit() == 4
    assert names(await slot.exchange(None)) == ["b"], "the following one is not lost"


async def test_the_other_models_are_unloaded_before_batches_become_smaller(slot: ExchangingSlot) -> None:
    await slot.hand_over(batch("a", "a"))
    await slot.exchange(None)
    slot.errors["b"] = OUT_OF_MEMORY
    await slot.hand_over(batch("b", windows=8))
    with pytest.raises(RequeueBatch, match="beside other models"):
        await slot.exchange(None)
    assert (slot.calls[-1], slot.batch_limit()) == ("unload a", 8)


async def test_a_device_error_and_a_hang_are_the_devices(slot: ExchangingSlot) -> None:
    slot.errors |= {"a": DEVICE_ERROR, "b": ProcessHung("no answer")}
    for name in ("a", "b"):
        await slot.hand_over(batch(name))
        with pytest.raises(DeviceFailed):
            await slot.exchange(None)


async def test_a_batch_that_was_taken_over_ends_with_the_process(slot: ExchangingSlot) -> None:
    await slot.hand_over(batch("a"))
    await slot.close()
    await slot.start()
    slot.worker.clear()  # as in a new process
    await slot.hand_over(batch("b"))
    assert names(await slot.exchange(None)) == ["b"]


async def test_audio_that_is_gone_is_an_error_of_its_own_window(slot: ExchangingSlot, tmp_path: Path) -> None:
    gone = WindowRequest(tmp_path / "gone", 0, 16_000, ((0, 16_000),), DecodingOptions("main", language="g"))
    await slot.hand_over(batch("a"))
    assert names(await slot.exchange([*batch("b"), gone, *batch("b")])) == ["a"]
    assert names(await slot.exchange([gone])) == ["b", "FileNotFoundError", "b"]
    assert names(await slot.exchange(batch("c"))) == ["FileNotFoundError"]
    assert names(await slot.run([gone, *batch("d")])) == ["FileNotFoundError", "d"]


async def test_a_batch_that_cannot_be_had_costs_no_other(slot: ExchangingSlot) -> None:
    """Whatever the reason is, as in a server without memory: it is run when it is answered."""

    class Unreadable(WindowInMemory):
        def for_worker(self) -> Window:
            raise errors.pop()

    errors = [MemoryError("run"), RuntimeError("can't start new thread")]
    unreadable = [Unreadable(batch("u")[0].window)]
    await slot.hand_over(unreadable)  # to an idle worker
    with pytest.raises(MemoryError, match="run"):
        await slot.exchange(batch("a"))
    errors.append(MemoryError("ahead"))
    assert names(await slot.exchange(unreadable)) == ["a"]
    errors.append(MemoryError("run"))
    with pytest.raises(MemoryError, match="run"):
        await slot.exchange(batch("b"))
    assert names(await slot.exchange(None)) == ["b"]


async def test_a_batch_that_cannot_be_sent_ends_the_process(slot: ExchangingSlot) -> None:
    """It is not known then which batch the worker has, and results must not be those of another one."""
    await slot.hand_over(batch("a"))
    slot.failing_exchanges = [MemoryError()]
    with pytest.raises(ProcessLost, match="a batch was not handed over"):
        await slot.exchange(batch("b"))


async def test_one_shortage_is_one_step_to_a_smaller_compute_type() -> None:
    slot = ExchangingSlot(compute_type="float32")
    await slot.start()
    slot.errors |= {"a": OUT_OF_MEMORY, "b": OUT_OF_MEMORY}
    await slot.hand_over(batch("a"))
    for following in (batch("b"), None):
        with pytest.raises(RequeueBatch):
            await slot.exchange(following)
    await slot.close()
    await slot.start()
    assert slot.row()["compute_type"] == "int8_float32"


async def test_a_model_with_a_batch_in_flight_is_not_idle() -> None:
    slot = ExchangingSlot(idle_s=0.05)
    await slot.start()
    await slot.hand_over(batch("a", "a"))
    for name in ("b", "c"):  # the first one loads the model
        await slot.exchange(batch(name, "a"))
    await asyncio.sleep(0.15)
    assert "unload a" not in slot.calls
    await slot.exchange(None)
    await asyncio.sleep(0.15)
    assert slot.calls[-1] == "unload a"


async def test_the_deadline_is_that_of_the_longer_batch() -> None:
    slot = ExchangingSlot()
    await slot.start()
    await slot.hand_over(batch("a"), 10)
    await slot.exchange(batch("b"), 2)
    await slot.exchange(None)
    assert slot.deadlines_s == [300, 300, 100]
    fixed = ExchangingSlot(batch_timeout_s=7)
    await fixed.start()
    await fixed.hand_over(batch("a"), 10)
    assert fixed.deadlines_s == [7]
