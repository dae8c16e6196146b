"""Requests of other programs, in their exact form; docs/clients.md has their settings."""

import io
import json
import wave
from email.utils import quote

import httpx
import numpy as np
import openai
import pytest

from tests.e2e.reading import read_srt, speakers_of
from tests.media_files import RATE, encode, read_pcm

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def speech(shorts):
    return read_pcm(shorts[0])


@pytest.fixture(scope="module")
def wav(speech):
    """A WAV file as programs write it that record or extract sound themselves."""
    return wav_file(speech)


def wav_file(speech):
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes(speech.astype("<i2").tobytes())
    return file.getvalue()


@pytest.fixture(scope="module")
def said(server, wav):
    return server.text(wav).strip()


def dotnet(server, path, wav, *fields):
    """Send a form as .NET's MultipartFormDataContent: names without quotes, two file names, typed texts."""
    boundary = "4f9d1a40-5b04-4b7e-9d4f-0c8f0f3f7b1d"

    def part(disposition, kind, content):
        head = (
            f"--{boundary}\r\nContent-Type: {kind}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
        )
        return head.encode() + content + b"\r\n"

    body = part("name=file; filename=audio.wav; filename*=utf-8''audio.wav", "audio/wav", wav)
    for name, value in fields:
        shown = name if name.isidentifier() else f'"{quote(name)}"'
        body += part(f"name={shown}", "text/plain; charset=utf-8", value.encode())
    kind = f'multipart/form-data; boundary="{boundary}"'
    return server.client.post(
        path, content=body + f"--{boundary}--\r\n".encode(), headers={"content-type": kind}
    )


