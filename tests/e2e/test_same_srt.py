"""The same recording gives the same subtitles, to the byte, whatever hears it and whatever else goes on."""

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
        ({"WHISPER_GPUS": None, "WHISPER_CPU_WORKERS": 1}, ["0"]),
        ({"WHISPER_GPUS": "0,0,GPU-4711", "WHISPER_BATCH_SIZE": 1}, ["0", "0", "GPU-4711"]),
        ({"WHISPER_ENGINE": "inline"}, [None]),
    ],
    ids=["one worker", "three workers without batches", "inline"],
)
def test_on_another_fleet(commands, talk, alone, settings, devices):
    server = commands.ready(**settings)
    assert server.srt(talk.path) == alone
    rows = server.workers()
    assert [row["visible_devices"] for row in rows] == devices
    assert len({row["pid"] for row in rows}) == len(devices)
    assert all(row["clips"] for row in rows)
