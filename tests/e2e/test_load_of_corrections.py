"""Corrections that are too large, or made to cost much."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.burden import burden
from tests.e2e.fixtures import Commands
from tests.e2e.running import ONE_SIMULATED, Server

pytestmark = pytest.mark.timeout(300)

REFUSED = {400, 413, 429}


@pytest.fixture(scope="module")
def server(module_commands: Commands) -> Server:
    return module_commands.ready(**ONE_SIMULATED)


def job_of(server: Server, recording: Path) -> str:
    """A job that has succeeded, of 3.5 s of sound."""
    return str(server.finished(server.submit(recording)["id"])["id"])


def put(server: Server, job: str, body: bytes) -> int:
    headers = {"If-Match": "*", "Content-Type": "application/json"}
    with httpx.Client(trust_env=False, verify=False, timeout=240) as client:
        url = f"{server.url}/v1/jobs/{job}/segments"
        return client.put(url, content=body, headers=headers).status_code


def correct(server: Server, job: str, *texts: str, speaker: str | None = None) -> int:
    """Give the transcript other texts: segments of a millisecond each."""
    entries = [
        {"start": at / 1000, "end": (at + 1) / 1000, "text": text, "speaker": speaker}
        for at, text in enumerate(texts)
    ]
    return put(server, job, json.dumps({"segments": entries}, ensure_ascii=False).encode())


def attacks(size: int) -> dict[str, bytes]:
    """Bodies of about `size` bytes that are no corrections, or far too long ones."""

    def segments(text: str, **fields: Any) -> bytes:
        entry = {"start": 0, "end": 1, "text": text, **fields}
        entries = [entry] * (size // len(json.dumps(entry)) + 1)
        return json.dumps({"segments": entries}, ensure_ascii=False).encode()

    return {
        "words": segments("a " * 4900),
        "names": segments("a " * 4900, speaker="S" * 100),
        "characters": segments("漢" * 9900),
        "one word": segments("。" * 9900),
        "marks": segments("กุ่" + "ุ่" * 4900),
        "segments": segments("a"),
        "numbers": b'{"segments":[' + b"1," * (size // 2) + b"1]}",
        "objects": b'{"segments":[' + b'{"a":1},' * (size // 8) + b"1]}",
        "fields": b"{" + b",".join(b'"%d":1' % number for number in range(size // 10)) + b"}",
        "depth": b"[" * size,
        "digits": b'{"revision":' + b"9" * size + b"}",
    }


def test_corrections_that_are_too_much_are_refused(server, shorts):
    job = job_of(server, shorts[0])
    for name, body in attacks(300_000).items():
        assert put(server, job, body) in REFUSED, name
    fields = b"{" + b",".join(b'"%d":1' % number for number in range(90_000)) + b"}"
    headers = {"If-Match": "*", "Content-Type": "application/json"}
    answer = server.client.post(f"/v1/jobs/{job}/speakers", content=fields, headers=headers)
    assert answer.status_code == 400, answer.text
    assert correct(server, job, "The captain writes.") == 200
    assert server.result(job).count("The captain writes.") == 1


@pytest.mark.soak
def test_many_large_corrections_at_once(server, shorts):
    """All that 3.5 s of sound may have, and far more than that, while others are answered at once."""
    job = job_of(server, shorts[0])
    largest = ["a " * 4900] * 4
    bodies = list(attacks(5_000_000).items())
    with burden(server, memory_mib=300, disk_mib=150), ThreadPoolExecutor(10) as clients:
        began = time.monotonic()
        answers = [*clients.map(lambda attack: put(server, job, attack[1]), bodies * 3)]
        assert set(answers) <= REFUSED, answers
        print(f"{len(answers)} attacks of 5 MB were refused in {time.monotonic() - began:.0f} s")
        began = time.monotonic()
        answers = [*clients.map(lambda at: correct(server, job, *largest, speaker=f"S{at}"), range(10))]
        assert set(answers) <= {200, 429}, answers
        print(f"{len(answers)} of the largest corrections took {time.monotonic() - began:.0f} s")
        began = time.monotonic()
        forms = ("srt", "vtt", "ass", "verbose_json") * 2
        assert all(clients.map(lambda form: server.result(job, form), forms))
        print(f"{len(forms)} results took {time.monotonic() - began:.0f} s")
    assert correct(server, job, "The captain writes.") == 200
