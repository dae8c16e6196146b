"""The simulated engine behind the real HTTP, pipeline and dispatcher."""

import pytest

from tests.e2e.running import ONE_SIMULATED, SIMULATED, wait_for

pytestmark = pytest.mark.timeout(120)


def test_subtitles_with_made_up_text_have_the_times_of_the_speech(shared, server, talk):
    simulated = shared(**ONE_SIMULATED)
    srt = simulated.srt(talk.path)
    assert "Simulated" in srt
    assert srt == simulated.srt(talk.path)
    real, made_up = (
        one.client.post(
            "/v1/audio/transcriptions",
            files={"file": talk.path.read_bytes()},
            data={"model": "whisper-1", "response_format": "verbose_json"},
        ).json()
        for one in (server, simulated)
    )
    assert made_up["duration"] == real["duration"]
    assert abs(made_up["segments"][-1]["end"] - real["segments"][-1]["end"]) < 1


def test_simulated_workers_are_shown_as_such_and_have_no_processes(commands):
    simulated = commands.ready(**SIMULATED, WHISPER_CPU_WORKERS=64)
    rows = simulated.workers()
    assert len(rows) == 64
    assert {(row["device"], row["model"], row["pid"]) for row in rows} == {
        ("simulated", "simulated", simulated.pid)
    }
    models = simulated.client.get("/v1/models").json()["data"]
    assert models[0]["id"] == "simulated"
    assert "demo" not in {model["id"] for model in models}


@pytest.mark.soak
def test_crashes_do_not_change_the_subtitles(commands, talk):
    calm = commands.ready(**SIMULATED)
    # A single worker crashes at the same clips in each run.
    crashing = commands.ready(**ONE_SIMULATED, WHISPER_SIMULATED="crash=0.2,seed=1,batch=1")
    assert crashing.srt(talk.path) == calm.srt(talk.path)
    assert sum(row["restarts"] for row in crashing.workers()) > 0


def test_an_invalid_setting_ends_the_start_with_one_line(run_here):
    refused = run_here("serve", **SIMULATED, WHISPER_SIMULATED="clip_ms=fast")
    assert refused.code == 2
    assert refused.stderr.count("\n") == 1
    assert "WHISPER_SIMULATED=clip_ms=fast" in refused.stderr


@pytest.mark.soak
def test_a_poisoned_slot_fails_no_job(commands, shared, ten_minutes):
    srt = shared(**ONE_SIMULATED).srt(ten_minutes)
    settings = SIMULATED | {"WHISPER_CPU_WORKERS": 2}
    poisoned = commands.ready(
        **settings, WHISPER_SIMULATED="poisoned_at=0:1+1:1.5,poisoned_for_good=0,speed=0.5"
    )
    job = poisoned.submit(ten_minutes)
    assert poisoned.finished(job["id"])["status"] == "succeeded"
    assert poisoned.result(job["id"]) == srt
    wait_for(lambda: poisoned.workers()[0]["state"] == "failed")
    first, second = poisoned.workers()
    assert (first["clips"], "quarantined" in first["error"]) == (0, True)
    assert second["restarts"] > 0
    assert poisoned.client.get("/ready").status_code == 200
