"""Workers on a Ray cluster: how many one server keeps busy, and what their audio costs.

    python -m bench.cluster [slots] [audio] [--rounds 3] [--quick] [--record] [--json FILE]

The cluster is on this machine: a head without resources, which is the front end's node, and one node. All of
it speaks over the loopback, with a token.

*slots*: 64 slots, whose simulated batches take 5 s, against one slot. The dispatcher, the slots, the bridge,
Ray and the actors, one for each slot, are real; the windows have no audio. *audio*: batches of 8 windows of
30 s are sent to processes on the node, and to the same processes without Ray. `--record`: see bench/scale.py.
"""

import asyncio
import json
import multiprocessing
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from app.engines.catalogue import ModelCatalogue
from app.engines.simulated import SIMULATED, SimulatedWorker, Simulation
from app.engines.slot import SlotLimits, WhisperSlot
from app.engines.window_request import WindowRequest
from app.pool.batching import BatchCost
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import ActorSpec
from app.pool.cluster.remote_process import RemoteProcess
from app.pool.dispatcher import Dispatcher
from app.pool.process import ChildProcess
from app.pool.tasks import WorkerProcess
from bench.command import chosen, parser_of, silence_logs
from bench.measuring import Figures, Table, machine, median, write_json
from bench.scale import record
from workers import runtime
from workers.messages import (
    BYTES_PER_SAMPLE,
    MAX_CLIP_SAMPLES,
    DecodingOptions,
    LoadOptions,
    Window,
    WindowResult,
)

BATCH = 8  # windows
BATCH_S = 5.2
HOST_MS = 5  # for the features of a window: they are computed while the device decodes
SLOTS = 64
BATCHES = 6  # of each slot; the last three are planned
PROCESSES = 4  # that get audio
SENT = 12  # batches for each of them
STORE_BYTES = 512 << 20  # of each node, for objects
DECODING = DecodingOptions(SIMULATED, language="en")
WINDOW_BYTES = BYTES_PER_SAMPLE * MAX_CLIP_SAMPLES
START_S = 240


@dataclass(frozen=True)
class Ray:
    """A cluster on this machine, and the pids of its processes."""

    address: str
    head: tuple[int, ...]  # raylet and the head's own processes, on the front end's machine
    node: tuple[int, ...]


def cluster_process(channel: Connection, folder: str) -> None:
    """Run a cluster until the other end of the channel closes. Its processes get the environment's token."""
    from ray.cluster_utils import Cluster

    common: dict[str, Any] = {
        "node_ip_address": "127.0.0.1",
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
    }
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "node_name": "head", "temp_dir": folder, **common},
    )
    try:
        node = cluster.add_node(num_cpus=SLOTS, node_name="node", **common)
        pids = [
            tuple(info.process.pid for infos in each.all_processes.values() for info in infos)
            for each in (cluster.head_node, node)
        ]
        channel.send(Ray(cluster.address, *pids))
        channel.poll(None)
    finally:
        cluster.shutdown()


