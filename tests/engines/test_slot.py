"""A slot and its models, with a worker that notes its calls."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from app.common.errors import DeviceFailed, Fault, ProcessHung, RequeueBatch
from app.engines.slot import WhisperSlot
from tests.engines.fake_slot import RESULT, FakeSlot, in_memory
from workers.messages import BackendUnfit, DecodingOptions, LoadOptions, Window, WindowResult, WorkerInfo

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

S = TypeVar("S", bound=WhisperSlot)
Start = Callable[[S], Awaitable[S]]


@pytest.fixture
async def start() -> AsyncIterator[Start[Any]]:
    """Starts slots, and closes them after the test."""
    async with AsyncExitStack() as stack:

        async def start_slot(slot: WhisperSlot) -> WhisperSlot:
            stack.push_async_callback(slot.close)
            await slot.start()
            return slot

        yield start_slot


async def test_a_model_is_loaded_on_first_use_and_once(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot())
    for model in ("main", "a", "a", "main", "a"):
        await slot.transcribe(model)
    assert slot.calls == [
        "spawn",
        "load main",
        "transcribe main",
        "load a",
        "transcribe a",
        "transcribe a",
        "transcribe main",
        "transcribe a",
    ]
    assert (slot.holds("a"), slot.holds("b")) == (True, False)
    assert slot.row()["models"] == ["a", "main"]
    assert slot.row()["loads"] == 2


async def test_an_idle_model_is_unloaded_unless_it_is_the_default_one(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot(idle_s=0.05))
    await slot.transcribe("a")
    await slot.transcribe("main")
    await asyncio.sleep(0.15)
    assert slot.calls[-1] == "unload a"
    assert set(slot.loaded) == {"main"}
    await slot.transcribe("a")
    assert slot.calls[-2:] == ["load a", "transcribe a"]


async def test_a_model_in_use_is_not_idle(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot(idle_s=0.5))
    for _ in range(4):
        await slot.transcribe("a")
        await asyncio.sleep(0.2)
    assert "unload a" not in slot.calls


async def test_other_models_are_unloaded_when_memory_is_short(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot(max_models=2))
    await slot.transcribe("a")
    await slot.transcribe("b")
    assert slot.calls == [
        "spawn",
        "load main",
        "load a",
        "transcribe a",
        "unload main",
        "unload a",
        "load b",
        "transcribe b",
    ]
    await slot.transcribe("main")
    assert set(slot.loaded) == {"b", "main"}


async def test_a_start_fails_if_the_model_never_fits(start: Start[FakeSlot]) -> None:
    with pytest.raises(RuntimeError, match="out of memory"):
        await start(FakeSlot(max_models=0))


async def test_a_new_process_holds_only_the_default_model(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot())
    await slot.transcribe("a")
    await slot.close()
    await slot.start()
    assert (slot.holds("a"), slot.holds("main")) == (False, True)
    await slot.transcribe("a")
    assert slot.calls[-3:] == ["load main", "load a", "transcribe a"]


class LowMemorySlot(FakeSlot):
    """Its worker has memory for `max_windows` at once, by the compute type of their model."""

    def __init__(self, max_windows: dict[str, int], too_large: tuple[str, ...] = (), **given: Any) -> None:
        super().__init__(compute_type="float32", **given)
        self.max_windows = max_windows
        self.too_large = too_large  # compute types with which no model can be loaded

    def fits(self, compute_type: str) -> bool:
        return compute_type not in self.too_large

    def decode_batch(self, windows: list[Window]) -> list[WindowResult]:
        limit = self.max_windows.get(self.loaded[windows[0].decoding.model], 8)
        if len(windows) > limit or (len(self.loaded) > 1 and limit < 8):
            raise RuntimeError("CUDA failed with error out of memory")
        return super().decode_batch(windows)


def shown(slot: WhisperSlot) -> tuple[object, object, object]:
    row = slot.row()
    return row["batch_size"], row["compute_type"], row["restarts"]


async def test_a_batch_too_large_for_the_memory_halves_the_limit_for_a_while(
    start: Start[LowMemorySlot],
) -> None:
    slot = await start(LowMemorySlot({"float32": 2}))
    assert (shown(slot), slot.row()["error"]) == ((8, "float32", 0), None)
    for windows in (8, 4):
        with pytest.raises(RequeueBatch, match="out of memory"):
            await slot.transcribe("main", windows)
    await slot.transcribe("main", 2)
    assert shown(slot) == (2, "float32", 0)
    assert not slot.needs_restart.is_set()
    assert "batches of 2 instead of 8: CUDA failed" in str(slot.row()["error"])
    await slot.close()
    await slot.start()
    assert shown(slot)[0] == 2


class SmallSlot(FakeSlot):
    """Its worker has memory for `capacity` windows, as it says when it has loaded a model."""

    capacity: int | None = 3

    def load(self, options: LoadOptions) -> WorkerInfo:
        assert options.batch_size == 8
        return replace(super().load(options), backend="torch", batch_size=self.capacity)


async def test_batches_are_as_large_as_a_process_has_memory_for(start: Start[SmallSlot]) -> None:
    slot = SmallSlot()
    assert (slot.row()["backend"], slot.row()["batch_size"]) == ("ctranslate2", 8)  # of the options
    await start(slot)
    assert (slot.row()["backend"], slot.row()["batch_size"]) == ("torch", 3)
    assert [slot.batch_limit(beams) for beams in (1, 5, 10)] == [3, 3, 1]
    slot.capacity = None
    await slot.close()
    await slot.start()
    assert slot.batch_limit() == 8


class TorchSlot(FakeSlot):
    """Torch is unfit for its device, or has no memory there for some models."""

    fault: Exception = BackendUnfit("the demo model has another text than it should")
    faulty = ("main",)

    def load(self, options: LoadOptions) -> WorkerInfo:
        if options.backend == "torch" and options.model in self.faulty:
            raise self.fault
        return replace(super().load(options), backend=options.backend)

    def _load_options(self, model: str) -> LoadOptions:
        options = self._catalogue.options[model]
        self._catalogue.options[model] = replace(options, backend="torch", compute_type="float32")
        return super()._load_options(model)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(TorchSlot.fault, "device"), (RuntimeError("CUDA failed with error out of memory"), "memory")],
)
async def test_ctranslate2_takes_the_place_of_a_torch_that_is_unfit(
    start: Start[TorchSlot], fault: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = TorchSlot()
    slot.fault = fault
    monkeypatch.setattr("tests.engines.fake_slot.smaller", lambda *args: None)
    await start(slot)
    row = slot.row()
    assert (row["backend"], row["error"]) == ("ctranslate2", f"CTranslate2 instead of torch: {fault}")
    assert slot.status.restarts_by == {reason: 1}
    await slot.close()
    await slot.start()
    assert slot.status.restarts_by == {reason: 1}, "torch is not tried again"


async def test_torch_may_be_unfit_for_a_model_that_is_loaded_later(start: Start[TorchSlot]) -> None:
    slot = TorchSlot()
    slot.faulty = ("a",)
    await start(slot)
    assert slot.row()["backend"] == "torch"
    with pytest.raises(RequeueBatch, match="torch is given up"):
        await slot.transcribe("a")
    assert slot.needs_restart.is_set()  # so the dispatcher closes and starts it
    await slot.close()
    await slot.start()
    await slot.transcribe("a")
    assert slot.row()["backend"] == "ctranslate2"


async def test_a_window_too_large_for_the_memory_restarts_the_worker_with_a_smaller_compute_type(
    start: Start[LowMemorySlot],
) -> None:
    slot = await start(LowMemorySlot({"float32": 0, "int8_float32": 0}))
    for compute_type in ("int8_float32", "int8"):
        with pytest.raises(RequeueBatch, match="out of memory"):
            await slot.transcribe("main")
        assert slot.needs_restart.is_set()  # so the dispatcher closes and starts it
        slot.needs_restart.clear()
        await slot.close()
        await slot.start()
        assert shown(slot)[1] == compute_type
    await slot.transcribe("main")
    assert "main in int8 instead of float32: CUDA failed" in str(slot.row()["error"])
    assert slot.calls == ["spawn", "load main"] * 3 + ["transcribe main"]


async def test_without_a_smaller_compute_type_the_window_fails_and_not_the_slot(
    start: Start[LowMemorySlot],
) -> None:
    max_windows = {"float32": 0, "int8_float32": 0, "int8": 0}
    slot = await start(LowMemorySlot(max_windows, too_large=("float32", "int8_float32")))
    with pytest.raises(RuntimeError, match="smallest compute type: CUDA failed with error out of memory"):
        await slot.transcribe("main")
    assert not slot.needs_restart.is_set()


async def test_a_model_too_large_to_load_is_loaded_with_a_smaller_compute_type(
    start: Start[LowMemorySlot],
) -> None:
    slot = await start(LowMemorySlot({}, too_large=("float32", "int8_float32")))
    assert shown(slot) == (8, "int8", 2)
    assert slot.calls == ["spawn", "spawn", "spawn", "load main"]
    await slot.transcribe("main", 8)
    await slot.close()
    await slot.start()
    assert slot.calls[-2:] == ["spawn", "load main"]  # it is known by now


async def test_each_model_has_its_own_compute_type(start: Start[LowMemorySlot]) -> None:
    class OneTooLarge(LowMemorySlot):
        def load(self, options: LoadOptions) -> WorkerInfo:
            if options.model == "a" and options.compute_type == "float32":
                raise RuntimeError("CUDA failed with error out of memory")
            return super().load(options)

    slot = await start(OneTooLarge({}))
    with pytest.raises(RequeueBatch):
        await slot.transcribe("a", 4)
    assert slot.needs_restart.is_set()
    await slot.close()
    await slot.start()
    await slot.transcribe("a", 4)
    assert slot.loaded == {"main": "float32", "a": "int8_float32"}
    assert shown(slot)[:2] == (8, "float32")


async def test_other_errors_change_nothing(start: Start[FakeSlot]) -> None:
    class Broken(FakeSlot):
        def decode_batch(self, windows: list[Window]) -> list[WindowResult]:
            raise RuntimeError("no such token")

    slot = await start(Broken())
    with pytest.raises(RuntimeError, match="no such token"):
        await slot.transcribe("main", 4)
    assert (shown(slot)[0], slot.row()["error"]) == (8, None)


async def test_with_one_model_at_a_time_the_others_are_unloaded(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot(one_model=True))
    for model in ("a", "main"):
        await slot.transcribe(model)
        assert list(slot.loaded) == [model]


async def test_the_deadline_of_a_batch_follows_from_what_it_should_take(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot())
    for seconds, expected_s in ((2, None), (30, None), (30, 0.5), (30, 4.0)):
        await slot.transcribe("main", seconds=seconds, expected_s=expected_s)
    assert slot.deadlines_s == [300, 1800, 60, 200]


async def test_a_batch_that_takes_very_long_gets_a_multiple_of_that_time(start: Start[FakeSlot]) -> None:
    """As after a hang: 50 times the time for which a process hung would be hours."""
    slot = await start(FakeSlot())
    for expected_s in (60, 1800, 3600, 99_000):
        await slot.transcribe("main", seconds=30, expected_s=expected_s)
    assert slot.deadlines_s == [1800, 3600, 7200, 7200]


async def test_the_setting_replaces_that_deadline(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot(batch_timeout_s=7.0))
    for expected_s in (None, 4.0):
        await slot.transcribe("main", seconds=30, expected_s=expected_s)
    assert slot.deadlines_s == [7.0, 7.0]


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA failed with error an illegal memory access was encountered"),
        RuntimeError("cuBLAS failed with status CUBLAS_STATUS_EXECUTION_FAILED"),
        ProcessHung("process 4711 did not answer within 60 s", fault=Fault.OWN),
    ],
)
async def test_errors_of_the_device_are_told_from_those_of_a_window(
    start: Start[FakeSlot], error: Exception
) -> None:
    class Failing(FakeSlot):
        def decode_batch(self, windows: list[Window]) -> list[WindowResult]:
            raise error

    slot = await start(Failing())
    with pytest.raises(DeviceFailed, match=re.escape(str(error))):
        await slot.transcribe("main")
    with pytest.raises(DeviceFailed, match=re.escape(str(error))):
        await slot.probe()


async def test_a_probe_asks_the_default_model(start: Start[FakeSlot]) -> None:
    slot = await start(FakeSlot())
    await slot.probe()
    assert slot.calls[-1] == "transcribe main"


async def test_a_larger_compute_type_is_tried_again_later(
    start: Start[LowMemorySlot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engines.oom_fallback._FIRST_RESTART_S", 0.1)
    slot = await start(LowMemorySlot({}, too_large=("float32",)))
    assert shown(slot)[1] == "int8_float32"
    slot.too_large = ()  # the other program has ended
    await asyncio.sleep(0.2)
    await slot.transcribe("main")
    assert slot.needs_restart.is_set()
    slot.needs_restart.clear()
    await slot.close()
    await slot.start()
    await slot.transcribe("main")
    assert (shown(slot)[1], slot.row()["error"]) == ("float32", None)
    assert not slot.needs_restart.is_set()


async def test_a_model_that_is_not_loaded_restarts_no_worker(
    start: Start[LowMemorySlot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although memory was short for it ten minutes ago."""
    monkeypatch.setattr("app.engines.oom_fallback._FIRST_RESTART_S", 0.0)
    slot = await start(LowMemorySlot({}))
    slot._oom.step_down(
        "a", "float32", "float32", "int8", RuntimeError("CUDA failed with error out of memory")
    )
    await slot.transcribe("main")
    assert not slot.needs_restart.is_set()
    assert slot.row()["error"] is None


