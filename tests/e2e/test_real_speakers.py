"""Who speaks, by real clients of a real service."""

import base64
import io
import wave

import openai
import pytest
from openai.types.audio import TranscriptionDiarized

from tests.e2e.reading import speakers_of
from tests.media_files import RATE, read_pcm

pytestmark = pytest.mark.timeout(120)

PART_S = 24  # of the dialogue: all three speak


def known(dialogue, start, end):
    """A data URL of a part of the dialogue."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, RATE, 0, "NONE", ""))
        writer.writeframes(read_pcm(dialogue.path)[int(start * RATE) : int(end * RATE)].tobytes())
    return "data:audio/wav;base64," + base64.b64encode(file.getvalue()).decode()


def test_the_client_of_openai_names_people(server, dialogue):
    """Bob and Cem by how they speak in later sentences, and somebody else."""
    people = {"Bob": known(dialogue, 26.7, 32.7), "Cem": known(dialogue, 59.7, 64.9)}
    with openai.OpenAI(api_key="unused", base_url=f"{server.url}/v1", max_retries=0, timeout=100) as client:
        answer = client.audio.transcriptions.create(
            model="gpt-4o-transcribe-diarize",
            file=dialogue.path,
            response_format="diarized_json",
            chunking_strategy="auto",
            known_speaker_names=list(people),
            known_speaker_references=list(people.values()),
            extra_body={"end": PART_S},
        )
    assert isinstance(answer, TranscriptionDiarized)
    labels, right = speakers_of(dialogue, [(part.start, part.end, part.speaker) for part in answer.segments])
    assert labels == {"Bob": "Bob", "Cem": "Cem", "A": "Ann"}
    assert right > 0.9
    assert answer.text.split() == " ".join(part.text for part in answer.segments).split()


def test_a_reference_that_is_too_short_is_refused(server, dialogue):
    form = {
        "model": "whisper-1",
        "known_speaker_names[]": "Bob",
        "known_speaker_references[]": known(dialogue, 26.7, 27.7),
    }
    answer = server.client.post(
        "/v1/audio/transcriptions", data=form, files={"file": dialogue.path.read_bytes()}
    )
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "known_speaker_references[]")
    assert "Bob" in answer.json()["error"]["message"]


def test_a_job_finds_its_speakers_again(server, dialogue):
    job = server.submit(dialogue.path, diarize=True, end=PART_S)["id"]
    server.finished(job)
    path = f"/v1/jobs/{job}"

    def again(body):
        answer = server.client.post(f"{path}/speakers", json=body, headers={"If-Match": "*"})
        return answer.raise_for_status().json()

    def labels(document):
        parts = [(part["start"], part["end"], part["speaker"]) for part in document["segments"]]
        return speakers_of(dialogue, parts)[0]

    first = server.client.get(f"{path}/segments").json()
    assert labels(first) == {"S1": "Bob", "S2": "Cem", "S3": "Ann"}
    two = again({"num_speakers": 2})
    assert len(labels(two)) == 2
    assert [part["text"] for part in two["segments"]] == [part["text"] for part in first["segments"]]
    assert labels(again({"num_speakers": 3, "names": {"S1": "Bob", "S3": "Ann"}})) == {
        "Bob": "Bob", "S2": "Cem", "Ann": "Ann",
    }  # fmt: skip
    assert again({"names": {"S2": "Cem"}})["revision"] == 3
    document = server.client.get(f"{path}/result?format=verbose_json&revision=original").json()
    assert {part["speaker"] for part in document["segments"]} == {"S1", "S2", "S3"}
    server.client.delete(path).raise_for_status()
