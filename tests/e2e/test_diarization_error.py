"""Who speaks in a conversation of three people, with the demo model: measured as everybody measures it."""

import json
from typing import Any

import pytest

from bench.diarization import Spoken, by_segments, by_words, error_rate, true_speech
from tests.e2e.running import DATA, Server

pytestmark = [pytest.mark.timeout(120), pytest.mark.soak]

TRUTH = json.loads((DATA / "dialogue.json").read_text())


@pytest.fixture(scope="module")
def segments(server: Server) -> list[dict[str, Any]]:
    job = server.submit(DATA / "dialogue.flac", diarize="true")["id"]
    assert server.finished(job)["status"] == "succeeded"
    return server.client.get(f"/v1/jobs/{job}/segments").raise_for_status().json()["segments"]


def test_the_number_of_speakers_is_found(segments):
    speakers = [segment["speaker"] for segment in segments]
    assert list(dict.fromkeys(speakers)) == ["S1", "S2", "S3"]


@pytest.mark.parametrize("spoken", [by_segments, by_words])
def test_the_error_rate_is_low(segments, spoken):
    found: list[Spoken] = spoken(segments)
    error = error_rate(true_speech(TRUTH), found, TRUTH["duration"])
    assert error["error"] <= 0.04, error
