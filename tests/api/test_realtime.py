"""Transcription sessions of OpenAI's Realtime API, over sockets and with OpenAI's own client."""

import asyncio
import base64
import json
import socket
import time
from contextlib import contextmanager, suppress

import pytest
from openai import OpenAI
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter
from structlog.testing import capture_logs
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from app.api.audio import realtime, realtime_session, realtime_sessions
from app.common.errors import ClipFailed, DiskFull, ModelUnavailable, NotReady, StreamRefused
from app.live.events import (
    Agreed,
    Committed,
    Completed,
    Failed,
    SpeechStarted,
    SpeechStopped,
    StreamOptions,
    TurnDetection,
)
from app.server.listening import STREAM_PATH
from tests.api.fake_live import FakeLiveService, FakeStream
from tests.api.fake_service import OTHER_MODEL, segment
from tests.api.waiting import wait_for
from workers.messages import ALAW, SAMPLE_RATE, ULAW

AUDIO = b"\1\0" * 2400  # 100 ms at 24 kHz
EVENTS = TypeAdapter(RealtimeServerEvent)
KEYS = ("ann:sk-ann", "bob:sk-bob")


@pytest.fixture(scope="module", autouse=True)
def _live():
    """The live service of the sites that start."""
    made = FakeLiveService(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.main.LiveService", lambda service: made)
        yield made


@pytest.fixture(autouse=True)
def live(_live):
    _live.reset()
    return _live


def opened(site, query="", *, key=None, **options):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= options.pop("headers", {})
    url = f"ws://{options.pop('host', '127.0.0.1')}:{site.port}{STREAM_PATH}{query}"
    connection = socket.create_connection(("127.0.0.1", site.port))
    client = connect(url, proxy=None, sock=connection, additional_headers=headers, **options)
    return client.__enter__()  # the caller closes it


def sent(client, kind, **fields):
    client.send(json.dumps({"type": kind, **fields}))


def append(client, audio=AUDIO):
    sent(client, "input_audio_buffer.append", audio=base64.b64encode(audio).decode())


def received(client, kind=None):
    """The next event, or the next of a type. OpenAI's client must understand all of them."""
    while True:
        text = client.recv(15)
        event = json.loads(text)
        EVENTS.validate_json(text, strict=True)
        if kind in (None, event["type"]):
            return event


def ending(client):
    """The events until the server closes, and the code of that."""
    events = []
    with suppress(ConnectionClosed):
        while True:
            events.append(received(client))
    return events, client.close_code


def broken(site, live):
    """The id of a stream with audio whose connection broke, and the connection."""
    client = opened(site)
    id = received(client)["session"]["id"]
    append(client)
    wait_for(lambda: live.streams[-1].audio)
    client.socket.shutdown(socket.SHUT_RDWR)
    return client, id


@contextmanager
def refusal(site, query="", **options):
    """The status and the error with which a handshake is refused."""
    with pytest.raises(InvalidStatus) as refused:
        opened(site, query, **options)
    response = refused.value.response
    error = json.loads(response.body)["error"]
    assert response.headers["x-request-id"]
    yield response.status_code, error


class TestOpenAI:
    def test_a_session_of_the_python_client(self, serve, live):
        site = serve(api_keys=KEYS)
        client = OpenAI(base_url=f"{site.url}/v1", api_key="sk-ann")
        transcription = {
            "model": "gpt-realtime-whisper",
            "language": "German",
            "languages": ["de", "en"],
            "prompt": "Grüße.",
            "keywords": ["Whisper", "Fleet"],
            "delay": "low",
        }
        with client.realtime.connect(extra_query={"intent": "transcription"}) as connection:
            created = connection.recv()
            assert created.type == "session.created"
            assert created.session.audio.input.transcription.model == "tiny"
            connection.session.update(
                session={
                    "type": "transcription",
                    "audio": {
                        "input": {
                            "format": {"type": "audio/pcm", "rate": 24000},
                            "transcription": transcription,
                            "noise_reduction": {"type": "near_field"},
                            "turn_detection": {"type": "server_vad", "threshold": 0.6},
                        }
                    },
                    "include": ["item.input_audio_transcription.logprobs"],
                }
            )
            updated = connection.recv()
            assert updated.session.audio.input.transcription.to_dict() == transcription | {"language": "de"}
            assert updated.session.audio.input.turn_detection.silence_duration_ms == 500
            assert updated.session.without_effect == [
                "audio.input.noise_reduction",
                "audio.input.transcription.delay",
                "audio.input.transcription.languages",
                "include",
            ]
            [stream] = live.streams
            assert stream.options == StreamOptions(
                "de", (), "Grüße.", "Whisper, Fleet", TurnDetection(threshold=0.6)
            )
            connection.input_audio_buffer.append(audio=base64.b64encode(AUDIO * 20).decode())
            wait_for(lambda: len(stream.audio) == len(AUDIO) * 20)
            connection.input_audio_buffer.commit()
            texts = [connection.recv() for _ in range(4)]
            kinds = [event.type.rpartition(".")[2] for event in texts]
            assert kinds == ["committed", "added", "done", "completed"]
            assert texts[-1].transcript == "96000 bytes."
            connection.input_audio_buffer.clear()
            assert connection.recv().type == "input_audio_buffer.cleared"
        wait_for(lambda: stream.is_closed)

    def test_the_node_client_knows_its_subprotocols(self, serve, caplog):
        site = serve(api_keys=KEYS)
        caplog.set_level("DEBUG")
        protocols = ["realtime", "openai-insecure-api-key.sk-ann", "openai-beta.realtime-v1"]
        with capture_logs() as logs:
            with opened(site, subprotocols=protocols) as client:
                assert client.subprotocol == "realtime"
                assert "sk-ann" not in str(client.response.headers)
            wait_for(lambda: [line for line in logs if line["event"] == "request"])
        [line] = [line for line in logs if line["event"] == "request"]
        assert (line["status"], line["owner"], line["path"]) == (101, "ann", STREAM_PATH)
        of_libraries = [record for record in caplog.records if record.name != "websockets.client"]
        assert "sk-ann" not in str(logs) + "".join(record.getMessage() for record in of_libraries)

    def test_what_a_turn_tells(self, site, live):
        with opened(site) as client:
            received(client, "session.created")
            segments = (segment("One two.", 1, 2), segment("Three.", 2, 3))
            live.streams[0].tell(
                SpeechStarted(0, SAMPLE_RATE),
                Agreed(0, "One"),
                Agreed(0, " two."),
                SpeechStopped(0, 3 * SAMPLE_RATE),
                Committed(0),
                Agreed(0, " Three."),
                Completed(0, "One two. Three.", segments, 2 * SAMPLE_RATE, "en"),
                Committed(1),
                Agreed(1, "Fore"),
                Completed(1, "Four.", (), SAMPLE_RATE, ""),
                Committed(2),
                Failed(2, ClipFailed("It broke.")),
            )
            events = []
            while not events or not events[-1]["type"].endswith(".failed"):
                events.append(received(client))
        short = [
            (
                event["type"].rpartition(".")[2],
                event.get("delta") or event.get("transcript") or event.get("text"),
            )
            for event in events
        ]
        assert short == [
            ("speech_started", None),
            ("delta", "One"),
            ("delta", " two."),
            ("speech_stopped", None),
            *(("committed", None), ("added", None), ("done", None)),
            ("delta", " Three."),
            ("segment", "One two."),
            ("segment", "Three."),
            ("completed", "One two. Three."),
            *(("committed", None), ("added", None), ("done", None)),
            ("delta", "Fore"),
            ("completed", "Four."),  # it replaces the delta
            *(("committed", None), ("added", None), ("done", None)),
            ("failed", None),
        ]
        assert (events[0]["audio_start_ms"], events[3]["audio_end_ms"]) == (1000, 3000)
        first, second = events[4], events[11]
        assert (first["previous_item_id"], second["previous_item_id"]) == (None, first["item_id"])
        assert events[10]["usage"] == {"type": "duration", "seconds": 2.0}
        assert events[10]["words"][0] == {"word": "One", "start": 1.0, "end": 1.5}
        assert events[10]["languages"] == [{"code": "en"}]
        assert events[-1]["error"]["code"] == "clip_failed"
        numbers = [int(event["event_id"].removeprefix("event_")) for event in events]
        assert numbers == list(range(1, len(events) + 1))

    @pytest.mark.parametrize(("format", "encoding"), [("audio/pcmu", ULAW), ("audio/pcma", ALAW)])
    def test_telephones(self, site, live, format, encoding):
        with opened(site) as client:
            input = {"format": {"type": format}, "turn_detection": None}
            sent(client, "session.update", session={"type": "transcription", "audio": {"input": input}})
            updated = received(client, "session.updated")["session"]["audio"]["input"]
            assert (updated["format"], updated["turn_detection"]) == ({"type": format}, None)
            append(client, b"\xff" * 800)
            wait_for(lambda: live.streams[0].encodings == [encoding])
            assert live.streams[0].options.turns is None

    def test_models(self, serve, live):
        site = serve(model_aliases="")
        with opened(site, f"?model={OTHER_MODEL}") as client:
            assert received(client)["session"]["audio"]["input"]["transcription"]["model"] == OTHER_MODEL
            for model in ("gpt-live-transcribe", "gpt-transcribe", OTHER_MODEL):
                transcription = {"model": model}
                session = {"type": "transcription", "audio": {"input": {"transcription": transcription}}}
                sent(client, "session.update", session=session)
                received(client, "session.updated")
            assert [stream.model for stream in live.streams] == [OTHER_MODEL, "tiny", OTHER_MODEL]
            assert [stream.is_closed for stream in live.streams] == [True, True, False]
            append(client)
            transcription["model"] = "whisper-1"
            sent(client, "session.update", session=session)
            assert "cannot change" in received(client, "error")["error"]["message"]


UPDATE = '{"type": "session.update", "event_id": "mine", "session": %s}'
INPUT = UPDATE % '{"type": "transcription", "audio": {"input": %s}}'


@pytest.mark.parametrize(
    ("event", "param", "says"),
    [
        ("no json", None, "JSON"),
        ("[]", None, "JSON object"),
        ("{}", "type", "types are session.update"),
        ('{"type": 5, "event_id": 5}', "type", "types are"),
        ('{"type": "response.create", "event_id": "mine"}', "type", "no conversations"),
        ('{"type": "transcription_session.update"}', "type", "session.update"),
        ('{"type": "input_audio_buffer.append"}', "audio", "required"),
        ('{"type": "input_audio_buffer.append", "audio": "%%%"}', "audio", "base64"),
        ('{"type": "input_audio_buffer.append", "audio": 7}', "audio", "base64"),
        ('{"type": "input_audio_buffer.commit", "all": true}', "all", "not known"),
        ('{"type": "input_audio_buffer.commit", "event_id": "mine"}', None, "no audio"),
        (UPDATE % '{"type": "realtime"}', "session.type", "no conversations"),
        (
            INPUT % '{"turn_detection": {"type": "semantic_vad"}}',
            "session.audio.input.turn_detection.type",
            "server_vad",
        ),
        (
            INPUT % '{"format": {"type": "audio/pcm", "rate": 16000}}',
            "session.audio.input.format.rate",
            "24000",
        ),
        (
            INPUT % '{"format": {"type": "audio/pcmu", "rate": 24000}}',
            "session.audio.input.format.rate",
            "8000",
        ),
        (
            INPUT % '{"transcription": {"model": "gpt-5"}}',
            "model",
            "not offered",
        ),
        (
            INPUT % '{"transcription": {"language": "xx"}}',
            "session.audio.input.transcription.language",
            "not a language",
        ),
    ],
)  # fmt: skip
def test_a_faulty_event_is_answered_and_the_session_goes_on(site, live, event, param, says):
    with opened(site) as client:
        client.send(event)
        error = received(client, "error")["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
        assert says in error["message"]
        assert error["event_id"] == ("mine" if '"mine"' in event else None)
        append(client)
        sent(client, "input_audio_buffer.commit")
        assert received(client, "conversation.item.input_audio_transcription.completed")
        assert live.streams[0].options == StreamOptions()


def test_many_faulty_events_in_succession(site):
    with opened(site) as client:
        for _ in range(3):
            for _ in range(realtime_session.MAX_ERRORS - 1):
                client.send("?")
            sent(client, "input_audio_buffer.clear")
        received(client, "input_audio_buffer.cleared")
        for _ in range(realtime_session.MAX_ERRORS):
            client.send("?")
        events, code = ending(client)
    assert (events[-1]["error"]["code"], code) == ("too_many_errors", 1008)


def test_a_stream_says_what_it_refuses(site, live, monkeypatch):
    with opened(site) as client:
        received(client)

        async def refuse(*args):
            raise StreamRefused("Too much.", code="input_audio_buffer_full")

        monkeypatch.setattr(live.streams[0], "append", refuse)
        for _ in range(realtime_session.MAX_ERRORS + 1):  # the events are not faulty
            append(client)
            assert received(client)["error"]["code"] == "input_audio_buffer_full"


def test_a_stream_that_takes_no_more(site, live):
    with opened(site) as client:
        append(client)
        wait_for(lambda: live.streams[0].audio)
        live.streams[0].fault = DiskFull("There is no space left.")
        append(client)
        events, code = ending(client)
    assert (events[-1]["error"]["code"], code) == ("disk_full", 1011)
    assert len(live.streams[0].audio) == len(AUDIO)


# Guards

FOREIGN = {"headers": {"Origin": "https://evil.example"}}
ALLOWED = {"headers": {"Origin": "https://page.example"}}


IN_BASE64 = "q/8+Zz+/w=="


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        (b"Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.q/8+Zz+/w==", 101, None),
        (b"Sec-WebSocket-Protocol: openai-insecure-api-key.q%2F8%2BZz%2B%2Fw%3D%3D, realtime", 101, None),
        (b"Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.sk-ann\xff", 401, "invalid_api_key"),
        (b"Sec-WebSocket-Protocol: r\xe9al, openai-insecure-api-key.sk-ann", 400, "unknown_subprotocol"),
        (b"Authorization: Bearer sk-ann\r\nSec-WebSocket-Extensions: \xff", 426, "web_socket_required"),
        (b"Authorization: Bearer sk-ann\r\nConnection: \xff", 426, "web_socket_required"),
    ],
)
def test_every_handshake_is_answered_and_no_key_is_logged(serve, live, caplog, headers, status, code):
    site = serve(api_keys=(*KEYS, f"eve:{IN_BASE64}"))
    caplog.set_level("DEBUG")
    head = b"\r\n".join(
        [
            b"GET %s HTTP/1.1" % STREAM_PATH.encode(),
            b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            headers,
            b"\r\n",
        ]
    )
    with capture_logs() as logs, socket.create_connection(("127.0.0.1", site.port), 5) as connection:
        connection.sendall(head)
        answer = connection.recv(65536)
        while code and not answer.endswith(b"}}"):
            answer += connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer
        if code:
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == code
        connection.close()
        wait_for(lambda: [line for line in logs if line["event"] == "request"])
    wait_for(lambda: not site.server.server_state.tasks)
    written = f"{logs} {answer!r} {[(record.getMessage(), record.exc_text) for record in caplog.records]}"
    assert not [key for key in ("sk-ann", IN_BASE64, "q%2F8") if key in written]
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


