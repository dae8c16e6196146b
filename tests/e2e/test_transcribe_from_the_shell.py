"""`whisperfleet transcribe`: the same transcripts as over HTTP."""

import os
import signal

import pytest

from tests.e2e.running import Command, wait_for

pytestmark = pytest.mark.timeout(90)


def test_several_files_one_of_them_broken_and_no_other_files(commands, server, shorts, talk, tmp_path):
    spanish = talk.path.with_name("talk_es.flac")
    broken = tmp_path / "broken.mp3"
    broken.write_bytes(b"This is no music.")
    (tmp_path / "tmp").mkdir()
    done = commands.run("transcribe", spanish, broken, shorts[1], "-o", "subtitles", TMPDIR=tmp_path / "tmp")
    assert (done.process.returncode, done.stdout) == (1, "")
    assert "broken.mp3" in done.stderr
    assert "Traceback" not in done.stderr
    written = {path.name: path.read_bytes() for path in (done.folder / "subtitles").iterdir()}
    assert written == {f"{path.stem}.srt": server.srt(path).encode() for path in (spanish, shorts[1])}
    assert not done.running()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((done.folder / "home").rglob("*")) == []  # such as a library's telemetry


def test_subtitles_by_profile_are_the_same_here_and_on_a_server(commands, run_here, server, shorts):
    options = ["--option", "profile=social", "--option", "max_line_chars=Auto", "--option", "max_lines=2"]
    options += ["--language", "english"]
    local = commands.run("transcribe", shorts[1], *options, WHISPER_GPUS="0")
    remote = run_here("transcribe", shorts[1], *options, "--server", server.url)
    assert (local.process.returncode, remote.code) == (0, 0), local.stderr + remote.stderr
    assert local.stdout == remote.stdout == server.srt(shorts[1], profile="social", max_lines=2)
    text = run_here("transcribe", shorts[1], "-f", "txt", "--server", server.url)
    assert text.stdout.split() == server.text(shorts[1]).split()
    lines = local.stdout.splitlines()
    assert max(len(line) for line in lines if "-->" not in line) <= 20
    assert local.stdout != server.srt(shorts[1])


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM])
@pytest.mark.server
def test_a_stopped_command_leaves_no_files_and_no_processes(tmp_path, ten_minutes, number):
    (tmp_path / "tmp").mkdir()
    settings = {"WHISPER_GPUS": "0", "TMPDIR": tmp_path / "tmp"}
    command = Command(tmp_path, "transcribe", ten_minutes, "-o", "out.srt", **settings)
    try:
        wait_for(lambda: list((tmp_path / "tmp").rglob("pcm/*")))
        os.killpg(command.pid, number) if number == signal.SIGINT else os.kill(command.pid, number)
        assert command.wait(20) != 0
        wait_for(lambda: not command.running(), 5)
        assert not list((tmp_path / "tmp").glob("whisperfleet*"))
        assert "Traceback" not in command.stderr
        assert not (tmp_path / "out.srt").exists()
    finally:
        assert command.end() == []
