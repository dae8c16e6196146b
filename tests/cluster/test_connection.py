"""Messages between two processes, over a socket."""

import asyncio
import pickle
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pool.cluster.message_socket import MAX_BYTES, FrameTooLarge, MessageSocket, pickled

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

MESSAGES = st.recursive(
    st.none() | st.integers() | st.text() | st.binary(max_size=200_000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def exchange(messages: list[object]) -> list[object]:
    async def send_all() -> list[object]:
        left, right = map(MessageSocket, socket.socketpair())
        for message in messages:
            left.send(message)
        received = [await right.receive() for _ in messages]
        left.close()
        with pytest.raises(EOFError):
            await right.receive()
        right.close()
        return received

    return asyncio.run(send_all())


@given(st.lists(MESSAGES, max_size=5))
def test_messages_arrive_whole_and_in_order(messages: list[object]) -> None:
    assert exchange(messages) == messages


def test_audio_is_not_copied_when_it_is_pickled() -> None:
    audio = bytes(1 << 20)
    pieces = pickled(("call", audio))
    assert any(piece is audio for piece in pieces)
    assert pickle.loads(b"".join(pieces)) == ("call", audio)
    assert exchange([("call", [audio] * 16)]) == [("call", [audio] * 16)]


async def test_a_message_that_is_too_large_is_neither_sent_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    left, right = MessageSocket(ours), MessageSocket(theirs)
    with pytest.raises(FrameTooLarge):
        left.send(bytes(MAX_BYTES + 1))
    left.send("still there")
    assert await right.receive() == "still there"
    ours.send(struct.pack("!Q", 1 << 60))
    with pytest.raises(FrameTooLarge):
        await right.receive()
    left.close()
    right.close()


async def test_a_message_that_cannot_be_pickled_is_an_error_of_its_sender() -> None:
    left, right = map(MessageSocket, socket.socketpair())
    with pytest.raises((AttributeError, pickle.PicklingError)):
        left.send(lambda: None)
    left.send(1)
    assert await right.receive() == 1
    left.close()
    right.close()


async def test_nobody_waits_for_a_process_that_has_gone() -> None:
    left, right = map(MessageSocket, socket.socketpair())
    right.close()
    left.send(bytes(10 << 20))
    with pytest.raises(EOFError):
        await left.flush()
    with pytest.raises(EOFError):
        await left.receive()
    left.close()


async def test_the_event_loop_goes_on_while_a_large_message_waits() -> None:
    left, right = map(MessageSocket, socket.socketpair())
    left.send(bytes(16 << 20))  # nobody reads it
    for _ in range(100):
        await asyncio.sleep(0)
    receiving = asyncio.create_task(right.receive())
    turns = 0
    while not receiving.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(await receiving) == 16 << 20
    assert turns > 16  # it arrives in parts
    left.close()
    right.close()
