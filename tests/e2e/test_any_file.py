"""Any file that users may send: a transcript, or an error that says why there is none."""

import pytest

from tests.e2e.reading import Talk, word_error_rate
from tests.e2e.running import Server
from tests.media_files import BROKEN, GOOD, RATE, Pcm, encode

# Tests of the decoder have all formats.
SAME_SAMPLES = ["caf", "ogg flac"]
OTHER_SAMPLES = ["mp3 44.1 kHz stereo", "ogg opus", "ts video aac"]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def beginning(server: Server, talk: Talk, talk_pcm: Pcm) -> tuple[Pcm, str, float]:
    """Some cues of the talk, what they say, and the error rate of the words in a file without losses."""
    end = next(cue["start"] for cue in talk.truth["cues"] if cue["start"] > 15) - 0.1
    said = " ".join(cue["text"] for cue in talk.truth["cues"] if cue["start"] < end)
    pcm = talk_pcm[: round(end * RATE)]
    return pcm, said, word_error_rate(said, server.text(encode(pcm, "wav", "pcm_s16le")))


@pytest.mark.parametrize("kind", SAME_SAMPLES)
def test_the_same_samples_in_another_container_give_the_same_subtitles(server, beginning, kind):
    pcm, _, _ = beginning
    assert server.srt(GOOD[kind].encode(pcm)) == server.srt(encode(pcm, "wav", "pcm_s16le"))


@pytest.mark.parametrize("kind", OTHER_SAMPLES)
def test_resampled_or_lossy_files_give_nearly_the_same_words(server, beginning, kind):
    pcm, said, usual = beginning
    assert word_error_rate(said, server.text(GOOD[kind].encode(pcm))) <= usual + 0.02


def test_broken_files_are_refused_and_do_no_harm(emptied, shorts):
    assert len(BROKEN) >= 20
    before = emptied.text(shorts[0])
    media_workers = {child.pid for child in emptied.media_workers()}
    for make, code in BROKEN.values():
        answer = emptied.post(make())
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert len(error["message"]) > 20
        assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", "file", code)
    assert emptied.text(shorts[0]) == before
    assert {child.pid for child in emptied.media_workers()} >= media_workers  # none was replaced
    assert [row["restarts"] for row in emptied.workers()] == [0, 0]
    assert not emptied.left_files()
