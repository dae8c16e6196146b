"""Work that is not to be broken off midway."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which runs to its end even where the caller is cancelled meanwhile.

    The cancellation is told after that: whoever cleans up finds nothing under way any more.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody else will look at it
        raise
