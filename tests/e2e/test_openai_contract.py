"""Answers to OpenAI's client for Python, with and without await: formats, granularities, errors."""

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tests.e2e.reading import read_srt, read_vtt
from tests.e2e.running import DATA

pytestmark = pytest.mark.timeout(60)

SHORT = DATA / "short00.flac"
SAID = "The captain reads a long letter."
GRANULARITIES: list[list[str]] = [[], ["segment"], ["word"], ["segment", "word"]]

Ask = Callable[..., Any]


BOTH = pytest.mark.parametrize("ask", ["sync", "async"], indirect=True)


@pytest.fixture
def ask(request, server) -> Ask:
    """Calls `client.audio.transcriptions.create` or, with `to="translations"`, that of translations."""
    options = {"base_url": f"{server.url}/v1", "max_retries": 0, "timeout": 60}

    def sync(to: str = "transcriptions", key: str = "unused", **fields: Any) -> Any:
        with openai.OpenAI(api_key=key, **options) as client:
            answer = getattr(client.audio, to).create(**{"file": SHORT, "model": "whisper-1"} | fields)
            return list(answer) if fields.get("stream") else answer

    async def anew(to: str, key: str, fields: dict[str, Any]) -> Any:
        async with openai.AsyncOpenAI(api_key=key, **options) as client:
            answer = await getattr(client.audio, to).create(**{"file": SHORT, "model": "whisper-1"} | fields)
            return [event async for event in answer] if fields.get("stream") else answer

    def async_(to: str = "transcriptions", key: str = "unused", **fields: Any) -> Any:
        return asyncio.run(anew(to, key, fields))

    return async_ if getattr(request, "param", "sync") == "async" else sync


@BOTH
@pytest.mark.parametrize("to", ["transcriptions", "translations"])
def test_every_format(ask, to):
    said = SAID if to == "transcriptions" else ask(to).text
    assert ask(to).text == said
    assert ask(to, response_format="text").strip() == said
    verbose = ask(to, response_format="verbose_json")
    assert (verbose.text, verbose.language) == (said, "english")
    assert float(verbose.duration) == pytest.approx(3.5, abs=0.5)
    if to == "transcriptions":
        assert [cue.text for cue in read_srt(ask(to, response_format="srt"))] == [SAID]
        assert [cue.text for cue in read_vtt(ask(to, response_format="vtt"))] == [SAID]


@pytest.mark.parametrize("granularities", GRANULARITIES, ids=lambda names: "+".join(names) or "none")
def test_every_granularity(ask, granularities):
    answer = ask(response_format="verbose_json", timestamp_granularities=granularities)
    assert bool(answer.segments) == ("segment" in granularities or not granularities)
    assert bool(answer.words) == ("word" in granularities)
    if answer.words:
        assert " ".join(word.word for word in answer.words) == SAID
    assert answer.usage.type == "duration"


@BOTH
def test_a_stream(ask):
    events = ask(stream=True)
    assert [event.type for event in events] == ["transcript.text.delta", "transcript.text.done"]
    assert events[0].delta == events[1].text == SAID


@pytest.mark.parametrize(
    ("fields", "error", "param"),
    [
        ({"model": "gpt-4"}, openai.NotFoundError, "model"),
        ({"response_format": "pdf"}, openai.BadRequestError, "response_format"),
        ({"temperature": "hot"}, openai.BadRequestError, "temperature"),
        ({"timestamp_granularities": ["word"]}, openai.BadRequestError, "timestamp_granularities[]"),
        ({"file": ("notes.txt", b"no recording at all " * 50)}, openai.BadRequestError, "file"),
    ],
)
def test_errors_raise_the_clients_own_exceptions(ask, fields, error, param):
    with pytest.raises(error) as refused:
        ask(**fields)
    assert refused.value.type == "invalid_request_error"
    assert refused.value.param == param
    assert refused.value.request_id
    assert len(refused.value.body["message"]) > 20
