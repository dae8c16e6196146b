"""Who speaks, in answers to requests that are not stored, and how requests ask for it."""

import json
from dataclasses import replace

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.audio import TranscriptionDiarized, TranscriptionTextSegmentEvent

from app.api.audio.speaker_labels import letters, speaker_00, with_labels
from app.common.errors import SpeakerModelUnavailable
from app.common.options import Options
from tests.api.conftest import FORM, form
from tests.api.fake_service import DIALOGUE, TRANSCRIPT, catalogue, segment, spoken
from tests.cases import read_cases

REQUESTS = read_cases("requests")

MODEL = "gpt-4o-transcribe-diarize"
FOX, DOG, AMEN = "The quick brown fox.", "Über the lazy dog.", "Amen."


@pytest.fixture
def dialogue(site):
    """A site whose recordings have three speakers, with OpenAI's name for a model that knows them."""
    site.service.transcript = DIALOGUE
    site.service.fleet.catalogue = catalogue(aliases={MODEL: ""})
    return site


def events(response):
    assert response.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


def test_diarized_json_is_that_of_openai(dialogue):
    strategy = json.dumps({"type": "server_vad", "threshold": 0.4}, indent=2)
    response = dialogue.transcribe(response_format="diarized_json", model=MODEL, chunking_strategy=strategy)
    body = response.json()
    TranscriptionDiarized.model_validate(body, strict=True)
    assert body["segments"][0] == {
        "type": "transcript.text.segment", "id": "seg_001", "start": 0.5, "end": 2.0, "text": FOX,
        "speaker": "A",
    }  # fmt: skip
    assert [(part["speaker"], part["text"]) for part in body["segments"]] == [
        ("A", FOX), ("Bob", DOG), ("B", AMEN),
    ]  # fmt: skip
    assert {name: value for name, value in body.items() if name != "segments"} == {
        "task": "transcribe", "duration": 4.2, "text": f"{FOX} {DOG} {AMEN}",
        "usage": {"type": "duration", "seconds": 5},
    }  # fmt: skip
    assert dialogue.service.calls[0].options == Options(diarize=True, word_timestamps=True)
    assert dialogue.service.calls[0].model == "tiny"


def test_the_client_of_openai_reads_it(dialogue):
    with openai.OpenAI(api_key="unused", base_url=f"{dialogue.url}/v1", max_retries=0) as client:
        request = {"file": ("talk.wav", b"RIFF"), "model": MODEL}
        for strategy in ("auto", {"type": "server_vad", "threshold": 0.4}):
            answer = client.audio.transcriptions.create(
                **request, response_format="diarized_json", chunking_strategy=strategy
            )
            assert isinstance(answer, TranscriptionDiarized)
            assert [part.speaker for part in answer.segments] == ["A", "Bob", "B"]
        stream = client.audio.transcriptions.create(**request, response_format="diarized_json", stream=True)
        *early, done = stream
        assert "".join(event.delta for event in early if event.type == "transcript.text.delta") == done.text
        segments = [event for event in early if isinstance(event, TranscriptionTextSegmentEvent)]
        assert [(part.speaker, part.text) for part in segments] == [("A", FOX), ("Bob", DOG), ("B", AMEN)]
        assert [part["speaker"] for part in done.segments] == ["A", "Bob", "B"]
        assert done.usage.input_tokens == 50


def test_the_segments_of_a_stream_come_once_all_speakers_are_known(dialogue):
    *early, done = events(dialogue.transcribe(stream="true", response_format="diarized_json"))
    deltas = [event for event in early if event["type"] == "transcript.text.delta"]
    whole = dialogue.transcribe(response_format="diarized_json").json()
    assert early == deltas + whole["segments"]
    assert not any("speaker" in event or "segments" in event for event in deltas)
    usage = {"type": "tokens", "input_tokens": 50, "output_tokens": 9, "total_tokens": 59, "seconds": 5}
    assert done == {
        "type": "transcript.text.done", "text": whole["text"], "segments": whole["segments"], "usage": usage
    }  # fmt: skip
    assert "segments" not in events(dialogue.transcribe(stream="true", diarize="true"))[-1]


def test_a_speaker_who_is_not_known_has_a_label_too(site):
    body = site.transcribe(response_format="diarized_json").json()
    assert {part["speaker"] for part in body["segments"]} == {"unknown"}


def test_channels_are_speakers_without_diarize(dialogue):
    body = dialogue.transcribe(response_format="diarized_json", channels="separate").json()
    assert [part["speaker"] for part in body["segments"]] == ["A", "Bob", "B"]
    assert not dialogue.service.calls[0].options.diarize


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_model_of_openai_says_who_speaks_only_if_it_is_asked(dialogue, form):
    response = dialogue.transcribe(response_format=form, model=MODEL)
    assert "Bob" not in response.text
    assert dialogue.service.calls[0].options == Options()


