"""Work that is cancelled when the client disconnects."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from app.errors import STOPPING, NotReady

T = TypeVar("T")


async def run_unless_disconnected(request: Request, work: Awaitable[T]) -> T:
    """The result of `work`. Cancels it if the client disconnects or the caller is cancelled.

    The request's body must have been read. Raises ClientDisconnect, and as `work` does. `work` has ended when
    this returns or raises.
    """
    task = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_wait_for_disconnect(request.receive))
    try:
        await asyncio.wait((task, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            disconnected.result()  # raises the error of the server, if there was one
            raise ClientDisconnect
        if task.cancelled():
            raise NotReady(STOPPING)
        return task.result()
    finally:
        task.cancel()
        disconnected.cancel()
        await asyncio.gather(task, disconnected, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
