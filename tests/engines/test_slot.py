"""A slot and its models, with a worker that keeps a book."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from app.engines.catalogue import ModelCatalogue
from app.engines.slot import Limits, WhisperSlot
from app.errors import RequeueBatch
from workers.messages import Clip, ClipResult, Decoding, LoadOptions, WorkerInfo
from workers.whisper import model as whisper
from workers.whisper.compute_types import smaller

pytestmark = pytest.mark.timeout(20)

RESULT = ClipResult("en", (), ())


def catalogue(idle_s: float = 99, compute_type: str = "int8") -> ModelCatalogue:
    options = {name: LoadOptions(name, f"/{name}", "cpu", compute_type, 1) for name in ("main", "a", "b")}
    return ModelCatalogue("main", idle_s, options)


class BookSlot(WhisperSlot):
    """Its worker has room for `room` models at once, and writes down what it is asked to do."""

    def __init__(self, idle_s: float = 99, room: int = 9, compute_type: str = "int8", **limits: Any) -> None:
        super().__init__(0, catalogue(idle_s, compute_type), Limits(**{"batch_size": 8} | limits))
        self.book: list[str] = []
        self.loaded: dict[str, str] = {}  # models, and their compute types
        self.room = room
        self.deadlines_s: list[float] = []

    async def _spawn(self) -> None:
        self.book.append("spawn")
        self.loaded = {}

    async def _call(self, function: Callable[..., Any], *args: Any, deadline_s: float) -> Any:
        await asyncio.sleep(0)
        if function is whisper.load:
            options: LoadOptions = args[0]
            if len(self.loaded) >= self.room or not self.fits(options.compute_type):
                raise RuntimeError("CUDA failed with error out of memory")
            self.book.append(f"load {options.model}")
            self.loaded[options.model] = options.compute_type
            loads = len(self.book)
            return WorkerInfo(1, "0", options.model, "cpu", options.compute_type, loads, ("en", "de"))
        if function is whisper.unload:
            self.book.append(f"unload {args[0]}")
            self.loaded.pop(args[0], None)
            return None
        if function is whisper.smaller_compute_type:
            return smaller(args[0].compute_type, "cpu", {"float32", "int8_float32", "int8"})
        self.deadlines_s.append(deadline_s)
        return self.transcribe(args[0])

    def fits(self, compute_type: str) -> bool:
        """Whether there is memory for a model's weights."""
        return True

    def transcribe(self, clips: list[Clip]) -> list[ClipResult]:
        model = clips[0].decoding.model
        assert model in self.loaded
        self.book.append(f"hear {model}")
        return [RESULT for _ in clips]

    async def _end(self) -> None: ...

    async def hear(self, model: str, clips: int = 1, seconds: int = 1) -> None:
        clip = Clip(bytes(32_000 * seconds), ((0, 16_000 * seconds),), Decoding(model))
        assert await self.run([lambda: clip] * clips) == [RESULT] * clips


def test_a_model_is_loaded_on_first_use_and_once() -> None:
    async def check() -> None:
        slot = BookSlot()
        await slot.start()
        for model in ("main", "a", "a", "main", "a"):
            await slot.hear(model)
        assert slot.book == [
            "spawn",
            "load main",
            "hear main",
            "load a",
            "hear a",
            "hear a",
            "hear main",
            "hear a",
        ]
        assert (slot.holds("a"), slot.holds("b")) == (True, False)
        assert slot.row()["models"] == ["a", "main"]
        assert (slot.row()["loads"], slot.row()["clips"], slot.row()["audio_s"]) == (2, 5, 5.0)
        await slot.close()

    asyncio.run(check())


def test_an_idle_model_is_unloaded_and_the_default_one_stays() -> None:
    async def check() -> None:
        slot = BookSlot(idle_s=0.05)
        await slot.start()
        await slot.hear("a")
        await slot.hear("main")
        await asyncio.sleep(0.15)
        assert slot.book[-1] == "unload a"
        assert set(slot.loaded) == {"main"}
        await slot.hear("a")
        assert slot.book[-2:] == ["load a", "hear a"]
        await slot.close()

    asyncio.run(check())


