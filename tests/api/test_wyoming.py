"""Wyoming by its own client: what is there, and speech that becomes text while it is spoken."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest
from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import Event, async_read_event
from wyoming.info import Describe, Info, SelectProgram
from wyoming.ping import Ping, Pong

from app.api.wyoming import server, session
from app.api.wyoming.server import WyomingServer
from app.common.errors import ClipFailed, InvalidSetting, NotReady, StreamRefused
from app.common.owners import Client
from app.intake.limits import Admission, Limiter
from app.live.events import Agreed, Committed, Completed, Failed, StreamOptions
from app.settings import Settings
from tests.api.fake_live import FakeLiveService, FakeStream
from tests.api.fake_service import OTHER_MODEL, catalogue
from tests.event_loop import until
from workers.messages import PCM_24K, Encoding

pytestmark = pytest.mark.anyio
SECOND = bytes(32_000)
FORMAT = {"rate": 16_000, "width": 2, "channels": 1}


class Site:
    """A server, and what it has opened."""

    def __init__(self, server: WyomingServer, streams: FakeLiveService, places: Limiter) -> None:
        self.server = server
        self.streams = streams
        self.places = places

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncTcpClient]:
        assert self.server.port is not None
        async with AsyncTcpClient("127.0.0.1", self.server.port, read_timeout=10) as client:
            yield client

    async def idle(self) -> None:
        """Wait until nothing is left of any client."""
        async with asyncio.timeout(10):
            while self.server.clients or self.places.held:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.005)
        assert all(stream.is_closed for stream in self.streams.streams)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    settings = Settings(wyoming_port="0", max_streams=3, _env_file=None)
    streams, places = FakeLiveService(), Admission(settings, 0).live_streams
    streams.events = []
    server = WyomingServer(settings, streams.open, catalogue(), places)  # type: ignore[arg-type]
    await server.start()
    try:
        yield Site(server, streams, places)
    finally:
        await server.stop()


def completed(text: str, item: int = 0) -> Completed:
    return Completed(item, text, (), 32_000, "en")


async def speak(client: AsyncTcpClient, *chunks: bytes, **audio_format: int) -> list[Event]:
    """All events until the text is complete, or the connection ends."""
    sent = FORMAT | audio_format
    await client.write_event(AudioStart(**sent).event())
    for chunk in chunks:
        await client.write_event(AudioChunk(**sent, audio=chunk).event())
    await client.write_event(AudioStop().event())
    return [event async for event in answers(client)]


async def answers(client: AsyncTcpClient) -> AsyncIterator[Event]:
    while (event := await client.read_event()) is not None:
        yield event
        if TranscriptStop.is_type(event.type):
            return


async def test_what_is_there_is_described(site: Site) -> None:
    async with site.client() as client:
        await client.write_event(Describe().event())
        event = await client.read_event()
        assert event is not None
        default, other = Info.from_event(event).asr
    assert (default.name, default.installed, default.supports_transcript_streaming) == (
        "whisperfleet",
        True,
        True,
    )
    [model] = default.models
    assert (model.name, model.installed) == ("tiny", True)
    assert {"en", "de", "jv"} <= set(model.languages)
    assert model.attribution.url.startswith("https://")
    assert [model.name for model in other.models] == [OTHER_MODEL]
    assert other.models[0].languages == ["en"], "its name says so"


async def test_speech_becomes_text_while_it_is_spoken(site: Site) -> None:
    site.streams.events = [
        Agreed(0, "Turn on"),
        Agreed(0, " the"),
        Committed(0),
        completed("Turn on the light."),
    ]
    async with site.client() as client:
        names = Transcribe(language="en-GB", transcript_names=["Küche"], transcript_terms=["lamp"])
        await client.write_event(names.event())
        events = await speak(client, SECOND[:2048], SECOND, SECOND[:10])
        kinds = [event.type for event in events]
        chunks = [
            TranscriptChunk.from_event(event).text for event in events if event.type == "transcript-chunk"
        ]
        assert TranscriptStart.is_type(kinds[0])
        assert chunks == ["Turn on", " the"]
        final = Transcript.from_event(events[-2])
        assert (final.text, final.language) == ("Turn on the light.", "en")
        # The next one on the same connection.
        site.streams.events = [completed("Yes.")]
        [*_, second, _] = await speak(client, SECOND)
        assert Transcript.from_event(second).text == "Yes."
    first, _ = site.streams.streams
    assert len(first.audio) == 2048 + len(SECOND) + 10
    assert (first.model, first.options) == (
        "tiny",
        StreamOptions(language="en", hotwords="Küche, lamp", turns=None),
    )
    await site.idle()


@pytest.mark.parametrize("chunks", [(), (SECOND,)])
async def test_a_text_comes_also_if_nobody_spoke(site: Site, chunks: tuple[bytes, ...]) -> None:
    async with site.client() as client:
        events = await speak(client, *chunks)
        assert [event.type for event in events] == ["transcript-start", "transcript", "transcript-stop"]
        assert Transcript.from_event(events[1]).text == ""


async def test_audio_stop_alone_has_a_text(site: Site) -> None:
    async with site.client() as client:
        await client.write_event(AudioStop().event())
        assert [event.type async for event in answers(client)][1] == "transcript"
    assert not site.streams.streams


async def test_another_model_is_chosen_by_name_or_as_a_program(site: Site) -> None:
    async with site.client() as client:
        await client.write_event(Transcribe(name=OTHER_MODEL).event())
        await speak(client, SECOND)
    async with site.client() as client:
        await client.write_event(SelectProgram(f"whisperfleet {OTHER_MODEL}").event())
        await client.write_event(Transcribe(language="en").event())
        await speak(client, SECOND, rate=24_000)
    assert [stream.model for stream in site.streams.streams] == [OTHER_MODEL, OTHER_MODEL]
    assert site.streams.streams[1].encodings == [PCM_24K]


async def test_other_rates_widths_and_channels_are_taken(site: Site) -> None:
    async with site.client() as client:
        await client.write_event(Transcribe(language="auto").event())
        await speak(client, bytes(6 * 7_000), rate=44_100, width=3, channels=2)
    [stream] = site.streams.streams
    assert set(stream.encodings) == {Encoding(44_100, 3, 2)}
    assert (len(stream.audio), stream.options.language) == (42_000, None)


async def test_a_ping_is_answered(site: Site) -> None:
    async with site.client() as client:
        for text in ("are you there?", None):
            await client.write_event(Ping(text).event())
            event = await client.read_event()
            assert event is not None
            assert Pong.is_type(event.type)
            assert Pong.from_event(event).text == text


async def test_events_that_are_unknown_are_ignored(site: Site) -> None:
    async with site.client() as client:
        await client.write_event(Event("played", {"text": "x"}, b"123"))
        assert (await speak(client, SECOND))[-1].type == "transcript-stop"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([AudioStart(44_101, 2, 1).event()], "a multiple of 25"),
        ([AudioStart(192_000, 2, 1).event()], "from 4000 to 96000"),
        ([AudioStart(16_000, 2, 3).event()], "1 to 2 channels"),
        ([AudioStart(16_000, 0, 1).event()], "1 to 4 bytes"),
        ([Event("audio-start", {"rate": [], "width": 2, "channels": 1})], "PCM"),
        ([AudioStart(**FORMAT).event(), AudioChunk(**FORMAT, audio=b"123").event()], "middle of a sample"),
        ([Transcribe(language="Klingon").event()], "not a language"),
        ([Transcribe(name=OTHER_MODEL, language="de").event()], "does not know"),
        ([Transcribe(name="gpt-9").event()], "not offered"),
        ([Event("transcribe", {"name": 7})], "no text"),
        ([Event("transcribe", {"transcript_terms": "x"})], "no list"),
    ],
)
async def test_what_is_not_possible_is_said(site: Site, events: list[Event], reason: str) -> None:
    async with site.client() as client:
        for event in events:
            await client.write_event(event)
        *_, last = [event async for event in answers(client)]
        assert reason in Error.from_event(last).text
        # As Home Assistant does: it reads nothing until all is sent.
    await site.idle()


async def test_a_failure_is_an_error_and_no_empty_text(site: Site) -> None:
    site.streams.events = [completed("Turn"), Failed(1, ClipFailed("A clip failed."))]
    async with site.client() as client:
        events = await speak(client, SECOND)
        assert [event.type for event in events] == ["transcript-start", "error"]
    site.streams.error = NotReady("No worker is ready.", code="not_ready")
    async with site.client() as client:
        [event] = await speak(client, SECOND)
        assert Error.from_event(event) == Error("No worker is ready.", "not_ready")
    await site.idle()


async def test_audio_that_cannot_be_stored_is_an_error_and_no_empty_text(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeStream, "fault", StreamRefused("The service cannot store the audio."))
    async with site.client() as client:
        events = await speak(client, SECOND)
        assert [event.type for event in events] == ["transcript-start", "error"]


async def test_a_client_that_leaves_takes_nothing_with_it(site: Site) -> None:
    async with site.client() as client:
        await client.write_event(AudioStart(**FORMAT).event())
        await client.write_event(AudioChunk(**FORMAT, audio=SECOND).event())
        assert (await client.read_event()).type == "transcript-start"  # type: ignore[union-attr]
        assert site.places.held == 1
    await site.idle()


async def test_a_flood_of_events_lets_others_have_their_turn(site: Site) -> None:
    flood = b'{"type":"x"}\n' * 10_000
    server_turns = 0

    async def count_turns() -> None:
        nonlocal server_turns
        while True:
            await asyncio.sleep(0)
            server_turns += 1

    async with site.client() as client:
        await client.write_event(Describe().event())
        await client.read_event()
        _, writer = await asyncio.open_connection("127.0.0.1", site.server.port)
        writer.write(flood)
        counting = asyncio.create_task(count_turns())
        writer.write_eof()
        await writer.drain()
        async with asyncio.timeout(30):
            while site.server.clients > 1:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.001)
        counting.cancel()
        writer.close()
    assert server_turns > 5_000


async def test_a_client_that_leaves_before_its_text_takes_nothing_with_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never_finish(stream: FakeStream) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(session, "GONE_S", 0.05)
    monkeypatch.setattr(FakeStream, "finish", never_finish)
    async with site.client() as client:
        await client.write_event(AudioStart(**FORMAT).event())
        await client.write_event(AudioStop().event())
        assert (await client.read_event()).type == "transcript-start"  # type: ignore[union-attr]
        await asyncio.sleep(0.2)
        assert site.places.held == 1
    await site.idle()


async def test_clients_have_a_limit(site: Site) -> None:
    async with site.client(), site.client(), site.client() as third:
        await third.write_event(Describe().event())
        await third.read_event()
        async with site.client() as fourth:
            event = await fourth.read_event()
            assert event is not None
            assert "WHISPER_MAX_STREAMS" in Error.from_event(event).text
    await site.idle()
    async with site.client() as client:
        await client.write_event(Describe().event())
        assert await client.read_event() is not None


async def test_streams_share_their_limit_with_others(site: Site) -> None:
    ada, bob = Client("ada"), Client("bob")
    with site.places.hold(ada), site.places.hold(ada), site.places.hold(bob):
        async with site.client() as client:
            await speak(client, SECOND)  # one place is guaranteed to each owner
        with site.places.hold(Client()):
            async with site.client() as client:
                [event] = await speak(client, SECOND)
                assert event.data["code"] == "too_many_streams"


async def test_a_client_that_is_idle_is_disconnected(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "IDLE_S", 0.1)
    async with site.client() as client:
        await client.write_event(AudioStart(**FORMAT).event())
        events = [event.type async for event in answers(client)]
        assert events[-1] == "error"
    await site.idle()


async def test_a_client_that_does_not_read_is_disconnected(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LINGER_S", 0.1)
    _, writer = await asyncio.open_connection("127.0.0.1", site.server.port)
    writer.transport.pause_reading()  # type: ignore[attr-defined]

    async def ask_for_ever() -> None:
        while True:
            writer.write(json.dumps({"type": "describe"}).encode() + b"\n")
            await writer.drain()

    with pytest.raises(ConnectionError):
        await ask_for_ever()
    writer.close()
    await site.idle()


async def test_what_is_no_wyoming_is_refused_at_once(site: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.server.port)
    request = b'POST / HTTP/1.1\r\nHost: localhost\r\n\r\n{"type": "describe"}\n'
    writer.write(request)
    event = await async_read_event(reader)
    assert event is not None
    assert "another port" in Error.from_event(event).text
    assert await reader.read() == b""
    writer.close()
    await site.idle()


STOPPING = "service_stopping"


async def events_of(client: AsyncTcpClient) -> list[tuple[str, str]]:
    """The types of all events until the connection ends, and their texts or codes."""
    found = []
    while (event := await client.read_event()) is not None:
        found.append((event.type, event.data.get("code") or event.data.get("text", "")))
    return found


async def spoken(site: Site, client: AsyncTcpClient) -> None:
    """Send a second of speech, and wait until the stream has it."""
    await client.write_event(AudioStart(**FORMAT).event())
    await client.write_event(AudioChunk(**FORMAT, audio=SECOND).event())
    await until(lambda: site.streams.streams and site.streams.streams[-1].audio)


async def test_a_stop_answers_what_is_spoken_so_far(site: Site) -> None:
    site.streams.events = [completed("Turn on the light.")]
    async with site.client() as client, site.client() as idle:
        await spoken(site, client)
        site.server.begin_shutdown()
        stopping = asyncio.create_task(site.server.stop())
        await client.write_event(AudioChunk(**FORMAT, audio=SECOND).event())  # which it still says
        assert await events_of(client) == [
            ("transcript-start", ""),
            ("transcript", "Turn on the light."),
            ("transcript-stop", ""),
            ("error", STOPPING),
        ]
        assert await events_of(idle) == [("error", STOPPING)]
    async with asyncio.timeout(2):
        await stopping
    await site.idle()


async def test_speech_that_has_just_ended_is_whole_at_a_stop(site: Site) -> None:
    site.streams.events = [completed("All of it.")]
    async with site.client() as client:
        await spoken(site, client)
        site.server.begin_shutdown()
        for _ in range(20):
            await client.write_event(AudioChunk(**FORMAT, audio=SECOND).event())
        await client.write_event(AudioStop().event())
        assert ("transcript", "All of it.") in await events_of(client)
        assert len(site.streams.streams[0].audio) == 21 * len(SECOND)
    await site.server.stop()


async def test_a_text_that_is_not_there_in_time_is_an_error(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "GRACE_S", 0.2)
    monkeypatch.setattr(FakeStream, "finish", lambda stream: asyncio.Event().wait())
    async with site.client() as client:
        await client.write_event(AudioStart(**FORMAT).event())
        await client.write_event(AudioStop().event())
        await until(lambda: site.streams.streams)
        await site.server.stop()
        assert await events_of(client) == [("transcript-start", ""), ("error", STOPPING)]
    await site.idle()


async def test_an_address_in_use_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        settings = Settings(wyoming_port=f"127.0.0.1:{port}", _env_file=None)
        places = Admission(settings, 0).live_streams
        server = WyomingServer(settings, FakeLiveService().open, catalogue(), places)  # type: ignore[arg-type]
        with pytest.raises(InvalidSetting, match=f"WHISPER_WYOMING_PORT=127.0.0.1:{port}: "):
            await server.start()