@pytest.mark.parametrize(
    ("settings", "options", "status", "code"),
    [
        ({}, FOREIGN, 403, "origin_not_allowed"),
        ({}, {"host": "rebound.example"}, 421, "host_not_allowed"),
        ({"api_keys": KEYS}, {}, 401, "invalid_api_key"),
        ({"api_keys": KEYS}, {"key": "sk-eve"}, 401, "invalid_api_key"),
        (
            {"api_keys": KEYS},
            {"subprotocols": ["realtime", "openai-insecure-api-key.no"]},
            401,
            "invalid_api_key",
        ),
        ({}, {"subprotocols": ["other"]}, 400, "unknown_subprotocol"),
        ({}, {"query": "?model=gpt-5"}, 404, "model_not_found"),
        ({}, {"query": "?intent=conversation"}, 400, None),
        ({}, {"query": "?session=sess_1"}, 404, "stream_not_found"),
    ],
)
def test_who_may_not_open_a_stream(serve, live, caplog, settings, options, status, code):
    site = serve(cors_origins=("https://page.example",), **settings)
    with refusal(site, options.pop("query", ""), **options) as (found, error):
        assert (found, error["code"]) == (status, code)
        assert error["type"] == "invalid_request_error"
    assert not live.streams
    wait_for(lambda: not site.server.server_state.tasks)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    metrics = site.client.get("/metrics", headers={"Authorization": "Bearer sk-ann"})
    if not settings:
        assert f'method="GET",route="{STREAM_PATH}",status="{status}"' in metrics.text


