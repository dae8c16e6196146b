"""Slots whose worker has one batch ready while it decodes another."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import DeviceFailed, Fault, ProcessHung, RequeueBatch
from app.engines.window_request import WindowRequest
from tests.engines.fake_slot import FakeSlot, in_memory
from tests.event_loop import let_tasks_run
from workers.messages import DecodingOptions, Window, WindowResult
from workers.whisper import worker as whisper

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

OUT_OF_MEMORY = RuntimeError("CUDA failed with error out of memory")
DEVICE_ERROR = RuntimeError("CUDA failed with error an illegal memory access was encountered")


class BusySlot(FakeSlot):
    """Its worker decodes when the test says so, with an error for the batches of some languages."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(batches_at_once=2, **limits)
        self.errors: dict[str, Exception] = {}  # by language of a batch

    def decode_batch(self, windows: Sequence[Window]) -> list[WindowResult]:
        name = str(windows[0].decoding.language)
        if windows[0].decoding.model not in self.loaded:
            raise RuntimeError("the model is not loaded in this worker")
        self.calls.append(f"decode {name}")
        if name in self.errors:
            raise self.errors[name]
        return [WindowResult(name, (), (), None, 0, 0, 0, 1)] * len(windows)


def batch(name: str, model: str = "main", windows: int = 1) -> list[WindowRequest]:
    """Windows of one second whose result has `name` for its language."""
    return [in_memory(Window(bytes(32_000), ((0, 16_000),), DecodingOptions(model, language=name)))] * windows


def names(answers: Sequence[whisper.Answer]) -> list[str]:
    return [type(each).__name__ if isinstance(each, OSError) else each.language for each in answers]


@pytest.fixture
async def slot() -> BusySlot:
    slot = BusySlot()
    await slot.start()
    return slot


async def outcomes(slot: BusySlot, *batches: list[WindowRequest]) -> list[object]:
    """What comes of batches that run at once: the languages of each, or its error."""
    answers = await asyncio.gather(*map(slot.run, batches), return_exceptions=True)
    return [answer if isinstance(answer, BaseException) else names(answer) for answer in answers]


async def test_an_error_of_a_batch_costs_the_others_nothing(slot: BusySlot) -> None:
    slot.errors |= {
        "b": RuntimeError("cannot be done"),
        "c": DEVICE_ERROR,
        "d": ProcessHung("no answer", fault=Fault.OWN),
    }
    found = await outcomes(slot, *(batch(name) for name in "abcde"))
    assert (found[0], found[4]) == (["a"], ["e"])
    assert [type(error) for error in found[1:4]] == [RuntimeError, DeviceFailed, DeviceFailed]


async def test_a_model_is_loaded_once_for_batches_that_come_together(slot: BusySlot) -> None:
    assert await outcomes(slot, batch("a", "a"), batch("b", "a")) == [["a"], ["b"]]
    assert slot.calls.count("load a") == 1


async def test_memory_that_is_short_requeues_one_batch(slot: BusySlot) -> None:
    slot.errors["a"] = OUT_OF_MEMORY
    short, fine = await outcomes(slot, batch("a", windows=8), batch("b"))
    assert isinstance(short, RequeueBatch)
    assert fine == ["b"]
    assert slot.batch_limit() == 4


async def test_models_change_only_while_the_worker_has_no_batch(slot: BusySlot) -> None:
    """The one that is unloaded could be that of a batch which the worker is about to decode."""
    await slot.run(batch("a", "a"))
    slot.errors["b"] = OUT_OF_MEMORY
    slot.unblocked.clear()
    running = asyncio.create_task(outcomes(slot, batch("b", windows=8), batch("c", "a"), batch("d", "b")))
    await let_tasks_run()
    slot.calls.clear()
    slot.unblocked.set()
    short, *others = await running
    assert isinstance(short, RequeueBatch)
    assert others == [["c"], ["d"]]
    assert slot.calls.index("decode c") < slot.calls.index("unload a")


async def test_one_shortage_is_one_step_to_a_smaller_compute_type() -> None:
    slot = BusySlot(compute_type="float32")
    await slot.start()
    slot.errors |= {"a": OUT_OF_MEMORY, "b": OUT_OF_MEMORY}
    found = await outcomes(slot, batch("a"), batch("b"))
    assert [type(error) for error in found] == [RequeueBatch, RequeueBatch]
    await slot.close()
    await slot.start()
    assert slot.row()["compute_type"] == "int8_float32"


async def test_a_model_with_a_batch_in_flight_is_not_idle() -> None:
    slot = BusySlot(idle_s=0.05)
    await slot.start()
    await slot.run(batch("a", "a"))
    slot.unblocked.clear()
    running = asyncio.create_task(slot.run(batch("b", "a")))
    await asyncio.sleep(0.15)
    assert "unload a" not in slot.calls
    slot.unblocked.set()
    await running
    await asyncio.sleep(0.15)
    assert slot.calls[-1] == "unload a"


async def test_audio_that_is_gone_is_an_error_of_its_own_window(slot: BusySlot, tmp_path: Path) -> None:
    gone = WindowRequest(tmp_path / "gone", 0, 16_000, ((0, 16_000),), DecodingOptions("main", language="g"))
    assert names(await slot.run([*batch("b"), gone, *batch("b")])) == ["b", "FileNotFoundError", "b"]
    assert names(await slot.run([gone])) == ["FileNotFoundError"]


async def test_a_worker_that_hangs_is_replaced() -> None:
    slot = BusySlot(batch_timeout_s=0.1)
    await slot.start()
    slot.unblocked.clear()
    with pytest.raises(DeviceFailed, match=r"did not answer within 0 s"):
        await slot.run(batch("a"))
    assert slot.needs_restart.is_set()
