"""GPUs that fail in each call, hang for ever, or lend their memory to others; and workers that sleep."""

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.e2e.fixtures import write_wav
from tests.e2e.running import Server, wait_for
from tests.e2e.saboteur.sitecustomize import HANGING
from tests.e2e.test_faults import with_pattern
from tests.media_files import RATE, Pcm

pytestmark = pytest.mark.timeout(240)


def rows(server: Server, name: str) -> list[Any]:
    return [row[name] for row in server.workers()]


@pytest.fixture
def hanging(talk_pcm: Pcm, tmp_path: Path) -> Path:
    return write_wav(tmp_path, with_pattern(talk_pcm[: 8 * RATE], 3, HANGING))


@pytest.mark.soak
def test_a_gpu_that_fails_each_call_is_quarantined_and_costs_no_clip(
    commands, sabotage, two_minutes, two_minutes_srt
):
    sick = commands.ready(WHISPER_BATCH_SIZE=1, **sabotage.settings)
    sabotage.plan(poisoned=["0"])
    assert sick.srt(two_minutes) == two_minutes_srt
    wait_for(lambda: rows(sick, "state") == ["failed", "idle"])
    assert "quarantined, since its device failed" in rows(sick, "error")[0]
    assert "docs/trouble.md#gpu-failed" in rows(sick, "error")[0]
    assert rows(sick, "restarts")[0] >= 2
    assert rows(sick, "restarts")[1] == 0
    assert sick.client.get("/ready").status_code == 200

    # All of them: requests get the reason, jobs wait.
    sabotage.plan(poisoned=["0", "1"])
    job = sick.submit(two_minutes)
    wait_for(lambda: rows(sick, "state") == ["failed", "failed"])
    for answer in (sick.client.get("/ready"), sick.post(two_minutes)):
        assert answer.status_code == 503
        assert "an illegal memory access" in answer.json()["error"]["message"]
    assert sick.job(job["id"])["status"] in ("queued", "running")

    sabotage.plan(poisoned=["0"])
    assert sick.finished(job["id"])["status"] == "succeeded"
    assert sick.result(job["id"]) == two_minutes_srt
    assert rows(sick, "state")[0] == "failed"
    assert sick.client.get("/ready").status_code == 200


@pytest.mark.soak
def test_a_process_that_cannot_be_killed_is_left_behind(commands, sabotage, hanging, shorts, server):
    stuck = commands.ready(WHISPER_BATCH_TIMEOUT_S=3, **sabotage.settings)
    sabotage.plan(unkillable=True)
    assert stuck.srt(hanging) == server.srt(hanging)
    wait_for(lambda: "failed" in rows(stuck, "state"))
    [row] = [row for row in stuck.workers() if row["state"] == "failed"]
    assert "cannot be killed" in row["error"]
    assert "docs/trouble.md#process-cannot-be-killed" in row["error"]
    assert stuck.srt(shorts[0]) == server.srt(shorts[0])
    assert stuck.client.get("/ready").status_code == 200
    stuck.process.send_signal(signal.SIGTERM)
    assert stuck.wait(60) == 0
    # The real one stays in its driver. This one only hung, and exits with its parent.
    wait_for(lambda: not stuck.running())


@pytest.mark.soak
def test_a_wide_search_leaves_the_batches_of_others_alone_and_limits_recover(
    commands, sabotage, two_minutes, two_minutes_srt
):
    sabotage.plan(memory_wait_s=4)
    short = commands.ready(WHISPER_GPUS="0", WHISPER_CPU_THREADS=2, WHISPER_BATCH_SIZE=8, **sabotage.settings)
    sabotage.plan(rows=20)
    wide = short.srt(two_minutes, beam_size=20)
    assert rows(short, "batch_size") == [8]
    sabotage.plan(rows=9)
    assert short.srt(two_minutes) == two_minutes_srt
    [limit] = rows(short, "batch_size")
    assert limit <= 2
    assert f"batches of {limit} instead of 8" in rows(short, "error")[0]
    sabotage.plan()
    wait_for(lambda: rows(short, "batch_size") == [8])
    assert rows(short, "error") == [None]
    assert rows(short, "restarts") == [0]
    assert short.srt(two_minutes) == two_minutes_srt
    assert short.srt(two_minutes, beam_size=20) == wide


def test_idle_workers_end_and_the_next_request_starts_them(commands, server, shorts):
    settings = {"WHISPER_GPUS": "0", "WHISPER_KEEP_DEFAULT_MODEL": "false", "WHISPER_MODEL_IDLE_S": 1}
    sleepy = commands.serve(**settings).wait_until_up()
    wait_for(lambda: rows(sleepy, "state") == ["asleep"], 60)
    assert sleepy.client.get("/ready").json() == {"status": "asleep"}
    assert rows(sleepy, "pid") == [None]
    assert rows(sleepy, "models") == [[]]
    assert sleepy.client.get("/v1/models").json()["data"][0]["state"] == "unloaded"
    # What is left: Python's resource tracker and a media worker.
    wait_for(lambda: len(psutil.Process(sleepy.pid).children()) == 2)

    states = set()
    job = sleepy.submit(shorts[1])
    while sleepy.job(job["id"])["status"] not in ("succeeded", "failed"):
        states.add(sleepy.client.get("/ready").status_code)
        time.sleep(0.02)  # each answer takes time that the workers need
    assert states == {200}
    assert sleepy.result(job["id"]) == server.srt(shorts[1])
    wait_for(lambda: rows(sleepy, "state") == ["asleep"])
    assert sleepy.srt(shorts[0])
    assert min(rows(sleepy, "loads")) >= 1
    assert rows(sleepy, "restarts") == [0]


@pytest.mark.soak
def test_the_first_upload_needs_one_media_worker(commands, shorts, two_minutes):
    one = commands.ready()
    assert len(one.media_workers()) == 1
    assert one.srt(two_minutes)
    assert len(one.media_workers()) == 2
    np.testing.assert_equal(rows(one, "restarts"), [0, 0])
