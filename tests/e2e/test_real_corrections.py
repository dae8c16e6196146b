"""Corrections of transcripts: what readers of every format see, webhooks, and a server that is killed."""

import csv
import io
import json
import re
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import ass
import httpx
import pylrc
import pytest
import srt
import ttconv.imsc.reader
import ttconv.model
import ttconv.scc.reader
import ttconv.stl.reader
import webvtt
from openai.types.audio import TranscriptionVerbose
from tokenizers import Tokenizer

from app.engines.model_files import DEMO_PATH
from app.transcript.formats import FORMATS
from tests.e2e.reading import read_srt, read_vtt
from tests.e2e.running import SIMULATED, Server, wait_for
from tests.e2e.test_jobs import SECRET, Receiver
from tests.transcript.document_readers import read_docx, read_md

pytestmark = pytest.mark.timeout(120)

SAID = "The captain reads a long letter."
MEANT = "The captain writes a very long letter."
SETTINGS = {"WHISPER_WEBHOOK_SECRET": SECRET, "WHISPER_WEBHOOK_ALLOW_PRIVATE": 1}


def get(server: Server, job: str) -> httpx.Response:
    return server.client.get(f"/v1/jobs/{job}/segments").raise_for_status()


def correct(server: Server, job: str, text: str) -> httpx.Response:
    """Give the only segment another text."""
    response = get(server, job)
    document = response.json()
    [segment] = document["segments"]
    segment["text"] = text
    headers = {"If-Match": response.headers["etag"]}
    return server.client.put(f"/v1/jobs/{job}/segments", json=document, headers=headers)


def result(server: Server, job: str, form: str, **params: Any) -> bytes:
    answer = server.client.get(f"/v1/jobs/{job}/result", params={"format": form, **params})
    return answer.raise_for_status().content


def document_text(document: Any) -> str:
    def text(element: Any) -> str:
        if isinstance(element, ttconv.model.Br):
            return " "
        if isinstance(element, ttconv.model.Text):
            return str(element.get_text())
        return "".join(map(text, element))

    return " ".join(text(cue) for division in document.get_body() for cue in division)


def joined(lines: Any) -> str:
    return " ".join(" ".join(lines).split())


READERS: dict[str, Callable[[bytes], str]] = {
    "srt": lambda file: joined(cue.content for cue in srt.parse(file.decode())),
    "vtt": lambda file: joined(caption.text for caption in webvtt.from_string(file.decode())),
    "ass": lambda file: joined(
        re.sub(r"\{[^}]*\}", "", event.text).replace(r"\N", " ")
        for event in ass.Document.parse_string(file.decode()).events
    ),
    "ttml": lambda file: document_text(ttconv.imsc.reader.to_model(ET.ElementTree(ET.fromstring(file)))),
    "scc": lambda file: document_text(ttconv.scc.reader.to_model(file.decode("ascii"))),
    "stl": lambda file: document_text(ttconv.stl.reader.to_model(io.BytesIO(file))),
    "txt": lambda file: joined([file.decode()]),
    "tsv": lambda file: joined(
        row["text"] for row in csv.DictReader(io.StringIO(file.decode(), newline=""), delimiter="\t")
    ),
    "docx": lambda file: joined(read_docx(file)[1:]),  # without the title
    "md": lambda file: joined(read_md(file)[1:]),
    "lrc": lambda file: joined(line.text for line in pylrc.parse(file.decode())),
    "json": lambda file: str(json.loads(file)["text"]),
    "verbose_json": lambda file: TranscriptionVerbose.model_validate_json(file).text,
}


@pytest.fixture
def job(server, shorts) -> str:
    return str(server.finished(server.submit(shorts[0], word_timestamps=True)["id"])["id"])


def test_all_readers_see_the_correction(server, job):
    forms = [*FORMATS, "verbose_json"]
    before = {form: result(server, job, form) for form in forms}
    assert {form: READERS[form](file) for form, file in before.items()} == dict.fromkeys(forms, SAID)
    answer = correct(server, job, MEANT)
    assert answer.status_code == 200, answer.text
    after = {form: result(server, job, form) for form in forms}
    assert {form: READERS[form](file) for form, file in after.items()} == dict.fromkeys(forms, MEANT)
    for read, form in ((read_srt, "srt"), (read_vtt, "vtt")):
        assert [cue.text for cue in read(after[form].decode())] == [MEANT]
    for revision in ("original", 0):
        assert {form: result(server, job, form, revision=revision) for form in forms} == before
    restored = server.client.put(
        f"/v1/jobs/{job}/segments", json={"revision": "original"}, headers={"If-Match": "*"}
    )
    assert restored.json()["revision"] == 2
    assert {form: result(server, job, form) for form in forms} == before
    assert {form: result(server, job, form, revision=1) for form in forms} == after


