"""Wyoming's framing: what its own package writes is read, and nothing above a limit is."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wyoming.event import Event, async_read_event, async_write_event

from app.api.wyoming.framing import (
    MAX_DATA_BYTES,
    MAX_LINE_BYTES,
    MAX_PAYLOAD_BYTES,
    PART_BYTES,
    EventReader,
    encode,
)
from app.common.errors import InvalidInput

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=9), values, max_size=5)


class Pipe:
    """What a client writes."""

    def __init__(self, content: bytes = b"", *, ends: bool = True) -> None:
        self.reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        self.reader.feed_data(content)
        if ends:
            self.reader.feed_eof()

    def writelines(self, parts: Any) -> None:
        self.reader.feed_data(b"".join(parts))

    def write(self, part: bytes) -> None:
        self.reader.feed_data(part)

    async def drain(self) -> None: ...


async def read_all(pipe: Pipe, timeout_s: float = 5) -> list[tuple[str, dict[str, Any], bytes]]:
    """All events with their payloads."""
    events, found = EventReader(pipe.reader, timeout_s), []
    while (event := await events.next()) is not None:
        payload = b"".join([part async for part in events.payload()])
        assert len(payload) == event.payload_bytes
        found.append((event.type, dict(event.data), payload))
    return found


@given(st.lists(st.tuples(st.text(max_size=9), objects, st.binary(max_size=99)), max_size=4))
def test_events_of_the_package_are_read(events: list[tuple[str, dict[str, Any], bytes]]) -> None:
    async def run() -> None:
        pipe = Pipe(ends=False)
        for kind, data, payload in events:
            await async_write_event(Event(kind, data, payload), pipe)  # type: ignore[arg-type]
        pipe.reader.feed_eof()
        assert await read_all(pipe) == events

    asyncio.run(run())


@given(st.text(max_size=9), objects)
def test_the_package_reads_ours(kind: str, data: dict[str, Any]) -> None:
    async def run() -> None:
        event = await async_read_event(Pipe(encode(kind, data)).reader)
        assert event is not None
        assert (event.type, event.data, event.payload) == (kind, data, None)

    asyncio.run(run())


@given(st.binary(max_size=300) | st.builds(lambda head: json.dumps(head).encode() + b"\n", objects))
def test_nothing_that_a_client_sends_is_more_than_refused(content: bytes) -> None:
    async def run() -> None:
        with suppress(InvalidInput):
            await read_all(Pipe(content))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"POST / HTTP/1.1\r\nHost: localhost:10300\r\n\r\n", "no event of Wyoming"),
        (b"[" * 9000 + b"\n", "no event of Wyoming"),
        (b"[1]\n", "no event of Wyoming"),
        (rb'{"type": "x", "data": {"name": "\ud800"}}' + b"\n", "no event of Wyoming"),  # it is no text
        (b'{"data": {}}\n', "no `type`"),
        (b'{"type": 7}\n', "no `type`"),
        (b'{"type": "x", "data": [1]}\n', "no JSON object"),
        (b'{"type": "x", "data_length": 2}\n[]', "no event of Wyoming"),
        (b'{"type": "x", "data_length": -1}\n', "no length"),
        (b'{"type": "x", "data_length": true}\n', "no length"),
        (b'{"type": "x", "payload_length": 1e3}\n', "no length"),
        (b'{"type": "x", "payload_length": "9"}\n', "no length"),
        (b'{"type": "x", "data_length": %d}\n' % (MAX_DATA_BYTES + 1), "at most"),
        (b'{"type": "x", "payload_length": %d}\n' % (MAX_PAYLOAD_BYTES + 1), "at most"),
        (b'{"type": "' + b"x" * MAX_LINE_BYTES + b'"}\n', "more than"),
        (b"x" * (2 * MAX_LINE_BYTES), "more than"),
    ],
)
@pytest.mark.anyio
async def test_a_limit_is_checked_before_anything_is_read(content: bytes, reason: str) -> None:
    pipe = Pipe(content, ends=False)
    with pytest.raises(InvalidInput, match=reason):
        await EventReader(pipe.reader, 5).next()


@pytest.mark.anyio
async def test_a_payload_comes_in_parts_and_one_that_nobody_wants_is_skipped() -> None:
    payload = bytes(range(256)) * 1024
    head = json.dumps({"type": "x", "payload_length": len(payload)}).encode() + b"\n"
    pipe = Pipe(head + payload + head + payload)
    events = EventReader(pipe.reader, 5)
    await events.next()
    parts = [part async for part in events.payload()]
    assert b"".join(parts) == payload
    assert max(map(len, parts)) == PART_BYTES
    await events.next()
    assert await events.next() is None, "the second payload was skipped"


@pytest.mark.parametrize(
    "content",
    [
        b'{"type": "x"',
        b'{"type": "x", "data_length": 9}\n{"a"',
        b'{"type": "x", "payload_length": 9}\n1234',
    ],
)
@pytest.mark.anyio
async def test_a_client_that_drips_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"not complete after 0\.01 s"):
        await read_all(Pipe(content, ends=False), timeout_s=0.01)
