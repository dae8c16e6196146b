"""One of fifty owners attacks the service in every way at once. The others do not notice."""

import json
import secrets
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import median

import httpx
import psutil
import pytest

from tests.e2e.burden import MIB, burden
from tests.e2e.running import SIMULATED
from tests.e2e.test_load_of_two_keys import took_s

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]

ATTACK_S = 120.0
TALKS = 9
MEMORY_MIB = 300  # of the server, at most
ATTACKER, *OTHERS = (secrets.token_hex(16) for _ in range(50))
FIFTY_OWNERS = SIMULATED | {
    "key": ATTACKER,
    "WHISPER_API_KEYS": ", ".join([ATTACKER, *OTHERS]),
    "WHISPER_CPU_WORKERS": 4,
    "WHISPER_WEBHOOK_SECRET": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
    "WHISPER_WEBHOOK_ALLOW_PRIVATE": "true",
}


def test_an_attack_of_one_owner_does_not_disturb_the_others(commands, talk):
    server = commands.ready(**FIFTY_OWNERS)
    job = server.finished(server.submit(talk.path)["id"])["id"]
    clients = cycle(
        httpx.Client(
            base_url=server.url, timeout=60, trust_env=False, headers={"Authorization": f"Bearer {key}"}
        )
        for key in OTHERS
    )
    undisturbed_s = [took_s(next(clients), talk.path) for _ in range(TALKS)]
    memory_mib = psutil.Process(server.pid).memory_info().rss / MIB
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts webhooks, and answers none
        receiver = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        attack = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.attack", server.url, ATTACKER, job, receiver, str(ATTACK_S)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            with burden(server, memory_mib=MEMORY_MIB - memory_mib, disk_mib=1000):
                time.sleep(15)  # everything is under way
                talks = []
                with ThreadPoolExecutor(len(OTHERS)) as others:
                    while attack.poll() is None:
                        talks.append(others.submit(took_s, next(clients), talk.path))
                        time.sleep(1)
                attacked_s = [talk_s.result() for talk_s in talks]
                sent, _ = attack.communicate()
                assert attack.returncode == 0
                ways = json.loads(sent)
                print(
                    f"{memory_mib:.0f} MiB before; a minute takes {median(undisturbed_s):.2f} s", flush=True
                )
                print(
                    f"beside the attack {median(attacked_s):.2f} s, {max(attacked_s):.2f} s at most; {ways}"
                )
        finally:
            attack.kill()
            attack.wait()
    failed = {way for way, seen in ways.items() if any(status.startswith("5") for status in seen)}
    assert failed <= {"large job"}  # 507: its share of the disk is full
    assert median(attacked_s) <= 3 * median(undisturbed_s)