def test_who_may_open_one(serve, live):
    site = serve(cors_origins=("https://page.example",), api_keys=KEYS)
    own = {"headers": {"Origin": f"http://127.0.0.1:{site.port}"}}
    for options in (ALLOWED, own, {}):
        with opened(site, key="sk-ann", **options) as client:
            assert received(client)["type"] == "session.created"
    assert len(live.streams) == 3


def test_a_shared_link_opens_no_stream(serve, live):
    site = serve(api_keys=KEYS)
    site.client.headers["Authorization"] = "Bearer sk-ann"
    job = site.submitted()
    site.finished(job)
    link = site.client.post(f"/v1/jobs/{job}/shared", json={}).json()
    with refusal(site, key=link["token"]) as (status, error):
        assert (status, error["code"]) == (403, "not_allowed")
    assert not live.streams


def test_requests_without_an_upgrade(site):
    response = site.client.get(STREAM_PATH)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (426, "web_socket_required")
    assert response.headers["upgrade"] == "websocket"
    assert "proxy" in error["message"]
    for path in ("calls", "client_secrets"):
        response = site.client.post(f"{STREAM_PATH}/{path}", json={})
        assert (response.status_code, response.json()["error"]["code"]) == (400, "unsupported")
    assert site.client.get(f"{STREAM_PATH}/elsewhere").status_code in (404, 405)


