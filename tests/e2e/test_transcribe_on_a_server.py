"""`whisperfleet transcribe --server` with a real service: every format, a restart, and cancellation."""

import os
import signal

import pytest

from app.commands.transcribe import run_transcribe
from app.transcript.formats import FORMATS
from tests.e2e.fixtures import Commands
from tests.e2e.running import SIMULATED, Server, wait_for

pytestmark = pytest.mark.timeout(90)

KEY = "sk-very-secret"
SLOW = {**SIMULATED, "WHISPER_SIMULATED": "speed=0.3,batch=1", "WHISPER_GPUS": "a,b", "WHISPER_API_KEYS": KEY}
STL_HEADER = 1024  # bytes; it has the date


@pytest.fixture(scope="module")
def keyed_server(module_commands: Commands) -> Server:
    """A service with a key that takes seconds for a talk."""
    return module_commands.ready(key=KEY, **SLOW)


def statuses(server: Server) -> list[str]:
    """Those of all jobs."""
    return [entry["status"] for entry in server.client.get("/v1/jobs").raise_for_status().json()["data"]]


def test_every_format_is_that_of_a_job(keyed_server, shorts, tmp_path, capfd):
    recording = shorts[1]
    job = keyed_server.submit(recording, language="en", max_line_chars=30)
    assert keyed_server.finished(job["id"])["status"] == "succeeded"
    for form in set(FORMATS) - {"json"}:  # which has more than HTTP's
        output = tmp_path / f"out.{form}"
        options = {"language": "en", "max_line_chars": "30"}
        url = f"{keyed_server.url}/v1/"
        assert run_transcribe([recording], str(output), None, options, None, url, KEY) == 0
        path = f"/v1/jobs/{job['id']}/result"
        expected = keyed_server.client.get(path, params={"format": form}).content
        skipped = STL_HEADER if form == "stl" else 0
        assert output.read_bytes()[skipped:] == expected[skipped:]
    assert KEY not in capfd.readouterr().err
    keyed_server.client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    assert statuses(keyed_server) == []


def test_a_wrong_key_is_not_shown(run_here, keyed_server, shorts):
    refused = run_here("transcribe", shorts[0], "--server", keyed_server.url, WHISPER_API_KEY="sk-wrong-key")
    assert (refused.code, refused.stdout) == (1, "")
    assert "--api-key" in refused.stderr
    assert "sk-wrong-key" not in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.soak), (signal.SIGTERM, 143)]
)
def test_a_stopped_command_leaves_no_jobs(
    commands, background, keyed_server, two_minutes, shorts, tmp_path, number, code
):
    (tmp_path / "talks").mkdir()
    for number_of_file, recording in enumerate([two_minutes, two_minutes, *shorts]):
        (tmp_path / "talks" / f"{number_of_file}.wav").symlink_to(recording)
    command = background.submit(
        commands.run, "transcribe", tmp_path / "talks", "--server", keyed_server.url, WHISPER_API_KEY=KEY
    )
    wait_for(lambda: "running" in statuses(keyed_server))
    [started] = wait_for(lambda: commands.started)
    os.kill(started.pid, number)
    stopped = command.result()
    assert stopped.process.returncode == code
    assert "Traceback" not in stopped.stderr
    assert statuses(keyed_server) == []