def test_whispersubs_of_jellyfin(server, wav, said):
    """It asks for SRT, names the language, and sends the latter also with a translation."""
    fields = [("model", "whisper-1"), ("response_format", "srt")]
    answer = dotnet(server, "/v1/audio/transcriptions", wav, *fields, ("language", "en"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert " ".join(cue.text.replace("\n", " ") for cue in read_srt(answer.text)) == said
    translated = dotnet(server, "/v1/audio/translations", wav, *fields, ("language", "es"))
    assert read_srt(translated.text)
    fields = [("model", "whisper-1"), ("response_format", "verbose_json")]
    detected = dotnet(server, "/v1/audio/transcriptions", wav, *fields).json()
    assert detected["language"] == "english"
    assert {"start", "end", "text"} <= set(detected["segments"][0])
    # The button "Test" sends a tenth of a second of silence.
    fields = [("model", "whisper-1"), ("response_format", "srt")]
    tested = dotnet(server, "/v1/audio/transcriptions", wav_file(np.zeros(RATE // 10)), *fields)
    assert (tested.status_code, tested.text) == (200, "")


def test_subtitle_edit(server, wav, said):
    """It asks for segments and words in one document."""
    fields = [("model", "whisper-1"), ("language", "en"), ("response_format", "verbose_json")]
    granularities = [("timestamp_granularities[]", name) for name in ("segment", "word")]
    answer = dotnet(server, "/v1/audio/transcriptions", wav, *fields, *granularities).json()
    assert answer["text"] == said
    assert all(segment["end"] > segment["start"] for segment in answer["segments"])
    assert len(answer["words"]) == len(said.split())


def test_open_webui(server, wav, said):
    """It sends the model and perhaps a language, with a key also if there is none, and reads `text`."""
    for fields in ({"model": "whisper-1", "language": "en"}, {"model": "whisper-1"}):
        answer = httpx.post(
            f"{server.url}/v1/audio/transcriptions",
            headers={"Authorization": "Bearer unused"},
            files={"file": ("8f2c7a51-ad1b-4f0a.wav", wav)},
            data=fields,
            timeout=60,
            trust_env=False,
        )
        assert answer.json()["text"] == said


@pytest.fixture
def client(server):
    with openai.OpenAI(api_key="unused", base_url=f"{server.url}/v1", max_retries=0, timeout=60) as made:
        yield made


def test_langchain(client, speech, said):
    """Its parser sends MP3 under the name of the recording and of the part, and reads text or a string."""
    file = io.BytesIO(encode(speech, "mp3", "libmp3lame"))
    file.name = "/recordings/talk.m4a_part_0.mp3"
    answer = client.audio.transcriptions.create(model="whisper-1", file=file)
    assert answer.text.split() == said.split()
    file.seek(0)
    answer = client.audio.transcriptions.create(
        model="whisper-1", file=file, language="en", prompt="letters", response_format="srt", temperature=0
    )
    assert read_srt(answer)


def test_litellm(client, wav, said):
    """It reads the duration, for its accounts, so its default format is verbose_json."""
    answer = client.audio.transcriptions.create(
        model="gpt-4o-transcribe",
        file=("talk.wav", wav, "audio/wav"),
        response_format="verbose_json",
        timestamp_granularities=["word"],
    )
    assert answer.text == said
    assert answer.duration > 0
    assert answer.words
    assert "whisper-1" in {model.id for model in client.models.list()}


def test_home_assistant(server, client, speech, wav, said):
    """Its own integration sends WAV or Ogg without a name, others a form of all fields, empty ones too."""
    ogg = encode(speech, "ogg", "libopus", rate=48_000)
    for file in (("a.wav", wav), ("a.ogg", ogg)):
        answer = client.audio.transcriptions.create(
            model="gpt-4o-mini-transcribe", file=file, response_format="json", language="en", prompt="A home."
        )
        assert answer.text
    form = {
        "file": ("whisper_audio.wav", wav, "audio/wav"),
        "model": (None, "gpt-4o-mini-transcribe"),
        "language": (None, "en"),
        "prompt": (None, ""),
        "temperature": (None, "0"),
        "response_format": (None, "json"),
    }
    assert server.client.post("/v1/audio/transcriptions", files=form).json()["text"] == said


def test_n8n(server, wav, said):
    """It checks its credential by the list of models, and sends an empty name of an organization."""
    headers = {"Authorization": "Bearer unused", "OpenAI-Organization": ""}
    assert server.client.get("/v1/models", headers=headers).json()["object"] == "list"
    boundary = "--------------------------515890814546601021194782"
    texts = {"model": "whisper-1", "language": "en", "temperature": "0.2"}
    body = b"".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in texts.items()
    )
    body += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="voice.oga"\r\n'
        "Content-Type: audio/ogg\r\n\r\n"
    ).encode()
    body += wav + f"\r\n--{boundary}--\r\n".encode()
    kind = {"content-type": f"multipart/form-data; boundary={boundary}"}
    answer = server.client.post("/v1/audio/transcriptions", content=body, headers=headers | kind)
    assert answer.status_code == 200
    assert answer.json()["text"]


def test_speakr(server, dialogue):
    """It asks what is up and which models there are, and reads who says what."""
    assert server.client.get("/health").status_code == 200
    assert {"id": "demo"}.items() <= server.client.get("/v1/models").json()["data"][0].items()
    query = {"encode": True, "task": "transcribe", "output": "json", "language": "en"}
    speakers = {"diarize": True, "enable_diarization": True, "min_speakers": 1, "max_speakers": 5}
    answer = server.client.post(
        "/asr",
        params=query | speakers,
        files={"audio_file": ("talk.wav", wav_file(read_pcm(dialogue.path)[: 24 * RATE]), "audio/wav")},
    )
    document = json.loads(answer.text)
    assert document["language"] == "en"
    parts = [(part["start"], part["end"], part["speaker"]) for part in document["segments"]]
    labels, right = speakers_of(dialogue, parts)
    assert labels == {"SPEAKER_00": "Bob", "SPEAKER_01": "Cem", "SPEAKER_02": "Ann"}
    assert right > 0.9
    assert document["text"].split() == " ".join(part["text"] for part in document["segments"]).split()


def test_bazarr_tests_the_connection(server):
    """It shows the version that it finds, and takes everything else for a fault."""
    assert server.client.get("/status").json()["version"].startswith("whisperfleet ")
