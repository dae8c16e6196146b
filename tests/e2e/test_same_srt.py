"""The same recording gives the same subtitles, to the byte, on any workers and beside any other work."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.fixtures import write_wav
from tests.e2e.running import Server
from tests.media_files import RATE, Pcm

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def expected(server: Server, talk) -> str:
    """The subtitles of the talk from two workers without other work."""
    return server.srt(talk.path)


def test_again(server, talk, expected):
    assert server.srt(talk.path) == expected


def test_among_ten_others(server, talk, shorts, expected, background):
    others = [background.submit(server.srt, (shorts * 3)[number]) for number in range(10)]
    talk_srt = background.submit(server.srt, talk.path)
    assert talk_srt.result() == expected
    assert {other.result() for other in others} == {server.srt(short) for short in shorts}


@pytest.mark.parametrize(
    ("settings", "devices"),
    [
        pytest.param(
            {"WHISPER_GPUS": "0,0,GPU-4711", "WHISPER_BATCH_SIZE": 1},
            ["0", "0", "GPU-4711"],
            marks=pytest.mark.soak,
        ),
        ({"WHISPER_ENGINE": "inline"}, [None]),
    ],
    ids=["three workers without batches", "inline"],
)
def test_on_another_fleet(commands, talk, expected, settings, devices):
    server = commands.ready(**settings)
    assert server.srt(talk.path) == expected
    rows = server.workers()
    assert [row["visible_devices"] for row in rows] == devices
    assert len({row["pid"] for row in rows}) == len(devices)
    assert all(row["clips"] for row in rows)


SCORES = {"avg_logprob", "no_speech_prob", "probability"}


@pytest.fixture(scope="module")
def half_noisy(talk_pcm: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Talk, whose first clip takes two windows, and 12 s in noise, which are decoded again in halves."""
    noise = np.random.default_rng(0).normal(0, 800, 12 * RATE)
    noisy = np.clip(talk_pcm[: len(noise)] + noise, -32768, 32767).astype(np.int16)
    return write_wav(tmp_path_factory.mktemp("noisy"), np.concatenate([talk_pcm[: 40 * RATE], noisy]))


def results(server: Server, path: Path, background: ThreadPoolExecutor) -> tuple[str, dict[str, Any]]:
    """A recording's subtitles, and its segments and words with their scores.

    Both requests have the same options, so the service transcribes the recording once for them.
    """
    srt = background.submit(server.srt, path)
    answer = server.client.post(
        "/asr",
        params={"output": "json", "word_timestamps": "true"},
        files={"audio_file": (path.name, path.read_bytes())},
    )
    return srt.result(), answer.raise_for_status().json()


def scores(value: Any) -> list[float]:
    if isinstance(value, dict):
        own = [value[key] for key in sorted(SCORES & value.keys())]
        return own + [score for each in value.values() for score in scores(each)]
    return [score for each in value for score in scores(each)] if isinstance(value, list) else []


@pytest.mark.timeout(240)
@pytest.mark.parametrize("sizes", [(1, 16), (2, 4, 8)])
@pytest.mark.soak
def test_in_batches_of_any_size(commands, server, sabotage, shorts, half_noisy, background, sizes):
    """Windows of several clips are decoded together, and so are further windows with first ones."""
    srt, expected = results(server, half_noisy, background)
    assert len(scores(expected)) > 100
    for size in sizes:
        decoded = len(sabotage.decoded())
        one_worker = {"WHISPER_GPUS": None, "WHISPER_CPU_WORKERS": 1, "WHISPER_CPU_THREADS": 2}
        batching = commands.ready(**one_worker, WHISPER_BATCH_SIZE=size, **sabotage.settings)
        others = [background.submit(batching.srt, path) for path in shorts]
        batched_srt, batched = results(batching, half_noisy, background)
        assert batched_srt == srt
        assert batched == expected
        assert all(other.result() for other in others)
        [row] = batching.workers()
        assert not batching.end()
        windows = len(sabotage.decoded()) - decoded
        assert windows > row["clips"] + 4, "two clips take several windows"
        assert row["batches"] == windows if size == 1 else row["batches"] < windows


@pytest.fixture
def one_core() -> Iterator[None]:
    """Commands that are started meanwhile have one core, and so one media worker."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.usefixtures("one_core")
@pytest.mark.soak
def test_without_parallel_work(commands, sabotage, talk, expected):
    server = commands.ready(WHISPER_GPUS=None, WHISPER_BATCH_SIZE=1, **sabotage.settings)
    assert server.srt(talk.path) == expected
    [row] = server.workers()
    assert row["batches"] == len(sabotage.decoded()), "each batch is one window"
