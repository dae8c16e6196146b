"""The simulated engine behind the real HTTP, pipeline and dispatcher."""

import pytest

from tests.e2e.running import ONE_SIMULATED, SIMULATED

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
