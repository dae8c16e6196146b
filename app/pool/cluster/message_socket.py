"""Pickled messages of any size between the server and the bridge to Ray, over a socket."""

import asyncio
import pickle
import socket
import struct
from collections import deque
from typing import Any

MAX_BYTES = 256 << 20  # of a message; the largest are batches of audio, 16 MB
_LENGTH = struct.Struct("!Q")


class FrameTooLarge(ValueError):
    """A message is larger than `MAX_BYTES`."""


def pickled(message: object) -> list[bytes]:
    """A pickled message in pieces. Large bytes objects in it are pieces by themselves, and not copied.

    Raises FrameTooLarge, and what pickle raises if the message cannot be pickled.
    """
    pieces = _Pieces()
    pickle.Pickler(pieces, protocol=5).dump(message)
    if sum(map(len, pieces)) > MAX_BYTES:
        raise FrameTooLarge(f"a message is larger than {MAX_BYTES >> 20} MiB")
    return pieces


def result_of(answer: bytes) -> Any:
    """The result in a pickled answer: whether it is one, and the result or an error. Raises the error."""
    is_result, value = pickle.loads(answer)
    if not is_result:
        raise value
    return value


class MessageSocket:
    """Sends and receives messages. Nothing that it does holds the event loop for longer than a copy takes."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._waiting: deque[bytes] = deque()
        self._has_more = asyncio.Event()
        self._writer = asyncio.create_task(self._write())

    def send(self, message: object) -> None:
        """Queue a message. Raises as `pickled` does."""
        first, *others = pickled(message)
        self._waiting += [_LENGTH.pack(len(first) + sum(map(len, others))) + first, *others]
        self._has_more.set()

    async def receive(self) -> Any:
        """The next message. Raises EOFError if the other process has closed its end, or has ended.

        Also raises FrameTooLarge, and what pickle raises for bytes that are no message.
        """
        [length] = _LENGTH.unpack(await self._read(_LENGTH.size))
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


class _Pieces(list[bytes]):
    """A file that keeps what is written: pickle writes bytes objects of 64 KiB or more without a copy."""

    write = list.append
