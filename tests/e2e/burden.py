"""What a load costs the other clients of a server: how long they wait, its memory, and its disk."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

import httpx
import numpy as np
import psutil

from tests.e2e.running import Server

MIB = 1 << 20
HEALTH_S = 0.1  # 99 of 100 answers of `/health` come within this time
PAUSE_S = 0.02


@dataclass
class Burden:
    """What was seen during a load. `health_s`: of answers of `/health`, each on a connection of its own."""

    health_s: list[float] = field(default_factory=list)
    memory_mib: float = 0.0  # by which the server's process grew, at its peak
    disk_mib: float = 0.0  # by which the data folder and the log grew, at their peak

    @property
    def p99_s(self) -> float:
        return float(np.percentile(self.health_s, 99))

    def __str__(self) -> str:
        return (
            f"/health p99 {1000 * self.p99_s:.0f} ms of {len(self.health_s)}, "
            f"memory +{self.memory_mib:.0f} MiB, disk +{self.disk_mib:.0f} MiB"
        )


@contextmanager
def burden(server: Server, *, memory_mib: float, disk_mib: float) -> Iterator[Burden]:
    """Watch a server during a load. Fails if others wait too long, or if it takes more than these."""
    seen, done = Burden(), Event()
    process = psutil.Process(server.pid)
    memory, disk = process.memory_info().rss, _bytes_on_disk(server)

    def watch() -> None:
        while not done.wait(PAUSE_S):
            began = time.perf_counter()
            httpx.get(f"{server.url}/health", trust_env=False, verify=False, timeout=30).raise_for_status()
            seen.health_s.append(time.perf_counter() - began)
            seen.memory_mib = max(seen.memory_mib, (process.memory_info().rss - memory) / MIB)
            seen.disk_mib = max(seen.disk_mib, (_bytes_on_disk(server) - disk) / MIB)

    with ThreadPoolExecutor(1) as background:
        watching = background.submit(watch)
        try:
            yield seen
        finally:
            done.set()
    watching.result()
    print(seen)
    assert seen.p99_s <= HEALTH_S, seen
    assert seen.memory_mib <= memory_mib, seen
    assert seen.disk_mib <= disk_mib, seen


def _bytes_on_disk(server: Server) -> int:
    """The blocks of the data folder and of the log, in bytes."""
    total = 0
    for path in [*server.data.rglob("*"), server.folder / "stderr"]:
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            continue  # it was removed meanwhile
    return total
