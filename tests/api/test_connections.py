"""A disconnect cancels the work for the client."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from starlette.requests import ClientDisconnect, Request

from app.common.errors import NotReady
from app.server.connections import run_unless_disconnected

pytestmark = pytest.mark.anyio


class Channel:
    """An ASGI server's side of a request whose body was read."""

    def __init__(self):
        self.disconnected = asyncio.Event()
        self.request = Request({"type": "http"}, self.receive)

    async def receive(self):
        await self.disconnected.wait()
        return {"type": "http.disconnect"}


@asynccontextmanager
async def open_channel():
    """No task may be left when it closes."""
    tasks = asyncio.all_tasks()
    async with asyncio.timeout(5):
        yield Channel()
    assert asyncio.all_tasks() == tasks


async def _fail():
    raise KeyError("mine")


async def _cancelled():
    raise asyncio.CancelledError


async def test_result():
    async with open_channel() as channel:
        assert await run_unless_disconnected(channel.request, asyncio.sleep(0, "done")) == "done"


@pytest.mark.parametrize(("work", "error"), [(_fail, KeyError), (_cancelled, NotReady)])
async def test_errors_pass_through(work, error):
    async with open_channel() as channel:
        with pytest.raises(error):
            await run_unless_disconnected(channel.request, work())


async def test_disconnect_cancels_the_work():
    async with open_channel() as channel:
        channel.disconnected.set()
        with pytest.raises(ClientDisconnect):
            await run_unless_disconnected(channel.request, asyncio.sleep(60))


async def test_cancelling_the_caller_cancels_the_work():
    ended = asyncio.Event()

    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with open_channel() as channel:
        caller = asyncio.create_task(run_unless_disconnected(channel.request, work()))
        await asyncio.sleep(0.01)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert ended.is_set()