def test_a_model_in_use_is_not_idle() -> None:
    async def check() -> None:
        slot = BookSlot(idle_s=0.05)
        await slot.start()
        for _ in range(5):
            await slot.hear("a")
            await asyncio.sleep(0.02)
        assert "unload a" not in slot.book
        await slot.close()

    asyncio.run(check())


def test_when_memory_is_short_the_other_models_go() -> None:
    async def check() -> None:
        slot = BookSlot(room=2)
        await slot.start()
        await slot.hear("a")
        await slot.hear("b")
        assert slot.book == [
            "spawn",
            "load main",
            "load a",
            "hear a",
            "unload main",
            "unload a",
            "load b",
            "hear b",
        ]
        await slot.hear("main")
        assert set(slot.loaded) == {"b", "main"}
        await slot.close()

    asyncio.run(check())


def test_a_model_that_never_fits_is_said() -> None:
    async def check() -> None:
        slot = BookSlot(room=0)
        with pytest.raises(RuntimeError, match="out of memory"):
            await slot.start()
        await slot.close()

    asyncio.run(check())


def test_a_new_process_holds_the_default_model_alone() -> None:
    async def check() -> None:
        slot = BookSlot()
        await slot.start()
        await slot.hear("a")
        await slot.close()
        await slot.start()
        assert (slot.holds("a"), slot.holds("main")) == (False, True)
        await slot.hear("a")
        assert slot.book[-3:] == ["load main", "load a", "hear a"]
        await slot.close()

    asyncio.run(check())


class TightSlot(BookSlot):
    """Its worker hears as many clips at once as `rooms` says for the compute type of their model."""

    def __init__(self, rooms: dict[str, int], too_large: tuple[str, ...] = (), **given: Any) -> None:
        super().__init__(compute_type="float32", **given)
        self.rooms = rooms
        self.too_large = too_large  # compute types with which no model can be loaded

    def fits(self, compute_type: str) -> bool:
        return compute_type not in self.too_large

    def transcribe(self, clips: list[Clip]) -> list[ClipResult]:
        room = self.rooms.get(self.loaded[clips[0].decoding.model], 8)
        if len(clips) > room or (len(self.loaded) > 1 and room < 8):
            raise RuntimeError("CUDA failed with error out of memory")
        return super().transcribe(clips)


def shown(slot: WhisperSlot) -> tuple[object, object, object]:
    row = slot.row()
    return row["batch_size"], row["compute_type"], row["restarts"]


def test_memory_that_is_short_for_a_batch_halves_it_for_good() -> None:
    async def check() -> None:
        slot = TightSlot({"float32": 2})
        await slot.start()
        assert (shown(slot), slot.row()["error"]) == ((8, "float32", 0), None)
        for clips in (8, 4):
            with pytest.raises(RequeueBatch, match="out of memory"):
                await slot.hear("main", clips)
        await slot.hear("main", 2)
        assert shown(slot) == (2, "float32", 0)
        assert not slot.needs_restart.is_set()
        assert "batches of 2 instead of 8: CUDA failed" in str(slot.row()["error"])
        await slot.close()
        await slot.start()
        assert shown(slot)[0] == 2
        await slot.close()

    asyncio.run(check())


def test_the_other_models_go_before_a_batch_is_halved() -> None:
    async def check() -> None:
        slot = TightSlot({"float32": 4})
        await slot.start()
        await slot.hear("main", 4)
        await slot._load("a")
        await slot.hear("main", 4)
        assert slot.book[-2:] == ["unload a", "hear main"]
        assert (shown(slot)[0], slot.row()["error"]) == (8, None)
        await slot.close()

    asyncio.run(check())


