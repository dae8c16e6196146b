"""Jobs and parts of them transcribed again, by the demo model and by simulated workers."""

import json

import pytest

from tests.e2e.fixtures import write_wav
from tests.e2e.running import ONE_SIMULATED, wait_for
from tests.e2e.test_jobs import events
from tests.media_files import RATE

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def recording(talk_pcm, tmp_path_factory):
    return write_wav(tmp_path_factory.mktemp("talk"), talk_pcm[: 30 * RATE])


def segments(server, job):
    return server.client.get(f"/v1/jobs/{job}/segments").raise_for_status().json()["segments"]


def correct(server, job, changed):
    answer = server.client.put(
        f"/v1/jobs/{job}/segments", json={"segments": changed}, headers={"If-Match": "*"}
    )
    assert answer.status_code == 200, answer.text


def child_of(server, job, **fields):
    answer = server.client.post(f"/v1/jobs/{job}/again", json=fields)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def again(server, job, **fields):
    child = child_of(server, job, **fields)
    ended = server.finished(child)
    assert ended["status"] == "succeeded", ended["error"]
    kinds = [kind for _, kind, _ in events(server, child)]  # all of them, once it has ended
    assert "job.segments" in kinds
    assert kinds[-1] == "job.succeeded"
    return segments(server, job)


def test_a_part_is_transcribed_again_between_what_was_corrected(server, recording):
    job = server.finished(server.submit(recording)["id"])["id"]
    original = segments(server, job)
    assert again(server, job) == original, "the same options give the same text"
    assert server.job(job)["revision"] == 0
    second, third, fourth = original[1:4]
    mangled = [{**segment} for segment in original]
    mangled[2] |= {"text": "Unknown here."}
    del mangled[3]
    correct(server, job, mangled)
    before = segments(server, job)
    part = {"start": second["start"], "end": fourth["end"]}
    kept = again(server, job, **part)
    assert kept[2] == before[2]
    assert [each for each in kept if each["start"] >= fourth["end"]] == before[3:]
    assert kept[0] == original[0]
    assert not any(third["end"] <= each["start"] < fourth["end"] for each in kept), (
        "what was removed stays away"
    )
    transcribed = again(server, job, **part, keep_corrections=False)
    assert "Unknown here" not in json.dumps(transcribed)
    in_part = [each for each in transcribed if part["start"] <= each["start"] and each["end"] <= part["end"]]
    words = " ".join(each["text"] for each in (second, third, fourth)).split()
    assert " ".join(each["text"] for each in in_part).split() == words
    assert [each for each in transcribed if each["start"] >= fourth["end"]] == original[4:]
    first = server.client.get(f"/v1/jobs/{job}/segments?revision=original").json()["segments"]
    assert first == original


@pytest.mark.parametrize("diarize", [True, False])
def test_a_part_again_keeps_who_speaks(server, dialogue, diarize):
    """Two people speak in this part: too little to say so without the rest of the recording."""
    part = {"start": 24.514, "end": 29.454}
    job = server.finished(server.submit(dialogue.path, diarize=diarize)["id"])["id"]
    people = {"num_speakers": None if diarize else 3, "names": {"S1": "Ann"}}
    answer = server.client.post(f"/v1/jobs/{job}/speakers", json=people, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    before = spoken(segments(server, job))
    assert {speaker for _, speaker in before} == {"Ann", "S2", "S3"}
    assert spoken(again(server, job, **part)) == before
    asked = spoken(again(server, job, **part, diarize=True, num_speakers=1))
    differing = [new for new, old in zip(asked, before, strict=True) if new != old]
    assert len({speaker for _, speaker in differing}) == 1, "one person, as the client says"


def spoken(listed):
    """Each word, and who speaks it."""
    return [
        (word["word"], word.get("speaker", segment["speaker"]))
        for segment in listed
        for word in segment["words"]
    ]


@pytest.mark.soak
def test_a_part_passes_a_long_job_of_the_same_owner(commands, talk, half_an_hour):
    server = commands.ready(**ONE_SIMULATED, WHISPER_SIMULATED="batch=1,fixed_ms=700,clip_ms=1")
    job = server.finished(server.submit(talk.path)["id"])["id"]
    long = server.submit(half_an_hour)["id"]
    wait_for(lambda: server.job(long)["progress"]["clips_done"] >= 2)
    child = child_of(server, job, start=5, end=15)
    ended = server.finished(child)
    assert ended["status"] == "succeeded"
    assert server.job(long)["status"] == "running"
