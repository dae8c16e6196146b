"""Beside asyncio: tasks that nobody or many await, signals, threads for what may hang, shielded work."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from anyio import CancelScope
from anyio.lowlevel import checkpoint_if_cancelled

T = TypeVar("T")


class BackgroundTasks(set[asyncio.Task[None]]):
    """Those that have not ended. The event loop alone would not keep them: it has weak references."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task. It leaves the set when it ends."""
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task


def spawn_shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task that goes on when those who wait for it are cancelled, as by `asyncio.shield`.

    They get its error. If all of them have gone, it is nobody's: asyncio would log that nobody retrieved it.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    return task


async def end_tasks(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel tasks, and wait until they have ended, in whatever way. None: there is no task."""
    there = [task for task in tasks if task is not None]
    for task in there:
        task.cancel()
    await asyncio.gather(*there, return_exceptions=True)


class Wakeup(asyncio.Event):
    """Wakes one waiting loop: now, or as soon as it waits. A signal while the loop works is not lost."""

    async def wait(self, timeout_s: float | None = None) -> None:  # type: ignore[override]
        """Return once the signal is set, or after `timeout_s`. The signal is cleared then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await super().wait()
        self.clear()


async def in_daemon_thread(name: str, function: Callable[[], T]) -> T:
    """The result of `function`, in a thread of its own that does not keep the process from ending.

    Raises what it raises. It runs on if the caller is cancelled.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # nobody can cancel it from now on

    def work() -> None:
        try:
            done.set_result(function())
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`. If the caller is cancelled meanwhile, `work` still runs to completion.

    CancelledError is raised only after that, so the caller's cleanup finds no work in progress.
    """
    task = spawn_shared(work)
    cancellation: asyncio.CancelledError | None = None
    # A cancelled scope of anyio would cancel the waiting again and again.
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancellation = error
    await checkpoint_if_cancelled()
    if cancellation is not None:
        raise cancellation
    return task.result()
