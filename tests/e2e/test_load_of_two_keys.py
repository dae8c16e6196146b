"""One key floods the service by every way that a client has. The other's short clip does not wait for it."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import httpx
import pytest

from tests.e2e.burden import burden
from tests.e2e.flood import SHORT
from tests.e2e.running import KEY, OTHER_KEY, SIMULATED

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

FLOOD_S = 40.0
CLIPS = 9
TWO_KEYS = SIMULATED | {
    "key": KEY,
    "WHISPER_API_KEYS": f"{KEY}, {OTHER_KEY}",
    "WHISPER_CPU_WORKERS": 4,
    "WHISPER_SIMULATED": "fixed_ms=300,clip_ms=100,token_ms=0,batch=4",
    "WHISPER_WEBHOOK_SECRET": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
    "WHISPER_WEBHOOK_ALLOW_PRIVATE": "true",
}


def took_s(client: httpx.Client, path: Path = SHORT) -> float:
    """How long a recording takes, upload to SRT (s)."""
    began = time.perf_counter()
    answer = client.post(
        "/v1/audio/transcriptions",
        data={"model": "whisper-1", "response_format": "srt"},
        files={"file": (path.name, path.read_bytes())},
    )
    assert answer.status_code == 200, answer.text
    assert "-->" in answer.text
    return time.perf_counter() - began


def test_a_flood_of_one_key_does_not_delay_the_other(commands, ten_minutes):
    server = commands.ready(**TWO_KEYS)
    job = server.finished(server.submit(ten_minutes)["id"])["id"]
    undisturbed_s = median(took_s(server.client) for _ in range(CLIPS))
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts webhooks, and answers none
        receiver = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        arguments = [server.url, OTHER_KEY, job, receiver, str(FLOOD_S)]
        flood = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.flood", *arguments],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            with burden(server, memory_mib=400, disk_mib=400):
                time.sleep(10)  # the flood has everything that it can get
                flooded_s = [took_s(server.client) for _ in range(CLIPS)]
                assert flood.poll() is None
                sent, _ = flood.communicate(timeout=120)
        finally:
            flood.kill()
            flood.wait()
    assert flood.returncode == 0
    ways = json.loads(sent)
    print(f"undisturbed {undisturbed_s:.2f} s, beside the flood {median(flooded_s):.2f} s; {ways}")
    assert not [way for way, statuses in ways.items() if any(status.startswith("5") for status in statuses)]
    assert median(flooded_s) <= 2 * undisturbed_s
    assert took_s(server.client) <= 2 * undisturbed_s
