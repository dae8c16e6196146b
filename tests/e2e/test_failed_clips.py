"""Jobs with a clip that fails: all others are transcribed, kept, and not transcribed again."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.fixtures import write_wav
from tests.e2e.running import Server
from tests.e2e.saboteur.sitecustomize import FAILING
from tests.e2e.test_faults import with_pattern
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(120)

FAILS_AT_S = 20.0


def again(server: Server, job: str, **options: Any) -> Any:
    return server.client.post(f"/v1/jobs/{job}/again", json=options)


def partial(server: Server, job: str, form: str) -> Any:
    query = {"format": form, "allow_partial": "true"}
    return server.client.get(f"/v1/jobs/{job}/result", params=query).raise_for_status()


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"diarize": "true"}, marks=pytest.mark.soak),
        pytest.param({"channels": "separate"}, marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_only_the_clip_that_failed_is_transcribed_again(
    commands, server, sabotage, talk_pcm, tmp_path, options
):
    sabotage.plan(failing=True)
    pcm = with_pattern(np.resize(talk_pcm, 80 * RATE), FAILS_AT_S, FAILING)
    recording = write_wav(Path(tmp_path), pcm)
    broken = commands.ready(WHISPER_GPUS="0", **sabotage.settings)
    job = broken.submit(recording, **options)["id"]
    failed = broken.finished(job)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "clip_failed")
    [span] = failed["failed_spans"]
    assert span["start"] < FAILS_AT_S < span["end"]

    refused = broken.client.get(f"/v1/jobs/{job}/result")
    assert refused.status_code == 409
    assert "allow_partial=true" in refused.json()["error"]["message"]
    complete = server.submit(recording, **options)["id"]
    assert server.finished(complete)["status"] == "succeeded"
    wanted = server.client.get(f"/v1/jobs/{complete}/result", params={"format": "verbose_json"}).json()
    rest = partial(broken, job, "verbose_json").json()
    assert rest["failed_spans"] == failed["failed_spans"]
    words = re.findall(r"\w+", rest["text"])
    assert 0 < len(words) < len(re.findall(r"\w+", wanted["text"]))
    assert partial(broken, job, "srt").text

    before = sabotage.decoded()
    assert again(broken, job, beam_size=2).status_code == 409
    sabotage.plan()
    answer = again(broken, job)
    assert (answer.status_code, answer.json()["id"]) == (202, job)
    events = broken.client.get(f"/v1/jobs/{job}/events").text
    assert "event: job.failed" not in events
    assert events.rstrip().splitlines()[-2] == "event: job.succeeded"
    ended = broken.finished(job)
    assert (ended["status"], ended["error"], ended["failed_spans"]) == ("succeeded", None, [])
    assert broken.result(job) == server.result(complete)
    new = sabotage.decoded()[len(before) :]
    assert len(new) <= 2 < len(before)
    assert not set(new) & set(before)
