"""Work that ends when the client that asked for it goes away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from app.errors import NotReady

T = TypeVar("T")


async def run_unless_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client disconnects or the caller is cancelled.

    The request's body must have been read. Raises ClientDisconnect where the client went first, and what
    `work` raises; nothing of it runs on afterwards.
    """
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_disconnected(request.receive))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            watch.result()  # raises what the server's channel raised, if it did
            raise ClientDisconnect
        if task.cancelled():
            raise NotReady("The service is stopping; send the request again.")
        return task.result()
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