@pytest.mark.parametrize(
    ("error", "status"),
    [(NotReady("No worker."), 503), (ModelUnavailable("Not here."), 503), (None, 503)],
)
def test_a_service_that_is_not_ready(serve, tmp_path, live, error, status):
    site = serve(data_dir=tmp_path)
    live.error = error
    if error is None:
        site.server.config.app.state.stopping()
    with refusal(site) as (found, detail):
        assert found == status
        assert detail["type"] == "server_error"


def test_owners_share_the_streams(serve, live):
    site = serve(max_streams=1, api_keys=KEYS)
    with opened(site, key="sk-ann"):
        with refusal(site, key="sk-ann") as (status, error):
            assert (status, error["code"]) == (429, "too_many_streams")
            assert "WHISPER_MAX_STREAMS" in error["message"]
        with opened(site, key="sk-bob"):  # a place is guaranteed to each
            pass
    wait_for(lambda: live.streams[0].is_closed)
    with opened(site, key="sk-ann"):
        pass


# Ends


def test_a_broken_stream_goes_on(serve, live):
    site = serve(api_keys=KEYS)
    client = opened(site, key="sk-ann")
    id = received(client)["session"]["id"]
    append(client)
    append(client, AUDIO[:-2])
    sent(client, "input_audio_buffer.commit")
    seen = received(client, "conversation.item.added")["event_id"]
    wait_for(lambda: live.streams[0].items)
    with suppress(ConnectionClosed):
        client.send("x" * (2 << 20))  # more than a message may have
        client.recv()
    [stream] = live.streams
    wait_for(lambda: site.admission.live_streams.held == 1)
    stream.tell(Agreed(1, "Later."))
    query = f"?session={id}&last_event_id={seen}"
    with refusal(site, query, key="sk-bob") as (status, error):
        assert (status, error["code"]) == (404, "stream_not_found")
    with refusal(site, f"?session={id}&last_event_id=event_99", key="sk-ann") as (status, error):
        assert (status, error["param"]) == (400, "last_event_id")
    with opened(site, query, key="sk-ann") as client:
        created = received(client)
        assert (created["type"], created["event_id"], created["session"]["id"]) == (
            "session.created",
            seen,
            id,
        )
        assert created["session"]["received_bytes"] == 2 * len(AUDIO) - 2
        assert created["session"]["received_ms"] == 199.958
        assert created["session"]["committed_bytes"] == 2 * len(AUDIO) - 2
        kinds = [received(client)["type"].rpartition(".")[2] for _ in range(3)]
        assert kinds == ["done", "completed", "delta"]
        append(client)
        wait_for(lambda: len(stream.audio) == 3 * len(AUDIO) - 2)
    wait_for(lambda: stream.is_closed)
    assert site.admission.live_streams.held == 0
    assert len(live.streams) == 1


