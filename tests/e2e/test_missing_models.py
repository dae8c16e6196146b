"""A model that is not on this machine and cannot be downloaded: the errors, and the demo fallback."""

import pytest

from tests.e2e.reading import words

pytestmark = pytest.mark.timeout(60)

OFFLINE = {"HF_HUB_OFFLINE": 1}  # and an empty HF_HOME, as every server here has


def test_auto_falls_back_to_the_demo_if_allowed(commands, shorts):
    server = commands.ready(WHISPER_MODEL=None, WHISPER_DEMO_FALLBACK=1, WHISPER_GPUS="0", **OFFLINE)
    answer = server.client.get("/health")
    assert (answer.json()["demo"], answer.headers["x-whisperfleet-model"]) == (True, "demo")
    assert [row["model"] for row in server.workers()] == ["demo"]
    answer = server.post(shorts[0])
    assert (answer.status_code, answer.headers["x-whisperfleet-model"]) == (200, "demo")
    assert words(answer.json()["text"])
    assert "demo model" in server.stderr
    assert "warning" in server.stderr


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        pytest.param({"WHISPER_MODEL": "auto"}, "small", marks=pytest.mark.soak),
        ({"WHISPER_MODEL": "small", "WHISPER_DEMO_FALLBACK": 1}, "small"),
    ],
    ids=["auto", "a named size"],
)
def test_the_error_for_a_missing_model_says_what_to_do(commands, shorts, settings, model):
    server = commands.serve(**settings, **OFFLINE).wait_until_up()
    answer = server.post(shorts[0])
    assert answer.status_code == 503, answer.text
    for error in (answer.json()["error"], server.client.get("/ready").json()["error"]):
        assert model in error["message"]
        assert "WHISPER_MODEL" in error["message"]
    assert server.client.get("/ready").status_code == 503
    health = server.client.get("/health")
    assert (health.status_code, health.json()["demo"]) == (200, False)
    assert "x-whisperfleet-model" not in health.headers
    assert server.workers() == []
    assert not server.left_files()


def test_ready_names_a_broken_model(commands, shorts, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.bin").write_bytes(b"no model at all")
    server = commands.serve(WHISPER_MODEL=tmp_path / "model", WHISPER_GPUS="0").wait_until_up()
    answer = server.post(shorts[0])
    assert answer.status_code == 503, answer.text
    ready = server.client.get("/ready")
    assert (ready.status_code, str(tmp_path / "model") in ready.text) == (503, True)
    assert {row["state"] for row in server.workers()} <= {"failed", "loading"}
    assert all(row["error"] for row in server.workers() if row["state"] == "failed")


def test_the_command_line_falls_back_as_the_service_does(commands, shorts):
    done = commands.run(
        *("transcribe", shorts[0], "--format", "txt"),
        **{"WHISPER_MODEL": "auto", "WHISPER_DEMO_FALLBACK": 1, "WHISPER_GPUS": "0"},
    )
    assert (done.process.returncode, done.stdout) == (0, "The captain reads a long letter.\n")
    assert "falling back to the demo model" in done.stderr