def test_verbose_json_has_speakers_of_segments_and_words(site):
    parts = spoken("S1", (2, "S2"), id="0-0", of=TRANSCRIPT.segments[0]), TRANSCRIPT.segments[1]
    site.service.transcript = replace(TRANSCRIPT, segments=parts)
    fields = {"diarize": "true", "timestamp_granularities[]": ["segment", "word"]}
    body = site.transcribe(response_format="verbose_json", **fields).json()
    assert [part.get("speaker", "-") for part in body["segments"]] == ["S1", "-"]
    assert [word.get("speaker", "-") for word in body["words"]] == ["S1", "S1", "S2", "S2", *"----"]


@pytest.mark.parametrize(
    ("number", "label"), [(0, "A"), (25, "Z"), (26, "AA"), (27, "AB"), (701, "ZZ"), (702, "AAA")]
)
def test_letters(number, label):
    assert letters(number) == label


def test_labels_are_those_of_one_speaker():
    """Numbers count from the lowest, a name that looks like a label stays, and nobody else gets it."""
    names = ["S12", "A", None, "S3", "S03", "S9"]
    segments = tuple(spoken(name, id=f"0-{n}", of=segment("Yes.", n, n + 1)) for n, name in enumerate(names))
    turning = spoken("S3", (0, "S9"), id="0-9", of=segment("No.", 9, 10))
    labelled = with_labels(replace(TRANSCRIPT, segments=(*segments, turning)), letters).segments
    assert [part.speaker for part in labelled] == ["D", "A", None, "B", "S03", "C", "B"]
    assert labelled[-1].turns == ((0, "C"),)
    numbered = with_labels(replace(TRANSCRIPT, segments=segments), speaker_00).segments
    assert [part.speaker for part in numbered] == [
        "SPEAKER_02", "A", None, "SPEAKER_00", "S03", "SPEAKER_01",
    ]  # fmt: skip


NAMES = st.none() | st.sampled_from(["A", "B", "SPEAKER_00", "Bob"]) | st.integers(0, 30).map("S{}".format)


@given(st.lists(NAMES, min_size=1, max_size=12), st.sampled_from([letters, speaker_00]))
def test_two_speakers_never_get_one_label(names, label):
    segments = tuple(spoken(name, id=f"0-{n}", of=segment("Yes.", n, n + 1)) for n, name in enumerate(names))
    labelled = with_labels(replace(TRANSCRIPT, segments=segments), label).segments
    pairs = {(name, part.speaker) for name, part in zip(names, labelled, strict=True)}
    assert len(pairs) == len(set(names)) == len({part.speaker for part in labelled})


# Requests


@pytest.mark.parametrize(("fields", "param", "hint"), REQUESTS["speakers"])
def test_what_does_not_fit_is_refused(site, fields, param, hint):
    response = site.transcribe(**fields)
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param)
    assert hint in error["message"]
    assert not site.service.calls


@pytest.mark.parametrize(
    ("path", "field", "place"),
    [
        ("/v1/audio/translations", "response_format", "verbose_json"),
        ("/asr", "output", "/v1/audio/transcriptions"),
    ],
)
def test_doors_without_diarized_json_say_where_it_is(site, path, field, place):
    files = {"file": ("a.wav", b"RIFF"), "audio_file": ("a.wav", b"RIFF")}
    fields = {"model": "whisper-1", field: "diarized_json"}
    error = site.client.post(path, params=fields, data=fields, files=files).json()["error"]
    assert error["param"] == field
    assert place in error["message"]


@pytest.mark.parametrize(
    ("path", "field", "fields"),
    [
        ("/asr?diarize=true", "audio_file", {}),
        ("/v1/audio/transcriptions", "file", {"model": "whisper-1", "diarize": "true"}),
        ("/v1/audio/transcriptions", "file", {"model": "whisper-1", "response_format": "diarized_json"}),
        ("/v1/jobs?diarize=true", "file", {}),
        ("/v1/jobs", "file", {"known_speaker_names[]": "Ann"}),
    ],
)
def test_without_a_speaker_model_the_refusal_comes_before_the_recording(site, path, field, fields):
    remedy = "There is no such model. Name another one."
    site.service.media.no_voices = SpeakerModelUnavailable(remedy)
    body = form(field, **fields)
    with site.begin(f"POST {path}", body, length=1_000_000, **FORM) as connection:
        answer = connection.recv(4096)
        while remedy.encode() not in answer:
            answer += connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 400")
    assert not site.service.calls


def test_without_a_speaker_model_other_requests_pass(site):
    site.service.media.no_voices = SpeakerModelUnavailable("There is no such model.")
    assert site.transcribe(num_speakers="2").status_code == 200
    assert site.transcribe(response_format="diarized_json", channels="separate").status_code == 200
    late = [("model", (None, "whisper-1")), ("file", ("a.wav", b"RIFF")), ("diarize", (None, "1"))]
    assert site.client.post("/v1/audio/transcriptions", files=late).status_code == 400
    body = {"url": "https://example.com/a.mp3", "diarize": True}
    assert site.client.post("/v1/jobs", json=body).status_code == 400
    assert not site.uploads


