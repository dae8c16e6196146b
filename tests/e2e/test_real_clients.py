"""OpenAI's client for Python, with and without keys."""

from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from tests.e2e.fixtures import without_jobs
from tests.e2e.running import KEYED, ONE_SIMULATED, OTHER_KEY, Server

pytestmark = pytest.mark.timeout(60)


def connect(server: Server, key: str = "unused") -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=f"{server.url}/v1", max_retries=0, timeout=60)


@pytest.mark.parametrize("settings", [KEYED, pytest.param(ONE_SIMULATED, marks=pytest.mark.soak)])
def test_many_requests_at_once_of_one_client_are_all_answered(shared, shorts, settings):
    """More than `WHISPER_MAX_UPLOADS` guarantees to one key: it has all while nobody else wants some."""
    server = shared(**settings)
    with connect(server, OTHER_KEY) as client, ThreadPoolExecutor(32) as threads:

        def text(path):
            return client.audio.transcriptions.create(model="whisper-1", file=path, response_format="text")

        assert all(threads.map(text, shorts[:1] * 32))


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
