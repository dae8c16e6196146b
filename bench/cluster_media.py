"""Media workers on a Ray cluster: what an hour of audio costs there, and what it costs here.

    python -m bench.cluster_media [--minutes 10] [--rounds 3] [--quick] [--record] [--json FILE]

A recording is decoded and searched for speech by one media worker: by one of this machine, and by one on the
node of the cluster of `bench.cluster`, which gets the recording and returns the samples. Results are equal.
For each: audio seconds a second, the bytes that are sent and returned, and CPU time by process.
`--record`: see bench/scale.py.
"""

import argparse
import asyncio
import json
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from app.engines.cluster.bridge import Bridge
from app.engines.cluster.messages import ActorSpec
from app.engines.cluster.remote_process import RemoteProcess
from app.media.disk import DiskSpace
from app.media.pool import MediaPool
from app.media.speech import VadParameters
from app.media.uploads import Upload
from app.media.worker_slot import INITIALIZER, MediaWorkerSlot
from app.scheduling.process import WorkerProcess
from app.transcription.clip_search import ClipSearch
from bench.cluster import Cpu, Ray, connected, node_id, ray_cluster
from bench.command import silence_logs
from bench.measuring import Figures, Table, machine, median, write_json
from bench.recordings import TALK, write
from bench.scale import record

R = TypeVar("R")

HOUR_S = 3600
WAYS = ("here", "on the cluster")


class CountedProcess(RemoteProcess):
    """Counts the bytes of calls and answers."""

    sent = received = 0

    async def call(self, function: Callable[..., R], *args: object, deadline_s: float | None = None) -> R:
        result = await super().call(function, *args, deadline_s=deadline_s)
        self.sent += len(pickle.dumps(args, protocol=5))
        self.received += len(pickle.dumps(result, protocol=5))
        return result


async def run(bridge: Bridge, ray: Ray, recording: Path, way: str) -> tuple[Figures, bytes]:
    """The costs of one run, and what was found."""
    with tempfile.TemporaryDirectory() as folder:
        pool = MediaPool(0 if way != WAYS[0] else 1, DiskSpace(Path(folder)))
        process: CountedProcess | None = None
        if way != WAYS[0]:
            process = CountedProcess(bridge, ActorSpec(node_id(bridge), cpus=1), *INITIALIZER)
            pool.add_remote(process)
        pool.start()
        try:
            await find_speech(pool, recording, Path(folder) / "first")  # loads everything
            [slot] = pool._dispatcher.slots
            assert isinstance(slot, MediaWorkerSlot)
            worker: WorkerProcess = slot._process
            if process is not None:
                process.sent = process.received = 0
            cpu = Cpu(bridge, ray, [worker])
            began = time.perf_counter()
            seconds, found = await find_speech(pool, recording, Path(folder) / "pcm")
            took_s = time.perf_counter() - began
            hours = seconds / HOUR_S
            figures: dict[str, Any] = {"times_real_time": seconds / took_s, "cpu_s": cpu.used_s(hours)}
            if process is not None:
                figures["sent_mb"] = process.sent / 1e6 / hours
                figures["received_mb"] = process.received / 1e6 / hours
            return figures, found
        finally:
            await pool.stop()
