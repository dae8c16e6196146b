"""Limits of the real service: files of hardly any size and a day of silence, and a full queue."""

import pytest

from tests.e2e.fixtures import without_jobs
from tests.e2e.running import ONE_SIMULATED
from tests.media_files import flac_of_silence

pytestmark = pytest.mark.timeout(120)


def transcribe(server, content):
    fields = {"model": "whisper-1"}
    return server.client.post("/v1/audio/transcriptions", data=fields, files={"file": ("a.flac", content)})


def test_a_day_of_silence(shared, tmp_path):
    server = without_jobs(shared(**ONE_SIMULATED))
    bomb = tmp_path / "bomb.flac"
    bomb.write_bytes(flac_of_silence(25))
    refused = transcribe(server, bomb.read_bytes())
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "audio_too_long")
    assert "longer than 86400 s" in refused.json()["error"]["message"]
    job = server.finished(server.submit(bomb)["id"])
    assert (job["status"], job["error"]["code"]) == ("failed", "audio_too_long")
    assert job["progress"]["total_s"] is None
    assert not list((server.data / "pcm").iterdir())
    assert transcribe(server, flac_of_silence(0.1)).status_code == 200


@pytest.fixture(scope="module")
def limited(module_commands):
    return module_commands.ready(**ONE_SIMULATED, WHISPER_MAX_DURATION_S=600, WHISPER_MAX_QUEUED_JOBS=1)


def test_a_small_file_that_hides_its_length(limited):
    server = limited
    content = flac_of_silence(2, declared=False)
    speech = server.client.post("/v1/audio/speech/timestamps", files={"file": ("a.flac", content)})
    for refused in (transcribe(server, content), speech):
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "audio_too_long")
    assert not server.left_files()
    assert transcribe(server, flac_of_silence(0.1, declared=False)).status_code == 200
