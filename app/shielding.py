"""Work that is not to be broken off midway."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
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


def shielded(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a function: it runs to its end even if the caller is cancelled. See `run_shielded`."""

    @wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_shielded(function(*args, **kwargs))

    return run
