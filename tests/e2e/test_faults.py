"""Clips that crash or block their worker, and too little memory."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.fixtures import Commands, write_wav
from tests.e2e.running import Server, wait_for
from tests.e2e.sabotage import Sabotage
from tests.e2e.saboteur.sitecustomize import POISON
from tests.media_files import RATE, Pcm

pytestmark = pytest.mark.timeout(120)

LENGTH_S = 46
POISONED_S = 40.0  # where in the recording


@pytest.fixture(scope="module")
def poisonable(tmp_path_factory: pytest.TempPathFactory, module_commands: Commands) -> Server:
    """A server whose workers crash on some clips, and hang on others."""
    sabotage = Sabotage(tmp_path_factory.mktemp("sabotage"))
    return module_commands.ready(WHISPER_BATCH_TIMEOUT_S=5, **sabotage.settings)


def with_pattern(pcm: Pcm, second: float, pattern: bytes) -> Pcm:
    """A copy of a recording with a pattern in the speech around `second`."""
    begin = round(second * RATE)
    loudest = begin + int(np.argmax(np.abs(pcm[begin : begin + 2 * RATE].astype(np.int32))))
    changed = pcm.copy()
    changed[loudest : loudest + len(pattern) // 2] = np.frombuffer(pattern, "<i2")
    return changed


@pytest.fixture(scope="module")
def sound(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wav(tmp_path_factory.mktemp("sound"), talk_pcm[: LENGTH_S * RATE])


@pytest.fixture
def undisturbed(server: Server, sound: Path, shorts: list[Path]) -> dict[Path, str]:
    """Recordings, and their subtitles from a server without faults."""
    return {path: server.srt(path) for path in (sound, *shorts)}


@pytest.fixture(scope="module")
def poisoned(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pcm = with_pattern(talk_pcm[: LENGTH_S * RATE], POISONED_S, POISON)
    return write_wav(tmp_path_factory.mktemp("poisoned"), pcm)


def the_worker(server: Server) -> dict[str, Any]:
    [row] = server.workers()
    return row


def test_only_the_poisoned_clip_fails(poisonable, server, poisoned, sound, shorts, background):
    failing = background.submit(poisonable.post, poisoned)
    partial = background.submit(
        poisonable.post, poisoned, allow_partial="true", response_format="verbose_json"
    )
    others = [background.submit(poisonable.srt, path) for path in (sound, shorts[1])]

    answer = failing.result()
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "clip_failed")
    message = answer.json()["error"]["message"]
    named = re.match(r"The span from ([\d.]+) s to ([\d.]+) s could not be transcribed: 3 processes", message)
    assert named, message
    start, end = map(float, named.groups())
    assert start < POISONED_S < end < start + 30.01

    answer = partial.result()
    assert answer.status_code == 200, answer.text
    [span] = answer.json()["failed_spans"]
    assert (span["start"], span["end"]) == pytest.approx((start, end), abs=0.01)
    complete = segments(server.post(poisoned, response_format="verbose_json").json())
    assert segments(answer.json()) == [one for one in complete if one[1] <= start or one[0] >= end]
    assert len(segments(answer.json())) < len(complete)

    assert [other.result() for other in others] == [server.srt(sound), server.srt(shorts[1])]
    wait_for(lambda: all(row["state"] == "idle" for row in poisonable.workers()))
    assert [row["error"] for row in poisonable.workers()] == [None, None]


def segments(transcription: dict[str, Any]) -> list[tuple[float, float, str]]:
    return [(one["start"], one["end"], one["text"]) for one in transcription["segments"]]


@pytest.mark.soak
def test_too_little_memory_costs_speed_and_precision_but_no_words(
    commands, sabotage, shorts, undisturbed, background
):
    sabotage.plan(too_large=["float32"])
    two_threads = {"WHISPER_GPUS": "0", "WHISPER_CPU_THREADS": 2}  # for them batches save time
    short = commands.ready(**two_threads, WHISPER_COMPUTE_TYPE="float32", **sabotage.settings)
    row = the_worker(short)
    assert (row["compute_type"], row["batch_size"], row["restarts"]) == ("int8_float32", 4, 1)
    assert "demo in int8_float32 instead of float32: CUDA failed with error out of memory" in row["error"]

    sabotage.plan(batch_limits={"int8_float32": 2})
    while (row := the_worker(short))["batch_size"] == 4:  # until some of them come at once
        work = {path: background.submit(short.srt, path) for path in undisturbed}
        assert {path: one.result() for path, one in work.items()} == undisturbed
    assert row["batch_size"] in (1, 2)
    assert f"batches of {row['batch_size']} instead of 4" in row["error"]
    assert row["restarts"] == 1

    sabotage.plan(batch_limits={"int8_float32": 0})
    assert short.srt(shorts[0]) == undisturbed[shorts[0]]
    row = the_worker(short)
    assert (row["restarts"], row["state"]) == (2, "idle")
    assert "demo in int8 instead of float32" in row["error"]

    sabotage.plan(batch_limits={"int8": 0})
    answer = short.post(shorts[0])
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "clip_failed")
    assert "out of memory" in answer.json()["error"]["message"]
    sabotage.plan()
    assert short.srt(shorts[0]) == undisturbed[shorts[0]]
    assert the_worker(short)["restarts"] == 2


@pytest.mark.soak
def test_safe_mode_and_a_worker_that_starts_late(commands, sabotage, shorts, undisturbed, background):
    sabotage.plan(too_large=["auto"])
    safe = commands.serve(
        WHISPER_GPUS="0", WHISPER_SAFE_MODE=1, WHISPER_BATCH_SIZE=8, **sabotage.settings
    ).wait_until_up()
    wait_for(lambda: (rows := safe.workers()) and rows[0]["state"] == "failed")
    assert "The GPU's memory is full" in the_worker(safe)["error"]
    answer = safe.client.get("/ready")
    assert answer.status_code == 503
    assert "no worker could load the model 'demo': CUDA failed" in answer.json()["error"]["message"]
    assert safe.post(shorts[0]).status_code == 503
    assert safe.client.get("/health").status_code == 200

    sabotage.plan()
    wait_for(lambda: safe.client.get("/ready").status_code == 200)
    work = {path: background.submit(safe.srt, path) for path in undisturbed}
    assert {path: one.result() for path, one in work.items()} == undisturbed
    row = the_worker(safe)
    assert (row["batch_size"], row["compute_type"], row["error"]) == (1, "int8_float32", None)
    assert row["batches"] == len(sabotage.decoded()) > 4, "each batch is one window"
