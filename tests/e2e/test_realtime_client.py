"""OpenAI's client for Python speaks to the real service."""

import asyncio
import base64

from openai import AsyncOpenAI

from tests.e2e.live_clients import stream_audio
from tests.media_files import read_pcm

CHUNK = 4800  # bytes: 100 ms


async def transcripts(url: str, audio: bytes, turns: int) -> list[tuple[str, str, float]]:
    """The text of each of so many turns, what was said of it before, and where it began (s)."""
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="unused")
    items: list[str] = []
    said: dict[str, str] = {}
    completed: dict[str, tuple[str, float]] = {}
    async with client.realtime.connect(extra_query={"intent": "transcription"}) as connection:
        turn_detection = {"type": "server_vad", "silence_duration_ms": 1200}  # longer than the pauses
        await connection.session.update(
            session={"type": "transcription", "audio": {"input": {"turn_detection": turn_detection}}}
        )

        async def play() -> None:
            for start in range(0, len(audio), CHUNK):
                chunk = base64.b64encode(audio[start : start + CHUNK]).decode()
                await connection.input_audio_buffer.append(audio=chunk)

        playing = asyncio.create_task(play())
        async for event in connection:
            assert event.type != "error", event
            if event.type == "input_audio_buffer.committed":
                items.append(event.item_id)
            elif event.type == "conversation.item.input_audio_transcription.delta":
                said[event.item_id] = said.get(event.item_id, "") + (event.delta or "")
            elif event.type == "conversation.item.input_audio_transcription.completed":
                completed[event.item_id] = (event.transcript, event.words[0]["start"])  # type: ignore[attr-defined]
                if len(completed) == turns:
                    break
        await playing
    return [(completed[item][0], said[item], completed[item][1]) for item in items]


def test_two_turns(server, shorts):
    audio = [stream_audio(read_pcm(path)) for path in shorts[:2]]
    (first, said, start), (second, said_later, later) = asyncio.run(
        transcripts(server.url, b"".join(audio), 2)
    )
    assert [first, second] == [said, said_later] == [server.text(path).strip() for path in shorts[:2]]
    assert start < len(audio[0]) / 48_000 < later