def test_memory_that_is_short_for_one_clip_changes_the_compute_type_in_a_new_process() -> None:
    async def check() -> None:
        slot = TightSlot({"float32": 0, "int8_float32": 0})
        await slot.start()
        for compute_type in ("int8_float32", "int8"):
            with pytest.raises(RequeueBatch, match="out of memory"):
                await slot.hear("main")
            assert slot.needs_restart.is_set()  # so the dispatcher closes and starts it
            slot.needs_restart.clear()
            await slot.close()
            await slot.start()
            assert shown(slot)[1] == compute_type
        await slot.hear("main")
        assert "main in int8 instead of float32: CUDA failed" in str(slot.row()["error"])
        assert slot.book == ["spawn", "load main"] * 3 + ["hear main"]
        await slot.close()

    asyncio.run(check())


def test_at_the_end_of_the_ladder_the_clip_fails_and_not_the_slot() -> None:
    async def check() -> None:
        slot = TightSlot({"float32": 0, "int8_float32": 0, "int8": 0}, too_large=("float32", "int8_float32"))
        await slot.start()
        with pytest.raises(RuntimeError, match="smallest compute type: CUDA failed with error out of memory"):
            await slot.hear("main")
        assert not slot.needs_restart.is_set()
        await slot.close()

    asyncio.run(check())


def test_a_model_too_large_to_load_is_loaded_smaller() -> None:
    async def check() -> None:
        slot = TightSlot({}, too_large=("float32", "int8_float32"))
        await slot.start()
        assert shown(slot) == (8, "int8", 2)
        assert slot.book == ["spawn", "spawn", "spawn", "load main"]
        await slot.hear("main", 8)
        await slot.close()
        await slot.start()
        assert slot.book[-2:] == ["spawn", "load main"]  # it is known by now
        await slot.close()

    asyncio.run(check())


def test_a_further_model_too_large_to_load_steps_down_alone() -> None:
    class OneTooLarge(TightSlot):
        async def _call(self, function: Callable[..., Any], *args: Any, deadline_s: float) -> Any:
            if function is whisper.load and args[0].model == "a" and args[0].compute_type == "float32":
                raise RuntimeError("CUDA failed with error out of memory")
            return await super()._call(function, *args, deadline_s=deadline_s)

    async def check() -> None:
        slot = OneTooLarge({})
        await slot.start()
        with pytest.raises(RequeueBatch):
            await slot.hear("a", 4)
        assert slot.needs_restart.is_set()
        await slot.close()
        await slot.start()
        await slot.hear("a", 4)
        assert slot.loaded == {"main": "float32", "a": "int8_float32"}
        assert shown(slot)[:2] == (8, "float32")
        await slot.close()

    asyncio.run(check())


def test_an_error_that_is_not_about_memory_is_left_as_it_is() -> None:
    class Broken(BookSlot):
        def transcribe(self, clips: list[Clip]) -> list[ClipResult]:
            raise RuntimeError("no such token")

    async def check() -> None:
        slot = Broken()
        await slot.start()
        with pytest.raises(RuntimeError, match="no such token"):
            await slot.hear("main", 4)
        assert (shown(slot)[0], slot.row()["error"]) == (8, None)
        await slot.close()

    asyncio.run(check())


def test_one_model_at_a_time_where_that_is_the_limit() -> None:
    async def check() -> None:
        slot = BookSlot(one_model=True)
        await slot.start()
        for model in ("a", "main"):
            await slot.hear(model)
            assert list(slot.loaded) == [model]
        await slot.close()

    asyncio.run(check())


def test_long_batches_get_more_time_than_the_least() -> None:
    async def check() -> None:
        slot = BookSlot(batch_timeout_s=7.0)
        await slot.start()
        await slot.hear("main", seconds=5)
        await slot.hear("main", clips=2, seconds=20)
        assert slot.deadlines_s == [7.0, 8 * 7.0]
        await slot.close()

    asyncio.run(check())
