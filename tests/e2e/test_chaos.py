"""Jobs end with the same results whichever processes are killed meanwhile."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.chaos import Chaos, mixed_recordings
from tests.e2e.fixtures import write_wav
from tests.e2e.running import Server
from tests.e2e.saboteur.sitecustomize import POISON
from tests.e2e.test_faults import with_pattern
from tests.media_files import RATE


def undisturbed(server: Server, recordings: dict[str, Path]) -> dict[str, str]:
    with ThreadPoolExecutor(4) as clients:
        return dict(zip(recordings, clients.map(server.srt, recordings.values()), strict=True))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("two_batches", [False, True])
def test_thirty_jobs_survive_twenty_kills(commands, server, sabotage, talk_pcm, tmp_path, two_batches):
    sabotage.plan(two_batches=two_batches)
    lengths = random.Random(0)
    recordings = mixed_recordings(talk_pcm, tmp_path, [lengths.uniform(4, 300) for _ in range(30)])
    chaos = Chaos(commands, tmp_path, sabotage, seed=2, pause_s=(1, 12))
    kinds = random.Random(3)
    kills = [kinds.choice(("server", "server", "worker", "worker", "media")) for _ in range(20)]
    results = chaos.run(recordings, kills)
    print(chaos.report)
    assert results == undisturbed(server, recordings)
    assert chaos.report.transcribed_again == []
    assert chaos.report.stored > 0
    assert sabotage.had_two_batches == two_batches
    assert chaos.left() == []


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_of_many_clips_only_the_one_that_crashes_workers_is_set_aside(
    commands, sabotage, talk_pcm, tmp_path, seed
):
    """Although other workers are killed meanwhile."""
    pcm = np.resize(talk_pcm, 50 * 60 * RATE)
    poisoned = write_wav(tmp_path, with_pattern(pcm, 600.0, POISON))
    server = commands.ready(WHISPER_GPUS="0,1,2", **sabotage.settings)
    job = server.submit(poisoned)
    chance = random.Random(seed)
    for _ in range(15):
        time.sleep(chance.uniform(0.7, 2))
        row = chance.choice([row for row in server.workers() if row["pid"]] or [{"pid": None}])
        if row["pid"] is not None:
            with suppress(ProcessLookupError):
                os.kill(row["pid"], signal.SIGKILL)
    failed = server.finished(job["id"], 800)
    assert failed["status"] == "failed"
    assert failed["error"]["code"] in ("clip_failed", "clip_interrupted")
    assert failed["progress"]["clips_total"] >= 100
    answer = server.client.get(
        f"/v1/jobs/{job['id']}/result", params={"format": "verbose_json", "allow_partial": "true"}
    )
    [span] = answer.raise_for_status().json()["failed_spans"]
    assert span["start"] < 602
    assert span["end"] > 600
