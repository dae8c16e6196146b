"""A short job beside many long ones, on simulated workers."""

import time

import av
import numpy as np
import pytest

from tests.e2e.running import SIMULATED
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(300)

# Two slots that transcribe about two clips in a second together.
SLOW = SIMULATED | {
    "WHISPER_CPU_WORKERS": 2,
    "WHISPER_SIMULATED": "fixed_ms=100,clip_ms=900,token_ms=0,batch=4",
}


def statuses(server, jobs):
    return [server.job(job)["status"] for job in jobs]


@pytest.fixture(scope="module")
def ten_hours(talk_pcm, tmp_path_factory):
    """A recording of talk, ten minutes of it and much silence, in a file that is cheap to decode."""
    path = tmp_path_factory.mktemp("talks") / "ten_hours.flac"
    with av.open(path, "w") as container:
        stream = container.add_stream("flac", rate=RATE, layout="mono")
        talk = np.resize(talk_pcm, 60 * RATE)
        for second in range(0, 36_000, 60):
            pcm = talk if second % 3600 == 0 else np.zeros_like(talk)
            frame = av.AudioFrame.from_ndarray(pcm[np.newaxis].astype("<i2"), format="s16", layout="mono")
            frame.sample_rate = RATE
            frame.pts = second * RATE
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.mark.soak
@pytest.mark.parametrize("pause_s", [0, 20])
def test_a_job_of_a_minute_beside_twelve_of_ten_hours(commands, talk, ten_hours, pause_s):
    """However soon it comes after them. Fails if it takes more than a minute."""
    server = commands.ready(**SLOW | {"WHISPER_SIMULATED": None})
    long = [server.submit(ten_hours)["id"] for _ in range(12)]
    time.sleep(pause_s)
    began = time.monotonic()
    short = server.submit(talk.path)["id"]
    assert server.finished(short)["status"] == "succeeded"
    elapsed_s = time.monotonic() - began
    print(f"done after {elapsed_s:.1f} s")
    assert "succeeded" not in statuses(server, long)
    for job in long:
        server.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert elapsed_s < 60
