"""The same recording gives the same subtitles, to the byte, on any workers and beside any other work."""

import os
from collections.abc import Iterator

import pytest

from tests.e2e.running import Server

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
        ({"WHISPER_GPUS": "0,0,GPU-4711", "WHISPER_BATCH_SIZE": 1}, ["0", "0", "GPU-4711"]),
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


def test_in_full_batches(commands, talk, shorts, expected, background):
    """Batches save time with two threads, so clips of several requests share them."""
    one_worker = {"WHISPER_GPUS": None, "WHISPER_CPU_WORKERS": 1, "WHISPER_CPU_THREADS": 2}
    server = commands.ready(**one_worker, WHISPER_BATCH_SIZE=8)
    others = [background.submit(server.srt, short) for short in shorts]
    assert server.srt(talk.path) == expected
    assert all(other.result() for other in others)
    [row] = server.workers()
    assert row["clips"] > row["batches"]


@pytest.fixture
def one_core() -> Iterator[None]:
    """Commands that are started meanwhile have one core, and so one media worker."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.usefixtures("one_core")
def test_without_parallel_work(commands, talk, expected):
    server = commands.ready(WHISPER_GPUS=None, WHISPER_BATCH_SIZE=1)
    assert server.srt(talk.path) == expected
    [row] = server.workers()
    assert row["clips"] == row["batches"]
