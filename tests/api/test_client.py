"""OpenAI's own client against the service."""

import openai
import pytest

from app.common import errors
from tests.api.fake_service import OTHER_MODEL, TRANSCRIPT

KEY = "sk-first"
FILE = ("talk.wav", b"RIFF\0audio")


@pytest.fixture
def locked(serve):
    return serve(api_keys=(KEY,))


@pytest.fixture
def connect(locked):
    clients = []

    def make(key=KEY):
        clients.append(openai.OpenAI(api_key=key, base_url=f"{locked.url}/v1", max_retries=0, timeout=15))
        return clients[-1].audio

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def audio(connect):
    return connect()


def test_json(audio):
    response = audio.transcriptions.create(model="whisper-1", file=FILE, language="en", temperature=0)
    assert response.text == TRANSCRIPT.text
    assert (response.usage.type, response.usage.seconds) == ("duration", 5)
    assert response._request_id.startswith("req_")


@pytest.mark.parametrize(
    ("response_format", "start"), [("text", "The quick"), ("srt", "1\n00:00:00,"), ("vtt", "WEBVTT\n\n")]
)
def test_text_formats(audio, response_format, start):
    response = audio.transcriptions.create(model="whisper-1", file=FILE, response_format=response_format)
    assert isinstance(response, str)
    assert response.startswith(start)


def test_verbose_json(audio):
    response = audio.transcriptions.create(
        model="whisper-1",
        file=FILE,
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert (response.language, response.duration) == ("english", 4.2)
    assert [segment.start for segment in response.segments] == [0.5, 2.3]
    assert response.words[0].word == "The"


def test_extra_fields_reach_the_service(audio, locked):
    audio.transcriptions.create(model="whisper-1", file=FILE, extra_body={"hotwords": "fox", "max_lines": 1})
    options = locked.service.calls[0].options
    assert (options.hotwords, options.max_lines) == ("fox", 1)


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
def test_translation(audio, locked):
    assert audio.translations.create(model="whisper-1", file=FILE).text == TRANSCRIPT.text
    assert locked.service.calls[0].options.task == "translate"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.InvalidInput("no audio", param="file", code="no_audio"), openai.BadRequestError),
        (errors.UnknownModel("which?"), openai.NotFoundError),
        (errors.QueueFull("wait"), openai.RateLimitError),
        (errors.NotReady("no worker"), openai.InternalServerError),
    ],
)
def test_exception_classes(audio, locked, error, expected):
    locked.service.error = error
    with pytest.raises(expected) as caught:
        audio.transcriptions.create(model="whisper-1", file=FILE)
    assert (caught.value.body["message"], caught.value.param) == (error.message, error.param)
    assert caught.value.request_id.startswith("req_")


def test_wrong_key(connect, locked):
    with pytest.raises(openai.AuthenticationError) as caught:
        connect("sk-wrong").transcriptions.create(model="whisper-1", file=("a", bytes(8_000_000)))
    assert caught.value.code == "invalid_api_key"
    assert not locked.uploads


def test_models(locked):
    with openai.OpenAI(api_key=KEY, base_url=f"{locked.url}/v1", max_retries=0, timeout=15) as client:
        assert [model.id for model in client.models.list()] == list(locked.service.fleet.catalogue.listed())
        assert client.models.retrieve(OTHER_MODEL).owned_by == "whisperfleet"
