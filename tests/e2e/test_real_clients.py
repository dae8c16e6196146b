"""OpenAI's client for Python, with and without keys."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from tests.e2e.fixtures import without_jobs
from tests.e2e.reading import read_srt, word_error_rate
from tests.e2e.running import KEYED, ONE_SIMULATED, OTHER_KEY, Server

pytestmark = pytest.mark.timeout(60)

ALIASES = ["gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize"]


def connect(server: Server, key: str = "unused") -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=f"{server.url}/v1", max_retries=0, timeout=60)


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with connect(server) as made:
        yield made


def test_openai_client_gets_subtitles(client, server, shorts):
    with shorts[1].open("rb") as file:
        srt = client.audio.transcriptions.create(model="whisper-1", file=file, response_format="srt")
    assert srt == server.srt(shorts[1])
    assert read_srt(srt)


@pytest.mark.parametrize("settings", [KEYED, pytest.param(ONE_SIMULATED, marks=pytest.mark.soak)])
def test_many_requests_at_once_of_one_client_are_all_answered(shared, shorts, settings):
    """More than `WHISPER_MAX_UPLOADS` guarantees to one key: it has all while nobody else wants some."""
    server = shared(**settings)
    with connect(server, OTHER_KEY) as client, ThreadPoolExecutor(32) as threads:

        def text(path):
            return client.audio.transcriptions.create(model="whisper-1", file=path, response_format="text")

        assert all(threads.map(text, shorts[:1] * 32))


def test_openai_client_gets_words(client, talk):
    answer = client.audio.transcriptions.create(
        model="whisper-1",
        file=talk.path,
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert answer.language == "english"
    assert word_error_rate(talk.text, " ".join(word.word for word in answer.words)) <= 0.05
    assert all(0 <= word.start <= word.end <= answer.duration for word in answer.words)
    assert answer.segments[0].start == pytest.approx(talk.starts[0], abs=0.3)


def test_openai_client_lists_models(client):
    assert {"demo", "whisper-1", *ALIASES} <= {model.id for model in client.models.list()}


def test_openai_client_uses_names_that_are_built_in(client, shorts):
    said = client.audio.transcriptions.create(model="whisper-1", file=shorts[0], response_format="srt")
    for alias in ALIASES:
        assert client.models.retrieve(alias).id == alias
        again = client.audio.transcriptions.create(model=alias, file=shorts[0], response_format="srt")
        assert again == said


def test_keys(run_here, shared, shorts):
    server = without_jobs(shared(**KEYED))
    assert server.post(shorts[0]).status_code == 200
    for wrong in ("", "Bearer sk-three"):
        for answer in (
            server.post(shorts[0], headers={"Authorization": wrong}),
            server.client.get("/v1/workers", headers={"Authorization": wrong}),
        ):
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
        for path in ("/health", "/ready"):
            assert server.client.get(path, headers={"Authorization": wrong}).status_code == 200
    with connect(server, OTHER_KEY) as known, connect(server, "sk-three") as unknown:
        assert known.audio.transcriptions.create(model="whisper-1", file=shorts[0]).text
        with pytest.raises(openai.AuthenticationError) as caught:
            unknown.audio.transcriptions.create(model="whisper-1", file=shorts[0])
        assert caught.value.code == "invalid_api_key"
    assert not server.left_files()
    refused = run_here("transcribe", shorts[0], "--server", server.url)
    assert (refused.code, refused.stdout) == (1, "")
    assert "key" in refused.stderr
