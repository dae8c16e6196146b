"""Jobs end with the same results whichever processes are killed meanwhile."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.chaos import Chaos, mixed_recordings
from tests.e2e.running import Server


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
@pytest.mark.parametrize("seed", range(10))
def test_no_job_fails_if_something_is_killed_every_second(
    commands, server, sabotage, talk_pcm, tmp_path, seed
):
    chance = random.Random(seed)
    recordings = mixed_recordings(talk_pcm, tmp_path, [chance.uniform(4, 120) for _ in range(12)])
    chaos = Chaos(commands, tmp_path, sabotage, seed, pause_s=(0.7, 2))
    kills = [chance.choice(("server", "worker", "worker", "media")) for _ in range(15)]
    results = chaos.run(recordings, kills)
    print(chaos.report)
    assert results == undisturbed(server, recordings)
    assert chaos.left() == []
