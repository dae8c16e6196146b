"""Sends and receives pickled messages over a socket."""

import asyncio
import pickle
import socket
from collections import deque
from typing import Any

from app.engines.cluster.frames import LENGTH, MAX_BYTES, FrameTooLarge, framed


class Connection:
    """Sends and receives messages. Nothing that it does holds the event loop for longer than a copy takes."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._waiting: deque[bytes] = deque()
        self._has_more = asyncio.Event()
        self._writer = asyncio.create_task(self._write())

    def send(self, *messages: object) -> None:
        """Queue messages, all or none. Raises as `pickled` does."""
        self._waiting.extend(framed(*messages))
        self._has_more.set()

    async def receive(self) -> Any:
        """The next message. Raises EOFError if the other process has closed its end, or has ended.

        Also raises FrameTooLarge, and what pickle raises for bytes that are no message.
        """
        [length] = LENGTH.unpack(await self._read(LENGTH.size))
        if length > MAX_BYTES:
            raise FrameTooLarge(f"a message is larger than {MAX_BYTES >> 20} MiB")
        return pickle.loads(await self._read(length))

    def close(self) -> None:
        """Close this end. Messages that are not sent yet are lost."""
        self._writer.cancel()
        # Not earlier: the event loop may watch the socket for the writer.
        self._writer.add_done_callback(lambda writer: self._socket.close())

    async def flush(self) -> None:
        """Wait until all messages are sent. Raises EOFError if nobody reads them."""
        self._has_more.set()
        while self._waiting:
            if self._writer.done():
                raise EOFError
            await asyncio.sleep(0.01)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_more.wait()
            self._has_more.clear()
            while self._waiting:
                try:
                    await loop.sock_sendall(self._socket, self._waiting[0])
                except OSError:
                    return  # the reader notices as well
                self._waiting.popleft()

    async def _read(self, length: int) -> bytearray:
        loop = asyncio.get_running_loop()
        data = bytearray(length)
        view = memoryview(data)
        while view:
            try:
                count = await loop.sock_recv_into(self._socket, view)
            except OSError as error:
                raise EOFError from error
            if not count:
                raise EOFError
            view = view[count:]
        return data
