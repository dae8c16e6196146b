"""Clients of live streams that play recordings, and some that mean no good."""

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient

from tests.media_files import RATE, Pcm

FORMAT = {"rate": RATE, "width": 2, "channels": 1}
CHUNK_S = 0.2
SILENCE_S = 1.5  # after a recording: its last turn ends
PATIENCE_S = 60.0
_STREAM_RATE = 24_000
_TRANSCRIPTION = "conversation.item.input_audio_transcription"

# A stream that gets one of these goes on.
FAULTY = (
    "",
    "[]",
    "{",
    "\0",
    '{"type": 7}',
    '{"type": "response.create"}',
    '{"type": "input_audio_buffer.append", "audio": "no base64!"}',
    '{"type": "session.update", "session": {"type": "realtime"}}',
    '{"type": "input_audio_buffer.append", "audio": ' + "[" * 20_000,
    b"\x80\x00",
)
# These break the connection: too long for a frame, no UTF-8 in a text.
BREAKING = ("x" * (2 << 20), b"\xc3\x28")

# Instead of Wyoming's events.
NO_EVENTS = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"[" * 9000 + b"\n",
    b'{"type": "audio-chunk", "payload_length": 99999999999}\n',
    b'{"type": "audio-chunk", "rate": 16000, "payload_length": 3}\nabc',
    b'{"type": "audio-start", "data": {"rate": 8000}}\n',
    b'{"type": "transcribe", "data_length": 7}\n{"name"',
    b"x" * (1 << 17),
)


@dataclass
class Stream:
    """What a client knows of its stream, also over several connections."""

    id: str = ""
    last_event: str = ""
    texts: dict[str, str] = field(default_factory=dict)  # of items that are complete
    open_items: set[str] = field(default_factory=set)
    errors: int = 0

    @property
    def in_order(self) -> list[str]:
        """The texts in the order of their items: a later one may be complete first."""
        return [
            self.texts[item] for item in sorted(self.texts, key=lambda item: int(item.rpartition("_")[2]))
        ]

    def take(self, message: str | bytes) -> None:
        event = json.loads(message)
        self.last_event = event["event_id"]
        item = event.get("item_id")
        match event["type"].removeprefix(f"{_TRANSCRIPTION}."):
            case "error":
                self.errors += 1
            case "input_audio_buffer.speech_started":
                self.open_items.add(item)
            case "completed":
                self.open_items.discard(item)
                assert item not in self.texts, "an item is complete once"
                self.texts[item] = event["transcript"]
            case "failed":
                raise AssertionError(event)