def test_verbose_json_of_a_correction(server, job):
    before = TranscriptionVerbose.model_validate_json(result(server, job, "verbose_json"))
    times = {word.word: (word.start, word.end) for word in before.words}
    correct(server, job, MEANT).raise_for_status()
    after = TranscriptionVerbose.model_validate_json(result(server, job, "verbose_json"))
    assert [word.word for word in after.words] == MEANT.split()
    kept = {word.word: (word.start, word.end) for word in after.words if word.word in times}
    assert kept == {word: time for word, time in times.items() if word != "reads"}
    [old], [new] = before.segments, after.segments
    assert (new.id, new.start, new.end, new.avg_logprob) == (0, old.start, old.end, old.avg_logprob)
    # Tokens of the model: timestamps around those of the text, as it decodes them.
    tokenizer = Tokenizer.from_file(str(DEMO_PATH / "tokenizer.json"))
    zero = tokenizer.token_to_id("<|notimestamps|>") + 1
    for segment in (old, new):
        first, *text, last = segment.tokens
        assert zero <= first < last <= zero + 1500
        assert tokenizer.decode(text) == segment.text
    # The text of the model gets the tokens that the model gave it.
    correct(server, job, "The captain reads a long letter!").raise_for_status()
    [changed] = TranscriptionVerbose.model_validate_json(result(server, job, "verbose_json")).segments
    assert changed.tokens[1:-2] == old.tokens[1:-2]


@pytest.mark.soak
def test_a_webhook_announces_a_correction(commands, shorts):
    receiver = Receiver(refused=0)
    try:
        server = commands.ready(**SETTINGS)
        job = server.finished(server.submit(shorts[0], webhook_url=receiver.url)["id"])["id"]
        wait_for(lambda: receiver.messages)
        assert correct(server, job, SAID).status_code == 200  # nothing differs
        assert correct(server, job, MEANT).status_code == 200
        wait_for(lambda: len(receiver.messages) == 2)
        [_, message] = receiver.messages
        state = server.job(job)
        assert (message["type"], message["data"]) == ("job.corrected", state)
        assert state["revision"] == 1
        [newest, _] = server.client.get(f"/v1/jobs/{job}/revisions").json()["data"]
        assert newest == {"revision": 1, "created_at": message["timestamp"], "changed": 1, "by_link": False}
    finally:
        receiver.close()


@pytest.mark.soak
def test_a_server_killed_in_the_middle_has_the_old_or_the_new_revision(commands, shorts):
    """At whatever moment: before the answer, all or nothing is stored; after it, all."""
    server = commands.ready()
    job = server.finished(server.submit(shorts[0])["id"])["id"]
    began = time.monotonic()
    assert correct(server, job, SAID + " 0").status_code == 200
    lasts_s = time.monotonic() - began
    texts = {0: SAID, 1: SAID + " 0"}
    for moment in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        newest = max(texts)
        text = f"{SAID} {moment}"
        answered = threading.Event()

        def put(server: Server = server, text: str = text, answered: threading.Event = answered) -> None:
            try:
                if correct(server, job, text).status_code == 200:
                    answered.set()
            except httpx.TransportError:
                pass

        writer = threading.Thread(target=put)
        writer.start()
        time.sleep(moment * lasts_s)
        must_be_there = answered.is_set()
        server.die()
        writer.join(30)
        server = commands.restart(server, **SIMULATED)  # which transcribes nothing
        document = get(server, job).json()
        assert document["revision"] in ({newest + 1} if must_be_there else {newest, newest + 1})
        if document["revision"] > newest:
            texts[newest + 1] = text
        assert [segment["text"] for segment in document["segments"]] == [texts[max(texts)]]
        assert server.job(job)["revision"] == max(texts)
        for revision, expected in texts.items():
            assert READERS["srt"](result(server, job, "srt", revision=revision)) == expected
    assert correct(server, job, MEANT).json()["revision"] == max(texts) + 1
