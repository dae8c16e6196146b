"""The processes of the service: their devices, priorities and loaded libraries."""

import fcntl
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import psutil
import pytest

from app.engines.model_files import DEMO_PATH
from tests.e2e.fixtures import Commands
from tests.e2e.running import Server
from workers import runtime
from workers.messages import LoadOptions
from workers.whisper import worker as whisper

pytestmark = pytest.mark.timeout(120)


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


@pytest.fixture(scope="module")
def own_server(module_commands: Commands) -> Server:
    """Tests of other modules would make its media workers load more."""
    return module_commands.ready()


@pytest.fixture(scope="module")
def after_ten(own_server: Server, talk, shorts) -> list[dict]:
    """The workers after ten requests."""
    for number in range(9):
        own_server.text(shorts[number % len(shorts)])
    before = {row["slot"]: row["clips"] for row in own_server.workers()}
    own_server.text(talk.path)
    return [row | {"clips_of_talk": row["clips"] - before[row["slot"]]} for row in own_server.workers()]


def test_the_data_folder_is_for_the_service_alone(own_server: Server) -> None:
    assert own_server.data.stat().st_mode & 0o777 == 0o700


def test_both_workers_transcribe_parts_of_one_file(after_ten):
    assert all(row["clips_of_talk"] > 0 for row in after_ten)
    assert all(row["batches"] > 0 and row["audio_s"] > 0 for row in after_ten)


def test_a_model_is_loaded_once(after_ten):
    assert [row["loads"] for row in after_ten] == [1, 1]
    assert [row["restarts"] for row in after_ten] == [0, 0]
    assert [row["error"] for row in after_ten] == [None, None]


def test_each_worker_is_a_process_that_sees_its_own_device(own_server, after_ten):
    assert [row["visible_devices"] for row in after_ten] == ["0", "1"]
    pids = {row["pid"] for row in after_ten}
    children = {child.pid: child for child in psutil.Process(own_server.pid).children()}
    assert len(pids) == 2
    assert pids <= children.keys()


def test_workers_have_a_lower_priority_than_the_server(own_server, after_ten):
    # Each thread, because on Linux each has a priority of its own.
    own = psutil.Process(own_server.pid).nice()
    assert {niceness for row in after_ten for niceness in thread_niceness(row["pid"])} == {own + 10}
    media = [niceness for child in own_server.media_workers() for niceness in thread_niceness(child.pid)]
    assert set(media) == {own + 15}


def thread_niceness(pid: int) -> list[int]:
    return [os.getpriority(os.PRIO_PROCESS, thread.id) for thread in psutil.Process(pid).threads()]


def test_the_server_process_loads_no_model_library(own_server, after_ten):
    loaded = maps(own_server.pid)
    assert "python" in loaded
    for library in ("libtorch", "libctranslate2", "libcuda", "libav"):
        assert library not in loaded


def test_workers_load_no_web_library(own_server, after_ten):
    for row in after_ten:
        assert "libctranslate2" in maps(row["pid"])
        assert "pydantic" not in maps(row["pid"])  # which FastAPI and the settings need
    for child in own_server.media_workers():
        assert "pydantic" not in maps(child.pid)
        assert "libctranslate2" not in maps(child.pid)
        assert "libtorch" not in maps(child.pid)


def test_without_models_the_service_takes_less_than_400_mib(own_server, after_ten):
    workers = {row["pid"] for row in own_server.workers()}
    own = psutil.Process(own_server.pid)
    others = [own, *(child for child in own.children() if child.pid not in workers)]
    assert len(others) >= 3  # the server, a media worker and multiprocessing's resource tracker
    assert sum(process.memory_full_info().pss for process in others) < 400 << 20


def test_importing_the_service_loads_no_model_library():
    script = (
        "import sys, app.main, app.recording.service, app.commands.serve, app.commands.transcribe\n"
        "from app.engines.plan import make_plan\nfrom app.settings import load_settings\n"
        "make_plan(load_settings(model='demo', device='cpu', backend='torch'))\n"
        "print(*({'torch', 'ctranslate2', 'faster_whisper', 'silero_vad', 'av'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (found.stdout.strip(), found.returncode) == ("", 0), found.stderr


def test_loading_a_model_imports_no_web_library():
    spawn = multiprocessing.get_context("spawn")
    options = LoadOptions("demo", str(DEMO_PATH), "cpu", "auto", 1)
    with ProcessPoolExecutor(1, spawn, runtime.initialise, ("7",)) as pool:
        assert pool.submit(whisper.load, options).result(60).visible_devices == "7"
        modules = pool.submit(eval, "set(__import__('sys').modules)").result(60)
    assert "ctranslate2" in modules
    assert not {"fastapi", "starlette", "pydantic", "app.main", "app.recording", "torch"} & modules


@pytest.mark.soak
def test_a_log_that_nobody_reads_stops_neither_answers_nor_the_end(commands, tmp_path):
    """As in a terminal after Ctrl-S, or with a log collector that hangs."""
    folder = tmp_path / "stuck"
    folder.mkdir()
    log = folder / "stderr"
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        server = commands.serve(folder=folder, WHISPER_ENGINE="simulated", WHISPER_LOG_LEVEL="debug")
        server.wait_until_up()
        for _ in range(100):
            server.client.get("/health", timeout=20).raise_for_status()
        server.process.terminate()
        assert server.wait(20) == 0
        assert b"Shutting down" not in os.read(reader, 1 << 16), "the log was not stuck"
    finally:
        os.close(reader)
        log.unlink()
        log.touch()  # the log of a failed test is printed


@pytest.mark.soak
def test_the_event_loop_is_never_blocked(health_s):
    """Other requests are answered at once while ten minutes of talk are transcribed."""
    assert len(health_s) > 20
    assert sorted(health_s)[int(len(health_s) * 0.95)] < 0.5
