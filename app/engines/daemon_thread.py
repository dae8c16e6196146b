"""Runs blocking work that must not keep the process from ending, as a download of minutes."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(name: str, function: Callable[[], T]) -> T:
    """The result of `function`, in a thread of its own. Raises what it raises.

    It runs on if the caller is cancelled.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def resolve(result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = function()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits for the result
            loop.call_soon_threadsafe(resolve, result, error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await done