def test_a_client_that_continues_knows_whether_its_commit_arrived(site, live):
    with opened(site) as client:
        id = received(client)["session"]["id"]
        append(client)
        sent(client, "input_audio_buffer.commit")
        sent(client, "input_audio_buffer.commit")  # refused: nothing is left to commit
        append(client)
        wait_for(lambda: len(live.streams[0].audio) == 2 * len(AUDIO))
        client.socket.shutdown(socket.SHUT_RDWR)  # before the second commit
    with opened(site, f"?session={id}") as client:
        session = received(client)["session"]
        assert (session["received_bytes"], session["committed_bytes"]) == (2 * len(AUDIO), len(AUDIO))


def test_the_newest_connection_wins(site, live):
    with opened(site) as first:
        id = received(first)["session"]["id"]
        live.streams[0].paused = True
        append(first)  # which is still to be taken when the second comes
        time.sleep(0.1)
        live.streams[0].tell(Agreed(0, "One."))
        second = opened(site, f"?session={id}")
        time.sleep(0.1)
        live.streams[0].paused = False
        assert received(second)["session"]["received_bytes"] == len(AUDIO)
        events, code = ending(first)
        assert (events[0]["delta"], code) == ("One.", 1008)
        assert received(second)["delta"] == "One."
    with second:
        append(second)
        wait_for(lambda: len(live.streams[0].audio) == 2 * len(AUDIO))
        assert not live.streams[0].is_closed
    wait_for(lambda: live.streams[0].is_closed)


