"""Invalid settings end the start with one clear line."""

import socket

import pytest

from app.engines.nvml import list_gpus
from tests.e2e.fixtures import Outcome

pytestmark = pytest.mark.timeout(60)

needs_no_gpu = pytest.mark.skipif(bool(list_gpus()), reason="there is a GPU")


def assert_refused(outcome: Outcome, *names: str) -> None:
    assert (outcome.code, outcome.stdout) == (2, "")
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("whisperfleet: ")
    assert len(line) < 1000
    for name in names:
        assert name in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WHISPER_DEVICE", "tpu"),
        ("WHISPER_COMPUTE_TYPE", "float16"),
        ("WHISPER_MODEL", "/nowhere/model"),
        ("WHISPER_MODEL", "gigantic"),
        ("WHISPER_MODELS", "gigantic"),
        ("WHISPER_MODEL_ALIASES", "fast=large-v3"),
        ("WHISPER_CPU_WORKERS", "0"),
        ("WHISPER_BATCH_SIZE", "1.5"),
        ("WHISPER_PORT", "http"),
        ("WHISPER_LOG_LEVEL", "loud"),
        ("WHISPER_DATA_DIR", "/dev/null/data"),
        pytest.param("WHISPER_DEVICE", "cuda", marks=needs_no_gpu),
    ],
)
def test_a_bad_setting(run_here, name, value):
    assert_refused(run_here("serve", **{name: value}), name, value)


def test_a_folder_without_a_model(run_here, tmp_path):
    (tmp_path / "model").mkdir()
    refused = run_here("serve", WHISPER_MODEL=tmp_path / "model")
    assert_refused(refused, "WHISPER_MODEL", str(tmp_path / "model"))


def test_two_bad_settings_in_one_line(commands):
    refused = commands.run("serve", WHISPER_DEVICE="tpu", WHISPER_PORT="70000")
    outcome = Outcome(refused.process.returncode, refused.stdout, refused.stderr)
    assert_refused(outcome, "WHISPER_DEVICE", "WHISPER_PORT")
    assert not refused.running()


def test_a_data_folder_that_is_in_use(run_here, server):
    assert_refused(run_here("serve", WHISPER_DATA_DIR=server.data), "WHISPER_DATA_DIR", str(server.data))
    assert server.client.get("/ready").status_code == 200


@pytest.mark.parametrize("setting", ["WHISPER_PORT", "WHISPER_WYOMING_PORT"])
def test_a_port_that_is_in_use(run_here, setting):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        refused = run_here("serve", **({"WHISPER_PORT": 0} | {setting: port}))
    assert refused.code == 1
    [line] = refused.stderr.splitlines()
    assert line.startswith(f"whisperfleet: port {port} is in use on 127.0.0.1. ")
    assert f"set {setting}" in line


@pytest.mark.parametrize("name", ["WHISPER_MODEL", "WHISPER_COMPUTE_TYPE"])
def test_transcribe_refuses_the_same_settings(run_here, shorts, name):
    assert_refused(run_here("transcribe", shorts[0], **{name: "nonsense"}), name, "nonsense")
