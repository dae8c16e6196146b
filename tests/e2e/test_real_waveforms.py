"""Waveforms from the real service: where a recording is loud and where it is silent."""

import numpy as np
import pytest

from tests.e2e.fixtures import write_wav
from tests.media_files import RATE
from tests.sample_peaks import pairs

pytestmark = pytest.mark.timeout(180)


def peaks(server, job, **query):
    answer = server.client.get(f"/v1/jobs/{job}/peaks", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


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
