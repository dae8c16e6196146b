"""Coroutines that run to completion although their caller is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from anyio import CancelScope
from anyio.lowlevel import checkpoint_if_cancelled

T = TypeVar("T")


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`. If the caller is cancelled meanwhile, `work` still runs to completion.

    CancelledError is raised only after that, so the caller's cleanup finds no work in progress.
    """
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    # A cancelled scope of anyio would cancel the waiting again and again.
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancellation = error
    if not task.cancelled():
        task.exception()  # marks it as retrieved: asyncio would log it otherwise
    await checkpoint_if_cancelled()
    if cancellation is not None:
        raise cancellation
    return task.result()