@contextmanager
def ray_cluster() -> Iterator[Ray]:
    """A cluster that asks for a token. The environment has it until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    before = dict(os.environ)
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(16),
        "RAY_USAGE_STATS_ENABLED": "0",
        "OTEL_SDK_DISABLED": "true",
        "RAY_TMPDIR": str(folder),
    }
    (folder / "ray").mkdir()  # for Ray's note of its last cluster
    spawn = multiprocessing.get_context("spawn")
    ours, its = spawn.Pipe()
    # In a process of its own: the server never imports Ray.
    process = spawn.Process(target=cluster_process, args=(its, str(folder / "ray")))
    process.start()
    its.close()
    try:
        if not ours.poll(START_S):
            raise RuntimeError("the cluster did not start")
        yield ours.recv()
    finally:
        ours.close()
        process.join()
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def connected(ray: Ray) -> AsyncIterator[Bridge]:
    """A bridge to the cluster."""
    bridge = Bridge(ray.address)
    known = asyncio.Event()
    bridge.on_nodes = lambda: known.set() if len(bridge.nodes) == 2 else None
    await bridge.start()
    try:
        async with asyncio.timeout(START_S):
            await known.wait()
        yield bridge
    finally:
        await bridge.stop()


def _node_id(bridge: Bridge) -> str:
    return next(node.id for node in bridge.nodes if node.name == "node")


def remote_fleet(
    bridge: Bridge, slots: int
) -> tuple[Dispatcher[WindowRequest, WindowResult], list[RemoteProcess]]:
    """A dispatcher with simulated workers on the node, not started; and their processes."""
    cost = BatchCost(fixed_ms=0, task_ms=1000 * BATCH_S / BATCH, size_ms=0)
    simulation = Simulation(cost, batch=BATCH, host_ms=HOST_MS)
    catalogue = ModelCatalogue(
        SIMULATED, idle_s=600, options={SIMULATED: LoadOptions(SIMULATED, "", SIMULATED, SIMULATED, 1)}
    )
    # On a machine with few cores, it takes a while until so many have started.
    spec = ActorSpec(_node_id(bridge), cpus=1, wait_s=START_S)
    processes = [
        RemoteProcess(bridge, spec, SimulatedWorker, index, str(index), simulation) for index in range(slots)
    ]
    workers = [
        WhisperSlot(index, catalogue, SlotLimits(BATCH, batches_at_once=2), process)
        for index, process in enumerate(processes)
    ]
    return Dispatcher("worker", workers, cost), processes


async def windows_per_s(bridge: Bridge, ray: Ray, slots: int, batches: int) -> Figures:
    """Windows a second of so many slots with so many batches for each, and CPU time for each window."""
    fleet, processes = remote_fleet(bridge, slots)
    fleet.start()
    try:
        async with asyncio.timeout(START_S):
            while any(slot.status.state != "idle" for slot in fleet.slots):  # noqa: ASYNC110 - as a client
                await asyncio.sleep(0.1)
        window = WindowRequest(b"", 0, 22 * 16_000, ((0, 22 * 16_000),), DECODING)
        count = slots * batches * BATCH
        cpu = Cpu(bridge, ray, processes)
        began = time.perf_counter()
        await asyncio.gather(*(fleet.submit(f"job {number % 8}", window) for number in range(count)))
        took_s = time.perf_counter() - began
        return {"windows_per_s": count / took_s, "cpu_ms": cpu.used_ms(count)}
    finally:
        await fleet.stop()


class Cpu:
    """CPU time since this object was made, by process."""

    def __init__(self, bridge: Bridge | None, ray: Ray, workers: Sequence[WorkerProcess]) -> None:
        pids: dict[str, set[int]] = {"server": {os.getpid()}, "head": set(ray.head), "node": set(ray.node)}
        if bridge is not None:
            assert bridge.pid is not None  # it is connected
            pids["bridge"] = {bridge.pid}
            children, direct = (_children(ray.node, recursive=recursive) for recursive in (True, False))
            # Simulated workers are no processes. Of Ray's own, all but the idle ones are actors.
            pids["workers"] = {worker.pid for worker in workers if worker.pid} - direct
            pids["actors"] = children - pids["node"] - pids["workers"]
        else:
            pids["workers"] = {worker.pid for worker in workers if worker.pid}
        self._processes = {name: [psutil.Process(pid) for pid in each] for name, each in pids.items()}
        self._before = self._now()

    def used_ms(self, windows: int) -> dict[str, float]:
        """CPU time for each of so many windows."""
        return {
            name: round(1000 * (now - self._before[name]) / windows, 3) for name, now in self._now().items()
        }

    def _now(self) -> dict[str, float]:
        return {
            name: sum(sum(process.cpu_times()[:2]) for process in processes)
            for name, processes in self._processes.items()
        }


def _children(pids: Iterable[int], *, recursive: bool) -> set[int]:
    return {child.pid for pid in pids for child in psutil.Process(pid).children(recursive=recursive)}


async def send_audio(
    bridge: Bridge | None, ray: Ray, processes: Sequence[WorkerProcess], batches: int
) -> Figures:
    """Send batches of audio to all processes at the same time: bytes a second, and CPU time by process."""
    speech = ((0, MAX_CLIP_SAMPLES),)
    windows = [Window(os.urandom(WINDOW_BYTES), speech, DECODING) for _ in range(BATCH)]
    await asyncio.gather(*(process.start() for process in processes))
    try:

        async def send(process: WorkerProcess, count: int) -> None:
            for _ in range(count):
                assert await process.call(len, windows) == BATCH

        await asyncio.gather(*(send(process, 1) for process in processes))
        cpu = Cpu(bridge, ray, processes)
        count = len(processes) * batches * BATCH
        began = time.perf_counter()
        await asyncio.gather(*(send(process, batches) for process in processes))
        took_s = time.perf_counter() - began
        return {"mb_per_s": count * WINDOW_BYTES / took_s / 1e6, "cpu_ms": cpu.used_ms(count)}
    finally:
        await asyncio.gather(*(process.close() for process in processes))


async def measure_slots(bridge: Bridge, ray: Ray, rounds: int, *, quick: bool) -> tuple[Figures, list[Table]]:
    """The speed-up of many slots over one, in turns."""
    counts = (8, SLOTS) if not quick else (SLOTS,)
    runs: dict[str, list[Figures]] = {str(slots): [] for slots in (1, *counts)}
    for number in range(rounds):
        for name in list(runs)[:: -1 if number % 2 else 1]:
            runs[name].append(await windows_per_s(bridge, ray, int(name), 1 if quick else BATCHES))
            print(f"{name} slots: {json.dumps(runs[name][-1])}", flush=True)
    rows = []
    ratios = {}
    for slots in counts:
        several, one = runs[str(slots)], runs["1"]
        ratios[slots] = [
            round(many["windows_per_s"] / single["windows_per_s"], 2)
            for many, single in zip(several, one, strict=True)
        ]
        cpu = [median([run["cpu_ms"][name] for run in several]) for name in _PROCESSES]
        per_s = median([run["windows_per_s"] for run in several], 1)
        rows.append([slots, per_s, " · ".join(map(str, ratios[slots])), *cpu])
    times_one = {str(slots): median(values, 1) for slots, values in ratios.items()}
    figures = {"costs": {"ray_times_one": times_one}, "runs": runs}
    columns = ["slots", "windows a second", "times one slot", *(f"{name}, ms" for name in _PROCESSES)]
    title = f"{SLOTS} slots, batches of {BATCH_S} s without audio: CPU time of a window"
    return figures, [Table(title, columns, rows)]


_PROCESSES = ("server", "bridge", "head", "node", "actors")


async def measure_audio(bridge: Bridge, ray: Ray, rounds: int, *, quick: bool) -> tuple[Figures, list[Table]]:
    """What audio costs, with Ray and without, in turns."""
    spec = ActorSpec(_node_id(bridge), cpus=1)
    ways: dict[str, Callable[[], WorkerProcess]] = {
        "Ray": lambda: RemoteProcess(bridge, spec, runtime.follow_parent),
        "local": lambda: ChildProcess(runtime.follow_parent),
    }
    runs: dict[str, list[Figures]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            processes = [ways[name]() for _ in range(PROCESSES)]
            found = await send_audio(bridge, ray, processes, 2 if quick else SENT)
            runs[name].append(found)
            print(f"{name}: {json.dumps(found)}", flush=True)
    cpu = {
        name: {part: median([run["cpu_ms"][part] for run in each]) for part in each[0]["cpu_ms"]}
        for name, each in runs.items()
    }
    remote = cpu["Ray"]
    # Wall time: other programs on the machine slow most rounds down.
    mb_per_s = {name: round(max(run["mb_per_s"] for run in each)) for name, each in runs.items()}
    figures = {
        "cpu_ms": cpu,
        "costs": {
            "ray_mb_per_s": mb_per_s["Ray"],
            "server_send_ms": remote["server"],
            "bridge_ms": remote["bridge"],
            "raylet_ms": remote["head"],
            "node_ms": round(remote["node"] + remote["actors"] + remote["workers"], 3),
        },
    }
    names = list(remote)
    rows = [[name, mb_per_s[name], *(cpu[name][part] for part in names)] for name in ways]
    title = (
        f"Windows of {WINDOW_BYTES // 1000} kB, batches of {BATCH}, {PROCESSES} processes: CPU of a window"
    )
    return figures, [Table(title, ["", "MB a second, most", *(f"{name}, ms" for name in names)], rows)]


Part = Callable[..., Awaitable[tuple[Figures, list[Table]]]]
PARTS: dict[str, Part] = {"slots": measure_slots, "audio": measure_audio}


async def _measure(ray: Ray, parts: Mapping[str, Part], rounds: int, *, quick: bool) -> Figures:
    figures: Figures = {}
    async with connected(ray) as bridge:
        for part, measure in parts.items():
            figures[part], tables = await measure(bridge, ray, rounds, quick=quick)
            print("", *tables, sep="\n\n", flush=True)
    return figures


def main() -> None:
    parser = parser_of(__doc__, PARTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the costs to bench/costs.json")
    parsed = parser.parse_args()
    parts = chosen(parser, parsed.parts, PARTS)
    silence_logs()
    with ray_cluster() as ray:
        rounds = 1 if parsed.quick else parsed.rounds
        figures = asyncio.run(_measure(ray, parts, rounds, quick=parsed.quick))
    if parsed.record:
        record({name: value for found in figures.values() for name, value in found["costs"].items()})
    if parsed.json:
        write_json(parsed.json, {"machine": machine()} | figures)


if __name__ == "__main__":
    main()
