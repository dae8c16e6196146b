"""Transcripts as server-sent events."""

import errno
import json

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.audio.transcription_text_done_event import Usage

from app.api.audio.streaming import Deltas
from app.api.http import event_streams as sse
from app.common.errors import ClipFailed, InvalidInput
from app.transcript.timeline import Transcript
from tests.api.fake_service import TRANSCRIPT
from tests.api.waiting import wait_for
from workers.messages import Segment

pytestmark = pytest.mark.anyio


def events(text):
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n") if line.startswith("data: ")]


@given(st.lists(st.lists(st.text(" ab\n", max_size=4), max_size=3)))
def test_concatenated_deltas_are_the_text(batches):
    deltas = Deltas()
    parts = [[Segment(0, 1, text, (), 0, 0, 1, 0) for text in texts] for texts in batches]
    for part in parts:
        deltas.transcribed(part)
    text = "".join(deltas.queue.get_nowait().delta for _ in range(deltas.queue.qsize()))
    assert text == deltas.text == "".join(text for texts in batches for text in texts).strip()


def test_one_delta_per_clip_then_the_text(site):
    response = site.transcribe(stream="true")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert [event["type"] for event in events(response.text)] == ["transcript.text.delta"] * 2 + [
        "transcript.text.done"
    ]
    *deltas, done = events(response.text)
    assert "".join(event["delta"] for event in deltas) == done["text"] == TRANSCRIPT.text
    assert done["usage"] == {
        "type": "tokens", "input_tokens": 50, "output_tokens": 6, "total_tokens": 56, "seconds": 5
    }  # fmt: skip
    assert "logprobs" not in response.text
    wait_for(lambda: not site.uploads)


def test_each_delta_has_the_log_probabilities_of_its_words(site):
    *deltas, done = events(site.transcribe(stream="true", **{"include[]": "logprobs"}).text)
    for delta in deltas:
        assert "".join(part["token"] for part in delta["logprobs"]).strip() == delta["delta"].strip()
    assert done["logprobs"] == [part for delta in deltas for part in delta["logprobs"]]


def test_the_text_at_the_end_is_not_put_together_from_all_segments(site, monkeypatch):
    """Unpacking ten hours of segments would hold the event loop."""
    expected = TRANSCRIPT.text
    monkeypatch.setattr(Transcript, "text", property(lambda transcript: pytest.fail("it was")))
    assert events(site.transcribe(stream="true").text)[-1]["text"] == expected


def test_error_before_the_first_event_has_its_status(site):
    site.service.error = InvalidInput("The file is text.", param="file")
    response = site.transcribe(stream="true")
    assert (response.status_code, response.json()["error"]["param"]) == (400, "file")
    wait_for(lambda: not site.uploads)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ClipFailed("The span from 3 s to 9 s failed."), "The span from 3 s"),
        (OSError("secret"), "unexpectedly"),
        (OSError(errno.EMFILE, "secret"), "as many files and connections"),
    ],
)
def test_error_mid_stream_is_an_event(site, error, message):
    site.service.late_error = error
    response = site.transcribe(stream="true")
    assert response.status_code == 200
    assert events(response.text)[0]["type"] == "transcript.text.delta"
    assert message in events(response.text)[-1]["error"]["message"]
    assert "secret" not in response.text


def test_heartbeats_while_there_are_no_events(site, monkeypatch):
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.05)
    site.service.paused = True
    with site.client.stream(
        "POST",
        "/v1/audio/transcriptions",
        data={"model": "whisper-1", "stream": "true"},
        files={"file": ("a.wav", b"RIFF\0")},
    ) as response:
        lines = response.iter_lines()
        assert [next(lines) for _ in range(4)] == [": heartbeat", ""] * 2
    assert site.service.cancelled.wait(5), "a disconnect must cancel the transcription"
    wait_for(lambda: not site.uploads)


def test_openai_client_streams(site):
    with openai.OpenAI(api_key="x", base_url=f"{site.url}/v1", max_retries=0, timeout=15) as client:
        stream = client.audio.transcriptions.create(file=("a.wav", b"RIFF\0"), model="whisper-1", stream=True)
        received = list(stream)
    kinds = [(event.type, getattr(event, "delta", None) or event.text) for event in received]
    assert received[-1].usage == Usage.model_validate(received[-1].usage.model_dump(), strict=True)
    assert received[-1].usage.total_tokens == 56
    assert kinds[-1] == ("transcript.text.done", TRANSCRIPT.text)
    assert "".join(text for kind, text in kinds[:-1]) == TRANSCRIPT.text


def test_silence(site):
    site.service.transcript = TRANSCRIPT.__class__("transcribe", "tiny", "en", 16_000, (), ())
    [done] = events(site.transcribe(stream="true").text)
    assert (done["type"], done["text"]) == ("transcript.text.done", "")
