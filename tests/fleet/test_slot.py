"""A slot and its models, with a worker that keeps a book."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from app.fleet.slot import Catalogue, WhisperSlot
from workers import whisper
from workers.messages import Clip, ClipResult, Decoding, LoadOptions, WorkerInfo

pytestmark = pytest.mark.timeout(20)

RESULT = ClipResult("en", (), ())


class BookSlot(WhisperSlot):
    """Its worker has room for `room` models at once, and writes down what it is asked to do."""

    def __init__(self, idle_s: float = 99, room: int = 9) -> None:
        options = {name: LoadOptions(name, f"/{name}", "cpu", "int8", 1) for name in ("main", "a", "b")}
        super().__init__(0, Catalogue("main", idle_s, options))
        self.book: list[str] = []
        self.loaded: set[str] = set()
        self.room = room

    async def _spawn(self) -> None:
        self.loaded = set()

    async def _call(self, function: Callable[..., Any], *args: Any, deadline_s: float) -> Any:
        await asyncio.sleep(0)
        if function is whisper.load:
            if len(self.loaded) >= self.room:
                raise RuntimeError("CUDA failed with error out of memory")
            self.book.append(f"load {args[0].model}")
            self.loaded.add(args[0].model)
            return WorkerInfo(1, "0", args[0].model, "cpu", "int8", len(self.book), ("en", "de"))
        if function is whisper.unload:
            self.book.append(f"unload {args[0]}")
            self.loaded.discard(args[0])
            return None
        model = args[0][0].decoding.model
        assert model in self.loaded
        self.book.append(f"hear {model}")
        return [RESULT for _ in args[0]]

    async def _end(self) -> None: ...

    async def hear(self, model: str) -> None:
        clip = Clip(bytes(32_000), ((0, 16_000),), Decoding(model))
        assert await self.run([lambda: clip]) == [RESULT]


def test_a_model_is_loaded_on_first_use_and_once() -> None:
    async def check() -> None:
        slot = BookSlot()
        await slot.start()
        for model in ("main", "a", "a", "main", "a"):
            await slot.hear(model)
        assert slot.book == ["load main", "hear main", "load a", "hear a", "hear a", "hear main", "hear a"]
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
        assert slot.loaded == {"main"}
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
        assert slot.book == ["load main", "load a", "hear a", "unload main", "unload a", "load b", "hear b"]
        await slot.hear("main")
        assert slot.loaded == {"b", "main"}
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
