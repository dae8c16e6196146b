"""`whisperfleet models` with a small hub on loopback: cuts, refusals, and a start without a network."""

import os
import shutil
import signal

import pytest

from tests.e2e.reading import words
from tests.e2e.running import wait_for
from tests.model_hub import WEIGHTS, model_hub

pytestmark = pytest.mark.timeout(90)

CUT = 3_000_000  # bytes


@pytest.mark.soak
def test_a_pull_that_was_killed_goes_on_and_a_start_offline_works(commands, background, shorts, tmp_path):
    home = {"HF_HOME": tmp_path / "huggingface"}
    with model_hub(cut_after=CUT, holds=True) as hub:
        online = {**home, "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": 0}
        pull = background.submit(commands.run, "models", "pull", "tiny", **online)
        assert hub.stalled.wait(60)
        [part] = wait_for(lambda: list(tmp_path.rglob("blobs/*.incomplete")))
        wait_for(lambda: part.stat().st_size == CUT)
        os.kill(commands.started[0].pid, signal.SIGKILL)
        assert pull.result().process.returncode == -signal.SIGKILL
        listed = commands.run("models", "list", **home)
        assert "incomplete: pull it again" in line_of("tiny", listed.stdout)

        hub.cut_after, hub.holds = None, False
        pulled = commands.run("models", "pull", "tiny", **online)
        assert pulled.process.returncode == 0, pulled.stderr
        size = len(hub.files()[WEIGHTS])
        assert (hub.starts, hub.sent) == ([0, CUT], size)
        assert "tiny: downloaded, 14 MB" in pulled.stdout

    offline = {**home, "HF_HUB_OFFLINE": 1, "WHISPER_MODEL": "tiny"}
    listed = commands.run("models", "list", **offline)
    assert line_of("tiny (default)", listed.stdout).split()[2:5] == ["14", "MB", "complete"]
    (tmp_path / "tiny").mkdir()  # not taken for the model
    done = commands.run("transcribe", shorts[0], "-f", "txt", folder=tmp_path, **offline)
    assert done.process.returncode == 0, done.stderr
    assert words(done.stdout)


def line_of(name: str, text: str) -> str:
    [line] = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return line


def test_transcribe_waits_for_a_model_that_is_downloaded(commands, shorts):
    with model_hub() as hub:
        done = commands.run(
            "transcribe", shorts[0], "-f", "txt", "-m", "tiny", HF_ENDPOINT=hub.url, HF_HUB_OFFLINE=0
        )
    assert done.process.returncode == 0, done.stderr
    assert "downloading tiny from Systran/faster-whisper-tiny" in done.stderr
    assert done.stdout == "The captain reads a long letter.\n"


def test_what_cannot_be_pulled(commands, tmp_path):
    names = ("team/gone", "team/private", "team/gated", "team/transformers")
    refused = {"team/private": 401, "team/gated": 403}
    (tmp_path / "transformers").mkdir()
    (tmp_path / "transformers" / "config.json").write_text("{}")
    with model_hub(
        folder=tmp_path / "transformers", repositories=("team/transformers",), refused=refused
    ) as hub:
        pulled = commands.run("models", "pull", *names, HF_ENDPOINT=hub.url, HF_HUB_OFFLINE=0)
    assert (pulled.process.returncode, pulled.stdout) == (1, "")
    lines = [line for line in pulled.stderr.splitlines() if line.startswith("whisperfleet: ")]
    assert len(lines) == 4, pulled.stderr
    for line, name in zip(lines, names, strict=True):
        assert name in line
    assert "there is no model team/gone" in lines[0]
    assert "HF_TOKEN" in lines[1]
    assert "needs a login (403)" in lines[2]
    assert f"{hub.url}/team/gated" in lines[2]
    assert "has no model.bin" in lines[3]
    assert "ct2-transformers-converter" in lines[3]
    assert "Traceback" not in pulled.stderr


def test_no_connection_and_no_such_size(commands, tmp_path):
    unreachable = commands.run("models", "pull", "tiny", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_OFFLINE=0)
    assert unreachable.process.returncode == 1
    assert "http://127.0.0.1:9 cannot be reached" in unreachable.stderr
    assert "Connect to the network" in unreachable.stderr
    unknown = commands.run("models", "pull", "demo", "gigantic")
    assert (unknown.process.returncode, unknown.stdout) == (2, "")
    assert "gigantic: unknown size; known are tiny.en" in unknown.stderr


def test_a_folder_that_is_no_model(commands, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / WEIGHTS).write_bytes(b"no model at all")
    (folder / "tokenizer.json").write_text('{"model": {}}')
    pulled = commands.run("models", "pull", folder, "demo")
    assert pulled.process.returncode == 1
    assert "model.bin is not a Whisper model in CTranslate2 format" in pulled.stderr
    assert "pull it again" not in pulled.stderr, "it is the user's own folder"
    assert "demo: is already here" in pulled.stdout


def test_a_damaged_model_in_the_cache(commands, tmp_path):
    home = {"HF_HOME": tmp_path}
    with model_hub() as hub:
        online = {**home, "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": 0}
        assert commands.run("models", "pull", "tiny", **online).process.returncode == 0
        [tokenizer] = tmp_path.rglob("snapshots/*/tokenizer.json")
        tokenizer.resolve().write_text('{"model"')
        refused = commands.run("models", "pull", "tiny", **online)
        [cached] = tmp_path.glob("hub/models--*")
        assert refused.process.returncode == 1
        assert f"tokenizer.json is damaged. Delete {cached}, and pull it again." in refused.stderr
        shutil.rmtree(cached)
        assert "tiny: downloaded" in commands.run("models", "pull", "tiny", **online).stdout
