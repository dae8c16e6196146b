"""Coroutines that run to completion although their caller is cancelled."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`. If the caller is cancelled meanwhile, `work` still runs to completion.

    CancelledError is raised only after that, so the caller's cleanup finds no work in progress.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks it as retrieved: asyncio would log it otherwise
        raise


def shielded(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate an async function so that each call goes through `run_shielded`."""

    @wraps(function)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await run_shielded(function(*args, **kwargs))

    return run