class RealtimeClients:
    """Clients of `/v1/realtime`."""

    def __init__(self, url: str) -> None:
        self._url = url.replace("http", "ws", 1) + "/v1/realtime"

    @asynccontextmanager
    async def connected(self, stream: Stream) -> AsyncIterator[tuple[ClientConnection, int]]:
        """A connection to a new stream, or to one that goes on, and how many bytes of audio it has."""
        query = "intent=transcription"
        if stream.id:
            query = f"session={stream.id}&last_event_id={stream.last_event}"
        async with connect(f"{self._url}?{query}", compression=None, proxy=None) as socket:
            created = json.loads(await socket.recv())
            assert created["type"] == "session.created", created
            stream.id = created["session"]["id"]
            stream.last_event = stream.last_event or created["event_id"]
            yield socket, created["session"]["received_bytes"]

    async def play(
        self, pcm: Pcm, chance: random.Random, turns: int = 0, *, breaks: int = 0, faults: int = 0
    ) -> Stream:
        """Play a recording to its end, whatever breaks the connection meanwhile.

        `turns`: of the recording, if they are known. The last one may be detected late.
        """
        stream, audio = Stream(), stream_audio(pcm)
        size = round(CHUNK_S * _STREAM_RATE) * 2
        total = -(-len(audio) // size)
        broken = {chance.randrange(total) for _ in range(breaks)}
        faulty = {chance.randrange(total) for _ in range(faults)}
        for _ in range(breaks + faults + 3):
            with suppress(ConnectionClosed, ConnectionError):
                async with self.connected(stream) as (socket, received):
                    reading = asyncio.create_task(_read(socket, stream))
                    try:
                        for number in range(received // size, total):
                            if number in faulty:
                                faulty.discard(number)
                                await socket.send(chance.choice(FAULTY + BREAKING))
                            if number in broken:
                                broken.discard(number)
                                socket.transport.abort()
                            part = audio[max(received, number * size) : (number + 1) * size]
                            await socket.send(_append(part))
                            await asyncio.sleep(CHUNK_S)
                        await _until_complete(stream, turns, reading)
                        return stream
                    finally:
                        reading.cancel()
                        await asyncio.gather(reading, return_exceptions=True)
        raise AssertionError("the stream broke again and again")

    async def leave(self, pcm: Pcm, chance: random.Random) -> None:
        """Begin to play a recording, and go away without a word."""
        audio = stream_audio(pcm)
        size = round(CHUNK_S * _STREAM_RATE) * 2
        with suppress(WebSocketException, ConnectionError):
            async with self.connected(Stream()) as (socket, _):
                for position in range(0, chance.randrange(len(audio)), size):
                    await socket.send(_append(audio[position : position + size]))
                    await asyncio.sleep(CHUNK_S)
                socket.transport.abort()


class WyomingClients:
    """Clients of Wyoming."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def play(self, pcm: Pcm) -> str:
        """The text of a recording."""
        async with AsyncTcpClient("127.0.0.1", self._port, read_timeout=PATIENCE_S) as client:
            await self._speak(client, pcm, len(pcm))
            await client.write_event(AudioStop().event())
            while (event := await client.read_event()) is not None:
                if event.type == "transcript":
                    return str(event.data["text"])
                assert event.type != "error", event
        raise AssertionError("no text came")

    async def leave(self, pcm: Pcm, chance: random.Random) -> None:
        """Begin to play a recording, and go away, perhaps after something that is no event."""
        with suppress(ConnectionError):
            async with AsyncTcpClient("127.0.0.1", self._port) as client:
                await self._speak(client, pcm, chance.randrange(len(pcm)))
                assert client._writer is not None
                if chance.random() < 0.5:
                    client._writer.write(chance.choice(NO_EVENTS))
                    await asyncio.sleep(chance.random())
                client._writer.transport.abort()

    async def _speak(self, client: AsyncTcpClient, pcm: Pcm, until: int) -> None:
        await client.write_event(AudioStart(**FORMAT).event())
        size = round(CHUNK_S * RATE)
        for position in range(0, until, size):
            audio = pcm[position : min(until, position + size)].tobytes()
            await client.write_event(AudioChunk(**FORMAT, audio=audio).event())
            await asyncio.sleep(CHUNK_S)


def stream_audio(pcm: Pcm) -> bytes:
    """A recording and silence at 24 kHz, by repeating samples: that is enough for the detection of speech."""
    padded = np.append(pcm, np.zeros(round(SILENCE_S * RATE), np.int16))
    places = np.arange(len(padded) * _STREAM_RATE // RATE) * RATE // _STREAM_RATE
    return padded[places].astype("<i2").tobytes()


def _append(audio: bytes) -> str:
    return json.dumps({"type": "input_audio_buffer.append", "audio": base64.b64encode(audio).decode()})


async def _read(socket: ClientConnection, stream: Stream) -> None:
    async for message in socket:
        stream.take(message)


async def _until_complete(stream: Stream, turns: int, reading: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(PATIENCE_S):
        while stream.open_items or len(stream.texts) < turns:
            if reading.done():
                reading.result()
                raise ConnectionError("the connection broke")
            await asyncio.sleep(0.05)
