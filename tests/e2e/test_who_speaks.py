"""Who speaks, with real media workers: the same on any number of workers, and after a kill in mid-way.

The text is made up: words come from a simulated engine, and their speakers from the voices.
"""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from tests.e2e.fixtures import write_wav
from tests.e2e.running import DATA, SIMULATED, Server, wait_for
from tests.media_files import read_pcm

pytestmark = pytest.mark.timeout(180)

TIMES = 6  # that the dialogue is in the recording: the voices of all clips are not stored at once
DIALOGUE = json.loads((DATA / "dialogue.json").read_text())
SLOW = {"WHISPER_SIMULATED": "speed=0.02,batch=1"}  # so no clip is transcribed before the kill


def workers(count: int) -> dict[str, Any]:
    """The settings of a server with so many workers of both kinds."""
    return {
        **SIMULATED,
        "WHISPER_CPU_WORKERS": count,
        "WHISPER_MEDIA_WORKERS": count,
        "WHISPER_LOG_LEVEL": "debug",
    }


def stored_voices(server: Server) -> list[tuple[int, int, bytes]]:
    """The voices in the database, by clip."""
    path = server.data / "whisperfleet.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return database.execute('SELECT start, "end", content FROM voices ORDER BY start').fetchall()


def embedded(server: Server) -> int:
    """How many clips' voices the media workers have embedded."""
    return server.stderr.count("embedded the voices")


def outcome(server: Server, job_id: str) -> tuple[str, ...]:
    """The result of a job in formats that have speakers, and its segments."""
    job = server.finished(job_id)
    assert job["status"] == "succeeded", job["error"]
    segments = server.client.get(f"/v1/jobs/{job_id}/segments").raise_for_status().text
    return (segments, *(server.result(job_id, form) for form in ("verbose_json", "vtt")))


def speaker_at(time_s: float) -> str | None:
    """Who really speaks."""
    time_s %= DIALOGUE["duration"]
    return next((cue["speaker"] for cue in DIALOGUE["cues"] if cue["start"] <= time_s < cue["end"]), None)


@pytest.mark.soak
def test_labels_do_not_depend_on_the_number_of_workers_and_a_kill_costs_no_voice(commands, tmp_path):
    recording = write_wav(tmp_path, np.tile(read_pcm(DATA / "dialogue.flac"), TIMES))
    slow = commands.ready(**workers(2), **SLOW)
    job = slow.submit(recording, diarize="true", language="en")["id"]
    wait_for(lambda: stored_voices(slow), pause_s=0.005)
    slow.die()
    before = stored_voices(slow)

    restarted = commands.restart(slow, **workers(3))
    expected = outcome(restarted, job)
    voices = stored_voices(restarted)
    assert 0 < len(before) < len(voices), "the kill was not in mid-way"
    assert set(before) <= set(voices)
    assert embedded(restarted) == len(voices) - len(before)

    single = commands.ready(**workers(1))
    assert outcome(single, single.submit(recording, diarize="true", language="en")["id"]) == expected
    assert embedded(single) == len(voices)

    segments = json.loads(expected[0])["segments"]
    labels = [segment["speaker"] for segment in segments]
    truth = [speaker_at((segment["start"] + segment["end"]) / 2) for segment in segments]
    pairs = Counter(zip(labels, truth, strict=True))
    right = sum(max(pairs[label, speaker] for speaker in DIALOGUE["speakers"]) for label in set(labels))
    assert set(labels) == {"S1", "S2", "S3"}
    assert right >= 0.9 * len(segments)

    restarted.client.delete(f"/v1/jobs/{job}").raise_for_status()
    assert stored_voices(restarted) == []