# Known speakers


def known(*people, brackets="[]"):
    """Fields of a form, as OpenAI's clients send them."""
    names = [(f"known_speaker_names{brackets}", (None, name)) for name, _ in people]
    return [*names, *((f"known_speaker_references{brackets}", (None, url)) for _, url in people)]


def send(site, *fields, path="/v1/audio/transcriptions"):
    form = [("model", (None, "whisper-1")), *fields, ("file", ("talk.wav", b"RIFF\0audio"))]
    return site.client.post(path, files=form)


def url_of(size):
    return "data:audio/wav;base64," + "A" * size


@pytest.mark.parametrize("path", ["/v1/audio/transcriptions", "/v1/jobs"])
@pytest.mark.parametrize("brackets", ["[]", ""])
def test_known_speakers_reach_the_service(site, path, brackets):
    people = (" Ann ", url_of(2_600_000)), ("Bob", url_of(4))
    response = send(site, *known(*people, brackets=brackets), path=path)
    assert response.status_code in (200, 202), response.text
    if path == "/v1/jobs":
        job = site.finished(response.json()["id"])
        assert "data:audio" not in json.dumps(job)
    call = site.service.calls[0]
    assert [(speaker.name, speaker.embedding.tolist()) for speaker in call.known] == [
        ("Ann", [2_600_022.0]), ("Bob", [26.0]),
    ]  # fmt: skip
    assert call.options.diarize


def test_known_speakers_of_a_json_body(site):
    upload = site.client.post(
        "/v1/uploads",
        content=b"RIFF\0audio",
        headers={
            "Tus-Resumable": "1.0.0",
            "Upload-Length": "10",
            "Content-Type": "application/offset+octet-stream",
        },
    )
    body = {"upload": upload.headers["location"].rpartition("/")[2], "diarize": True}
    people = {"known_speaker_names": ["Ann"], "known_speaker_references": [url_of(4)]}
    wrong = site.client.post("/v1/jobs", json=body | {"known_speaker_names": ["Ann"]})
    assert wrong.json()["error"]["param"] == "known_speaker_references[]"
    blank = site.client.post("/v1/jobs", json=body | {"known_speaker_names": [" "]})
    assert blank.json()["error"]["param"] == "known_speaker_names"
    job = site.client.post("/v1/jobs", json=body | people).json()
    site.finished(job["id"])
    assert [speaker.name for speaker in site.service.calls[0].known] == ["Ann"]


def test_other_known_speakers_are_another_job(site):
    def submit(*people):
        form = [*known(*people), ("file", ("talk.wav", b"RIFF"))]
        return site.client.post("/v1/jobs", files=form, headers={"Idempotency-Key": "one"})

    first = submit(("Ann", url_of(4)))
    assert submit(("Ann", url_of(4))).json()["id"] == first.json()["id"]
    assert submit(("Ann", url_of(8))).status_code == submit(("Eve", url_of(4))).status_code == 409


ANN, BOB = ("Ann", url_of(4)), ("Bob", url_of(4))


@pytest.mark.parametrize(
    ("fields", "param", "hint"),
    [
        (known(ANN, BOB)[:3], "known_speaker_references[]", "names: 2"),
        (known(ANN)[1:], "known_speaker_references[]", "names: 0"),
        (known(ANN, ANN), "known_speaker_names[]", "twice"),
        (known(("Ann\n", url_of(4)), ("\t\x07", url_of(4))), "known_speaker_names[]", "printable"),
        (known(("x" * 101, url_of(4))), "known_speaker_names[]", "100"),
        (known(*((str(n), url_of(4)) for n in range(11))), "known_speaker_names[]", "at most 10"),
        (
            known(("Ann", "https://example.com/ann.wav")),
            "known_speaker_references[]",
            "such as data:audio/wav",
        ),
        (known(("Ann", url_of(4 << 20))), "known_speaker_references[]", "at most 4194304"),
        (known(*((str(n), url_of(3 << 20)) for n in range(6))), "known_speaker_references[]", "16777216"),
        ([*known(ANN), ("diarize", (None, "0"))], "known_speaker_names[]", "rules out"),
        ([*known(ANN), ("channels", (None, "separate"))], "known_speaker_names[]", "rules out"),
        ([("prompt", (None, "x" * (1 << 20)))], "prompt", "text fields exceed"),
    ],
)
def test_known_speakers_that_do_not_fit_are_refused(site, fields, param, hint):
    for path in ("/v1/audio/transcriptions", "/v1/jobs"):
        response = send(site, *fields, path=path)
        error = response.json()["error"]
        assert (response.status_code, error["param"]) == (400, param), error
        assert hint in error["message"]
    assert not site.service.calls
    assert not site.uploads


def test_other_paths_have_no_large_fields(site):
    fields = [("audio_file", ("a.wav", b"RIFF")), *known(("Ann", url_of(1 << 20)))]
    error = site.client.post("/asr", files=fields).json()["error"]
    assert "text fields exceed 1048576 bytes" in error["message"]
