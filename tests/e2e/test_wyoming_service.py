"""Home Assistant's way: Wyoming's own client against the real service."""

import asyncio
import signal
from collections.abc import Iterable

import pytest
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.event import Event
from wyoming.info import Describe, Info

from tests.e2e.reading import word_error_rate
from tests.e2e.running import DATA, Server, free_port
from tests.media_files import read_pcm

pytestmark = pytest.mark.anyio
FORMAT = {"rate": 16_000, "width": 2, "channels": 1}
CHUNK_BYTES = 2048  # as Home Assistant's


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def site(module_commands, port: int) -> Server:
    return module_commands.ready(WHISPER_WYOMING_PORT=port, WHISPER_API_KEYS="sk-ada", key="sk-ada")


async def events_of(port: int, *sent: Event, last: str) -> list[Event]:
    """What the service answers, up to an event: as Home Assistant, the client reads once all is sent."""
    found = []
    async with AsyncTcpClient("127.0.0.1", port, read_timeout=60) as client:
        for event in sent:
            await client.write_event(event)
        while not found or found[-1].type != last:
            event = await client.read_event()
            assert event is not None, found
            found.append(event)
    return found


def speech(pcm: bytes) -> Iterable[Event]:
    yield AudioStart(**FORMAT).event()
    for start in range(0, len(pcm), CHUNK_BYTES):
        yield AudioChunk(**FORMAT, audio=pcm[start : start + CHUNK_BYTES]).event()
    yield AudioStop().event()


async def test_a_command_for_the_house(site: Server, port: int) -> None:
    info = Info.from_event((await events_of(port, Describe().event(), last="info"))[0])
    assert info.asr[0].installed
    assert info.asr[0].models[0].name == "demo"
    recording = DATA / "short00.flac"
    language = Transcribe(language=info.asr[0].models[0].languages[0])
    pcm = read_pcm(recording).tobytes()
    events = await events_of(port, language.event(), *speech(pcm), last="transcript-stop")
    text = Transcript.from_event(events[-2]).text
    uploaded = await asyncio.to_thread(site.text, recording, language=language.language)
    assert word_error_rate(uploaded, text) == 0
    chunks = "".join(event.data["text"] for event in events if event.type == "transcript-chunk")
    assert word_error_rate(text, chunks) <= 0.2, "drafts are nearly always right"

    assert not list((site.data / "pcm").iterdir())
    warning = "whoever reaches 127.0.0.1"
    assert warning in site.stderr, "a warning says that it needs no key"


async def test_what_is_spoken_before_a_stop_has_its_text(commands) -> None:
    port = free_port()
    site = commands.ready(WHISPER_WYOMING_PORT=port)
    *spoken, _ = speech(read_pcm(DATA / "short00.flac").tobytes())
    async with AsyncTcpClient("127.0.0.1", port, read_timeout=60) as client:
        for event in (Transcribe(language="en").event(), *spoken):
            await client.write_event(event)
        while (event := await client.read_event()) is not None and event.type != "transcript-chunk":
            pass
        site.signal(signal.SIGTERM)
        kinds = {}
        while (event := await client.read_event()) is not None:
            kinds[event.type] = event
    assert Transcript.from_event(kinds["transcript"]).text
    assert kinds["error"].data["code"] == "service_stopping"
    assert await asyncio.to_thread(site.wait) == 0
