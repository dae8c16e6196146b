"""Waveforms from the real service: where a recording is loud and where it is silent."""

import json
import os
import signal
import sqlite3

import numpy as np
import pytest

from app.database.connection import FILE_NAME
from tests.e2e.fixtures import write_wav
from tests.e2e.running import SIMULATED, wait_for
from tests.media_files import RATE
from tests.sample_peaks import pairs

pytestmark = pytest.mark.timeout(180)


def peaks(server, job, **query):
    answer = server.client.get(f"/v1/jobs/{job}/peaks", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def remove_rows(server) -> None:
    """Remove all stored peaks, as if the jobs were from before there were any."""
    with sqlite3.connect(server.data / FILE_NAME, timeout=10) as database:
        assert database.execute("DELETE FROM peaks").rowcount
    database.close()


@pytest.fixture
def loud_and_silent(talk_pcm, tmp_path):
    """Ten seconds each of talk, silence, talk at a quarter of its volume, and silence."""
    part = talk_pcm[: 10 * RATE]
    return np.concatenate([part, 0 * part, part // 4, 0 * part])


def test_loud_and_silent_parts(emptied, loud_and_silent, tmp_path):
    job = emptied.submit(write_wav(tmp_path, loud_and_silent))["id"]
    emptied.finished(job)
    found = peaks(emptied, job, points=40)
    lowest, highest = np.array(found["min"]), np.array(found["max"])
    assert found["duration"] == 40
    loudest = np.abs(loud_and_silent.astype(int)).max() / 32_768
    assert max(highest.max(), -lowest.min()) == pytest.approx(loudest, abs=1e-4)
    assert not lowest[10:20].any()
    assert not highest[10:20].any()
    assert not highest[30:].any()
    # Each point has the extremes of its second, rounded to a byte.
    seconds = loud_and_silent.reshape(40, RATE) / 32_768
    assert np.abs(lowest - seconds.min(axis=1)).max() <= loudest / 254 + 1e-4
    assert np.abs(highest - seconds.max(axis=1)).max() <= loudest / 254 + 1e-4
    # One point for each bin.
    bins = np.array(pairs(loud_and_silent)) / 32_768
    found = peaks(emptied, job, points=len(bins))
    assert np.abs(np.array([found["min"], found["max"]]).T - bins).max() <= loudest / 254 + 1e-4
    emptied.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert not emptied.left_files()


def test_peaks_that_are_missing_are_made_again(emptied, shorts, talk, background):
    jobs = [emptied.submit(path)["id"] for path in (shorts[0], talk.path)]
    for job in jobs:
        emptied.finished(job)
    expected = [peaks(emptied, job) for job in jobs]
    remove_rows(emptied)
    asked = [background.submit(peaks, emptied, job) for job in jobs * 3]
    assert [one.result() for one in asked] == expected * 3
    assert not list((emptied.data / "pcm").iterdir())
    for path in (emptied.data / "uploads").iterdir():
        path.unlink()
    assert [peaks(emptied, job) for job in jobs] == expected, "they are stored"
    for job in jobs:
        emptied.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert not emptied.left_files()


def test_a_file_that_is_no_recording_has_none(emptied, tmp_path):
    (tmp_path / "letter.wav").write_bytes(b"Dear Sir or Madam" * 100)
    job = emptied.submit(tmp_path / "letter.wav")["id"]
    assert emptied.finished(job)["status"] == "failed"
    answer = emptied.client.get(f"/v1/jobs/{job}/peaks")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "not_audio")
    emptied.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert not emptied.left_files()


def test_peaks_stay_when_the_recording_does_not(commands, shorts):
    server = commands.ready(WHISPER_KEEP_AUDIO="false", WHISPER_ENGINE="simulated")
    job = server.submit(shorts[0])["id"]
    server.finished(job)
    wait_for(lambda: not server.left_files())
    assert max(peaks(server, job)["max"]) > 0.01
    remove_rows(server)
    answer = server.client.get(f"/v1/jobs/{job}/peaks")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "audio_not_kept")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.soak
def test_a_restart_between_decoding_and_the_end(commands, talk_pcm, tmp_path, how):
    """The job resumes from its decoded audio, and its peaks are those of before."""
    pcm = np.resize(talk_pcm, 300 * RATE)
    settings = SIMULATED | {"folder": tmp_path / "service"}
    first = commands.ready(**settings, WHISPER_SIMULATED="clip_ms=2000,batch=1")
    job = first.submit(write_wav(tmp_path, pcm))["id"]
    wait_for(lambda: first.job(job)["progress"]["stage"] == "transcribing")
    early = peaks(first, job)
    assert first.job(job)["status"] == "running"
    os.kill(first.pid, how)
    first.wait(20)
    wait_for(lambda: not first.running())
    with sqlite3.connect(first.data / FILE_NAME) as database:
        assert database.execute("SELECT status, pcm FROM jobs").fetchone()[1].startswith(f"{len(pcm)} ")
    database.close()
    second = commands.serve(**settings).wait_until_up()
    assert peaks(second, job) == early
    assert second.finished(job)["status"] == "succeeded"
    assert peaks(second, job) == early
    assert json.loads(second.result(job, "json"))["text"]
    second.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert not second.left_files()