async def test_a_wide_search_does_not_halve_the_batches_of_others(start: Start[FakeSlot]) -> None:
    class FewRows(FakeSlot):
        def decode_batch(self, windows: list[Window]) -> list[WindowResult]:
            if sum(window.decoding.beams for window in windows) > 40:
                raise RuntimeError("CUDA failed with error out of memory")
            return super().decode_batch(windows)

    slot = await start(FewRows())
    assert [slot.batch_limit(beams) for beams in (1, 5, 10, 20)] == [8, 8, 4, 2]
    with pytest.raises(RequeueBatch, match="out of memory"):
        await slot.transcribe("main", windows=8, beams=20)
    assert [slot.batch_limit(beams) for beams in (1, 5, 10, 20)] == [8, 8, 4, 2]
    assert slot.row()["batch_size"] == 8


class WordlessSlot(FakeSlot):
    """Its default model gives no word times, and its model `a` fails to give them for some windows."""

    def load(self, options: LoadOptions) -> WorkerInfo:
        info = super().load(options)
        if options.model == "main":
            return replace(info, note="no word times: config.json names no alignment_heads")
        return info

    def decode_batch(self, windows: list[Window]) -> list[WindowResult]:
        results = super().decode_batch(windows)
        if windows[0].decoding.model == "a":
            results[-1] = replace(RESULT, note=f"no word times: odd tokens ({len(self.calls)})")
        return results


async def test_what_results_lack_is_shown_in_the_row_and_logged_once(start: Start[WordlessSlot]) -> None:
    with capture_logs() as logs:
        slot = await start(WordlessSlot())
        [note] = slot.row()["notes"]  # type: ignore[misc]
        assert note.startswith("main: no word times: config.json names no alignment_heads.")
        assert note.endswith("(docs/trouble.md#no-word-times)")
        for _ in range(3):
            window = Window(bytes(32_000), ((0, 16_000),), DecodingOptions("a"))
            await slot.run([in_memory(window)] * 2)
        await slot.close()
        await slot.start()
    assert [log["model"] for log in logs if log["event"] == "transcripts are incomplete"] == ["main", "a"]
    assert slot.row()["error"] is None
    assert len(slot.row()["notes"]) == 1, "model a is not loaded"  # type: ignore[arg-type]