def test_a_stream_waits_a_minute_for_its_client(site, live, monkeypatch):
    monkeypatch.setattr(realtime_sessions, "RESUME_S", 0.3)
    _, id = broken(site, live)
    wait_for(lambda: live.streams[0].is_closed)
    wait_for(lambda: site.admission.live_streams.held == 0)
    with refusal(site, f"?session={id}") as (status, _):
        assert status == 404


def test_a_new_stream_takes_the_place_of_one_that_waits(serve, live, monkeypatch):
    waiting = []
    disconnected = realtime_sessions.RealtimeSessions.disconnected
    monkeypatch.setattr(
        realtime_sessions.RealtimeSessions,
        "disconnected",
        lambda streams, stream: waiting.append(disconnected(streams, stream)),
    )
    site = serve(max_streams=1)
    broken(site, live)
    wait_for(lambda: waiting)
    with opened(site) as client:
        assert received(client)["type"] == "session.created"
        wait_for(lambda: live.streams[0].is_closed)
        with refusal(site) as (status, _):
            assert status == 429


def test_a_client_that_never_learnt_of_its_stream(site, live, monkeypatch):
    async def leave(self, *args):
        raise ConnectionResetError

    monkeypatch.setattr(realtime.UpgradeResponse, "__call__", leave)
    with suppress(Exception):
        opened(site, open_timeout=1)
    wait_for(lambda: live.streams[0].is_closed)
    wait_for(lambda: site.admission.live_streams.held == 0)


def test_a_model_that_cannot_be_opened_leaves_the_one_before(site, live):
    with opened(site) as client:
        received(client)
        wanted = {"type": "transcription", "audio": {"input": {"transcription": {"model": OTHER_MODEL}}}}
        live.error = ModelUnavailable("It cannot be loaded.")
        for _ in range(2):
            sent(client, "session.update", session=wanted)
            assert received(client)["error"]["message"] == "It cannot be loaded."
        live.error = None
        sent(client, "session.update", session=wanted)
        assert received(client)["session"]["audio"]["input"]["transcription"]["model"] == OTHER_MODEL
        assert live.streams[-1].model == OTHER_MODEL


def test_a_client_that_reads_too_slowly(site, live, monkeypatch):
    monkeypatch.setattr(realtime_session, "UNSENT_CHARS", 1000)
    with opened(site) as client:
        received(client)
        live.streams[0].tell(*(Agreed(0, "word " * 50) for _ in range(50)))
        assert ending(client)[1] == 1008
    wait_for(lambda: live.streams[0].is_closed)


