"""The same recording gives the same subtitles, to the byte, whatever hears it and whatever else goes on."""

import os
from collections.abc import Iterator

import pytest

from tests.e2e.running import Server

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def alone(server: Server, talk) -> str:
    """The talk on two workers that have nothing else to do."""
    return server.srt(talk.path)


def test_again(server, talk, alone):
    assert server.srt(talk.path) == alone


def test_among_ten_others(server, talk, shorts, alone, background):
    others = [background.submit(server.srt, (shorts * 3)[number]) for number in range(10)]
    mine = background.submit(server.srt, talk.path)
    assert mine.result() == alone
    assert {other.result() for other in others} == {server.srt(short) for short in shorts}


@pytest.mark.parametrize(
    ("settings", "devices"),
    [
        ({"WHISPER_GPUS": "0,0,GPU-4711", "WHISPER_BATCH_SIZE": 1}, ["0", "0", "GPU-4711"]),
        ({"WHISPER_ENGINE": "inline"}, [None]),
    ],
    ids=["three workers without batches", "inline"],
)
def test_on_another_fleet(commands, talk, alone, settings, devices):
    server = commands.ready(**settings)
    assert server.srt(talk.path) == alone
    rows = server.workers()
    assert [row["visible_devices"] for row in rows] == devices
    assert len({row["pid"] for row in rows}) == len(devices)
    assert all(row["clips"] for row in rows)


def test_in_batches_that_fill(commands, talk, shorts, alone, background):
    """Two threads, for which batches pay: clips of several requests are heard together."""
    one_worker = {"WHISPER_GPUS": None, "WHISPER_CPU_WORKERS": 1, "WHISPER_CPU_THREADS": 2}
    server = commands.ready(**one_worker, WHISPER_BATCH_SIZE=8)
    others = [background.submit(server.srt, short) for short in shorts]
    assert server.srt(talk.path) == alone
    assert all(other.result() for other in others)
    [row] = server.workers()
    assert row["clips"] > row["batches"]


@pytest.fixture
def one_core() -> Iterator[None]:
    """All that is started meanwhile has one core, and so one media child."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.usefixtures("one_core")
def test_with_nothing_that_goes_on_at_once(commands, talk, alone):
    server = commands.ready(WHISPER_GPUS=None, WHISPER_BATCH_SIZE=1)
    assert server.srt(talk.path) == alone
    [row] = server.workers()
    assert row["clips"] == row["batches"]
