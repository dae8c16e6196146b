"""Events of Wyoming: a line of JSON, then data in JSON and a payload, of the lengths that the line names.

A length is checked before anything of that length is read. A payload is passed on in parts.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from app.common.errors import InvalidInput

MAX_LINE_BYTES = 1 << 14
MAX_DATA_BYTES = 1 << 16
MAX_PAYLOAD_BYTES = 1 << 20
PART_BYTES = 1 << 15  # of a payload, at most


@dataclass(frozen=True, slots=True)
class WyomingEvent:
    """An event of a client, without its payload."""

    type: str
    data: Mapping[str, Any]
    payload_bytes: int


class EventReader:
    """Reads the events of one client."""

    def __init__(self, reader: asyncio.StreamReader, timeout_s: float) -> None:
        """`reader` has the limit `MAX_LINE_BYTES`.

        `timeout_s`: within this time, the line, the data and each part of a payload must arrive.
        """
        self._reader = reader
        self._timeout_s = timeout_s
        self._unread = 0  # bytes of the payload of the last event

    async def next(self) -> WyomingEvent | None:
        """The next event, after what is left of the payload before; None if the client has gone.

        Waits for its first byte without an end. Raises InvalidInput if it is no event, exceeds a limit or
        is not complete in time.
        """
        try:
            async for _ in self.payload():
                pass
            first = await self._reader.readexactly(1)
            async with asyncio.timeout(self._timeout_s):
                return await self._read(first)
        except TimeoutError:
            raise self._too_slow() from None
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def payload(self) -> AsyncIterator[bytes]:
        """The payload of the last event, in parts, as it arrives.

        Raises InvalidInput if a part does not arrive in time, IncompleteReadError and ConnectionError if the
        client has gone.
        """
        while self._unread:
            size = min(self._unread, PART_BYTES)
            try:
                async with asyncio.timeout(self._timeout_s):
                    part = await self._reader.readexactly(size)
            except TimeoutError:
                raise self._too_slow() from None
            self._unread -= size
            yield part

    async def _read(self, first: bytes) -> WyomingEvent:
        try:
            line = first if first == b"\n" else first + await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise InvalidInput(f"The line of an event has more than {MAX_LINE_BYTES} bytes.") from None
        head = _parsed(line)
        if not isinstance(head.get("type"), str):
            raise InvalidInput("An event has no `type`.")
        data_bytes = _length(head, "data_length", MAX_DATA_BYTES)
        payload_bytes = _length(head, "payload_length", MAX_PAYLOAD_BYTES)
        data = head.get("data") or {}
        if not isinstance(data, dict):
            raise InvalidInput("The `data` of an event is no JSON object.")
        if data_bytes:
            data |= _parsed(await self._reader.readexactly(data_bytes))
        self._unread = payload_bytes
        return WyomingEvent(head["type"], data, payload_bytes)

    def _too_slow(self) -> InvalidInput:
        return InvalidInput(f"An event was not complete after {self._timeout_s:g} s.")


def encode(event_type: str, data: Mapping[str, Any]) -> bytes:
    """An event without a payload."""
    body = json.dumps(data, ensure_ascii=False).encode()
    line = json.dumps({"type": event_type, "data_length": len(body)})
    return line.encode() + b"\n" + body


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        value = from_json(text, allow_inf_nan=False)  # `json` takes half surrogates, which are no text
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(
            "This is no event of Wyoming, which begins with a line of JSON. HTTP has another port."
        )
    return value


def _length(head: Mapping[str, Any], name: str, most: int) -> int:
    value = head.get(name) or 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"The `{name}` of an event is no length.")
    if value > most:
        raise InvalidInput(f"The `{name}` of an event is {value}, and may be {most} bytes at most.")
    return value