def test_events_that_are_no_longer_kept(site, live, monkeypatch):
    monkeypatch.setattr(realtime_session, "KEPT_CHARS", 1000)
    with opened(site) as client:
        id = received(client)["session"]["id"]
        append(client)
        live.streams[0].tell(*(Agreed(0, f" word{number}") for number in range(50)))
        last = [received(client)["event_id"] for _ in range(50)][-1]  # all of those that were to be sent
        live.streams[0].tell(Agreed(0, " more"))
        last = received(client)["event_id"]
        with refusal(site, f"?session={id}&last_event_id=event_1") as (status, error):
            assert (status, error["code"]) == (404, "event_not_kept")
        client.socket.shutdown(socket.SHUT_RDWR)
    with opened(site, f"?session={id}&last_event_id={last}") as client:
        assert received(client)["event_id"] == last


def test_the_last_event_is_sent_again_although_it_is_large(site, live, monkeypatch):
    monkeypatch.setattr(realtime_session, "KEPT_CHARS", 1000)
    with opened(site) as client:
        session = received(client)["session"]["id"]
        append(client)
        live.streams[0].tell(Agreed(0, " word"))
        before = received(client)["event_id"]
        live.streams[0].tell(Agreed(0, " word" * 1000))
        received(client)  # perhaps not: its connection breaks
        client.socket.shutdown(socket.SHUT_RDWR)
    live.streams[0].tell(Agreed(0, " more"))
    with opened(site, f"?session={session}&last_event_id={before}") as client:
        received(client)
        assert received(client)["delta"] == " word" * 1000
        assert received(client)["delta"] == " more"


def test_no_audio_for_long(site, live, monkeypatch):
    monkeypatch.setattr(realtime, "IDLE_S", 0.5)
    with opened(site) as client:
        append(client)
        events, code = ending(client)
    assert (events[-1]["error"]["code"], code) == ("stream_idle", 1008)
    assert "bytes." in [event.get("transcript", "")[-6:] for event in events]  # the last text has come
    wait_for(lambda: live.streams[0].is_closed)


def test_a_client_that_waits_for_texts_is_not_idle(site, live, monkeypatch):
    monkeypatch.setattr(realtime, "IDLE_S", 0.2)
    monkeypatch.setattr(FakeStream, "owes_text", True)
    with opened(site) as client:
        assert received(client)["type"] == "session.created"
        append(client)
        with suppress(TimeoutError):
            raise AssertionError(client.recv(1))
        live.streams[0].owes_text = False
        events, _ = ending(client)
    assert events[-1]["error"]["code"] == "stream_idle"


def test_a_fault_of_the_disk_is_none_of_the_connection(site, live):
    with opened(site) as client:
        received(client)
        live.error = OSError("The disk is gone.")
        audio = {"input": {"transcription": {"model": OTHER_MODEL}}}
        sent(client, "session.update", session={"type": "transcription", "audio": audio})
        _, code = ending(client)
    assert code == 1011
    wait_for(lambda: site.admission.live_streams.held == 0)


def test_the_longest_stream(serve, live):
    site = serve(max_duration_s=1)
    with opened(site) as client:
        for _ in range(12):
            append(client)
        events, code = ending(client)
    assert (events[-1]["error"]["code"], code) == ("stream_too_long", 1008)
    assert len(live.streams[0].audio) == 11 * len(AUDIO)


def test_a_service_that_stops_lets_streams_end(serve, tmp_path, live):
    site = serve(data_dir=tmp_path)
    with opened(site) as client, opened(site) as broken:
        append(client)
        received(client)
        received(broken)
        broken.socket.shutdown(socket.SHUT_RDWR)
        wait_for(lambda: live.streams[0].audio)
        site.server.should_exit = True
        events, code = ending(client)
    assert events[-2]["transcript"] == f"{len(AUDIO)} bytes."
    assert (events[-1]["error"]["code"], code) == ("service_stopping", 1012)
    assert live.streams[0].is_finished
    wait_for(lambda: all(stream.is_closed for stream in live.streams))


def test_a_stream_that_cannot_end_in_time(serve, tmp_path, live, monkeypatch):
    monkeypatch.setattr("app.commands.serve.GRACE_S", 0.3)
    site = serve(data_dir=tmp_path)
    with opened(site) as client:
        received(client)
        live.streams[0].paused = True
        append(client)
        site.server.should_exit = True
        live.streams[0].uncommitted = 0
        live.streams[0].finish = asyncio.Event().wait
        _, code = ending(client)
    assert code == 1012
    wait_for(lambda: live.streams[0].is_closed)
