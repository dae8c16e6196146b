"""WHISPER_AUDIO_CONTEXT=auto: the same words in less time, and the same subtitles in any batch."""

import pytest

from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, Server, wait_for

pytestmark = pytest.mark.timeout(170)

TALKS = [DATA / f"{name}.flac" for name in ("talk", "talk_de", "talk_es")]
ONE_WORKER = {"WHISPER_GPUS": None, "WHISPER_CPU_WORKERS": 1, "WHISPER_CPU_THREADS": 2}


@pytest.fixture(scope="module")
def auto(module_commands: Commands) -> Server:
    """A server without batches."""
    return module_commands.ready(WHISPER_AUDIO_CONTEXT="auto", WHISPER_BATCH_SIZE=1, WHISPER_GPUS="0")


def test_the_words_are_those_of_the_full_context(server, auto, shorts):
    for recording in (TALKS[0], *shorts[:3]):
        assert auto.text(recording) == server.text(recording) != "", recording.name


@pytest.mark.soak
def test_the_subtitles_depend_neither_on_batches_nor_on_other_files(
    auto, commands, shorts, two_minutes, background
):
    """Clips of one request share batches with those of others."""
    files = [*TALKS, *shorts]
    expected = [auto.srt(file) for file in files]
    batched = commands.ready(WHISPER_AUDIO_CONTEXT="auto", WHISPER_BATCH_SIZE=8, **ONE_WORKER)
    long = background.submit(batched.srt, two_minutes)
    wait_for(lambda: batched.workers()[0]["state"] == "busy")  # so clips queue up behind it
    requests = [background.submit(batched.srt, file) for file in files * 2]
    assert [request.result() for request in requests] == expected * 2
    assert long.result()
    [row] = batched.workers()
    assert row["clips"] > row["batches"]
