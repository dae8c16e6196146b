"""Processes on the nodes of a real cluster: they answer, crash, hang, and are lost, as on this machine."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import structlog

from app.common.errors import ClusterUnavailable, DeviceFailed, ProcessCrashed, ProcessHung, ProcessLost
from app.engines.model_files import DEMO_PATH
from app.engines.simulated import SimulatedWorker, Simulation
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.ray_messages import ActorSpec, RayNode
from app.pool.cluster.remote_process import RemoteProcess
from app.pool.process import ChildProcess
from app.pool.tasks import WorkerProcess
from tests.cluster import node_functions
from tests.cluster.clusters import RayCluster, until
from tests.media_files import read_pcm
from workers import calls, runtime
from workers.messages import MAX_CLIP_SAMPLES, DecodingOptions, LoadOptions, Window
from workers.whisper import worker as whisper

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
async def bridge(ray_cluster: RayCluster) -> AsyncIterator[Bridge]:
    bridge = Bridge(ray_cluster.address)
    await bridge.start()
    await until(lambda: len(bridge.nodes) == 3, bridge)
    yield bridge
    await bridge.stop()
    assert bridge.nodes == ()


def node(bridge: Bridge, name: str) -> RayNode:
    [found] = [node for node in bridge.nodes if node.name == name]
    return found


def new_process(bridge: Bridge, name: str = "node0") -> RemoteProcess:
    return RemoteProcess(bridge, ActorSpec(node(bridge, name).id, cpus=1), runtime.initialise, "")


class Ended(asyncio.Event):
    """Set when a process ends."""

    error: ProcessCrashed | None = None

    def __call__(self, error: ProcessCrashed) -> None:
        self.error = error
        self.set()


@asynccontextmanager
async def started(process: RemoteProcess) -> AsyncIterator[Ended]:
    """A process that is closed in the end, and an event for its end."""
    ended = Ended()
    process.on_exit = ended
    await process.start()
    try:
        yield ended
    finally:
        await process.close()


async def gone(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        await asyncio.to_thread(psutil.Process(pid).wait, 30)


async def decode_talk(process: WorkerProcess) -> Any:
    pcm = read_pcm(DATA / "talk.flac")[: MAX_CLIP_SAMPLES // 2]
    windows = [
        Window(pcm.astype("<i2").tobytes(), ((0, len(pcm)),), DecodingOptions("demo", word_timestamps=words))
        for words in (False, True)
    ]
    await process.call(whisper.load, LoadOptions("demo", str(DEMO_PATH), "cpu", "int8", 1))
    one_by_one = await asyncio.gather(*(process.call(whisper.decode, [window]) for window in windows))
    together = await process.call(whisper.decode, windows)
    assert [result for [result] in one_by_one] == together
    return together


async def test_the_nodes_are_listed(bridge: Bridge) -> None:
    assert {(node.name, node.address, node.cpus, node.gpus) for node in bridge.nodes} == {
        ("head", "127.0.0.1", 0, 0),
        ("node0", "127.0.0.1", 2, 0),
        ("node1", "127.0.0.1", 2, 0),
    }


async def test_no_process_shows_the_token(bridge: Bridge) -> None:
    token = os.environ["RAY_AUTH_TOKEN"]
    process = psutil.Process(bridge.pid)
    assert token not in " ".join(process.cmdline())
    assert token not in process.environ().values()


async def test_a_process_knows_nothing_of_ray_and_decodes_as_those_of_this_machine(bridge: Bridge) -> None:
    process = new_process(bridge)
    async with started(process):
        with structlog.contextvars.bound_contextvars(job="abc"):
            modules, visible, ids = await process.call(node_functions.surroundings)
        assert (modules, visible, ids) == ([], "", {"job": "abc"})
        assert await process.call(node_functions.secrets) == []
        with pytest.raises(ZeroDivisionError) as divided:
            await process.call(node_functions.divide, 1, 0)
        assert "in divide" in divided.value.__notes__[0], "it says where that was"
        local = ChildProcess(runtime.initialise, "")
        await local.start()
        here, there = calls.separate(), calls.separate()
        decoding = [
            asyncio.create_task(decode_talk(each), context=context)
            for each, (context, _) in ((process, there), (local, here))
        ]
        assert await decoding[0] == await decoding[1]
        assert [part.name for part in there[1].parts] == [part.name for part in here[1].parts] != []
        await local.close()


@pytest.mark.soak
async def test_crashes_and_hangs_are_noticed_on_the_node(bridge: Bridge) -> None:
    process = new_process(bridge)
    async with started(process) as ended:
        with pytest.raises(ProcessHung, match="did not answer within 1 s"):
            await process.call(time.sleep, 3600, deadline_s=1.0)
        await ended.wait()
        with pytest.raises(ProcessCrashed, match="SIGKILL"):
            await process.call(os.getpid)
        ended.clear()
        await process.start()
        with pytest.raises(ProcessCrashed, match="exited with status 3") as crashed:
            await process.call(os._exit, 3)
        assert not isinstance(crashed.value, ProcessLost)
        assert crashed.value.exit_status == 3


@pytest.mark.soak
async def test_the_end_of_a_process_between_two_calls_is_noticed(bridge: Bridge) -> None:
    process = new_process(bridge)
    async with started(process) as ended:
        assert process.pid is not None
        psutil.Process(process.pid).kill()
        await ended.wait()
        assert type(ended.error) is ProcessCrashed
        assert ended.error.message == f"process {process.pid} was killed by signal 9 (SIGKILL) on node node0"
        assert ended.error.exit_status == -signal.SIGKILL


@pytest.mark.soak
async def test_an_actor_that_is_killed_takes_its_process_with_it_and_is_lost(bridge: Bridge) -> None:
    process = new_process(bridge)
    async with started(process) as ended:
        pid, actor = process.pid, process.actor
        assert pid is not None
        assert actor is not None
        psutil.Process(psutil.Process(pid).ppid()).kill()
        with pytest.raises(ProcessLost, match=r"^ActorDiedError: [^\n]*$"):
            await process.call(time.sleep, 3600)
        await ended.wait()
        assert isinstance(ended.error, ProcessLost)
        await gone(pid)
        await process.start()
        assert await process.call(os.getpid) == process.pid != pid
        assert process.actor != actor


async def test_a_simulated_worker_lives_in_its_actor(bridge: Bridge) -> None:
    spec = ActorSpec(node(bridge, "node1").id, cpus=1)
    process = RemoteProcess(bridge, spec, SimulatedWorker, 0, "", Simulation(crash=1, speed=1000))
    options = LoadOptions("simulated", "", "simulated", "simulated", 1)
    window = Window(bytes(32_000), ((0, 16_000),), DecodingOptions("simulated"))
    async with started(process) as ended:
        assert (await process.call(whisper.load, options)).model == "simulated"
        with pytest.raises(ProcessCrashed, match="simulated worker 0 crashed"):
            await process.call(whisper.decode, [window])
        await ended.wait()
        assert str(ended.error) == "simulated worker 0 crashed (crash 1) on node node1"
        await process.start()
        assert (await process.call(whisper.load, options)).loads == 1
    assert process.actor is None


async def test_functions_run_on_a_node(bridge: Bridge) -> None:
    id = node(bridge, "node1").id
    assert await bridge.call("run_on_node", id, node_functions.divide, 1, 4) == 0.25
    with pytest.raises(ZeroDivisionError):
        await bridge.call("run_on_node", id, node_functions.divide, 1, 0)


async def test_an_actor_without_resources_says_what_holds_them(bridge: Bridge) -> None:
    """A start that was cancelled holds none: both CPUs are free for others."""
    waiting = asyncio.create_task(new_process(bridge).start())
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    holders = [new_process(bridge) for _ in range(2)]
    async with started(holders[0]), started(holders[1]):
        assert await holders[0].call(os.getpid) != await holders[1].call(os.getpid)
        spec = ActorSpec(node(bridge, "node0").id, cpus=1, wait_s=2)
        with pytest.raises(
            ClusterUnavailable,
            match=r"^node node0 has not given a worker 1 CPU within 2 s: 0 CPU free; held by 2 WorkerActor",
        ):
            await RemoteProcess(bridge, spec, runtime.initialise, "").start()


async def test_a_gpu_that_the_model_would_not_see_is_an_error(
    ray_cluster: RayCluster, bridge: Bridge
) -> None:
    added = ray_cluster.add("gpus", cpus=0, gpus=1)
    await until(lambda: len(bridge.nodes) == 4, bridge)
    process = RemoteProcess(bridge, ActorSpec(node(bridge, "gpus").id, gpus=1), runtime.initialise)
    with pytest.raises(DeviceFailed, match="node gpus: Ray has assigned GPU 0, but CTranslate2 sees 0 GPUs"):
        await process.start()
    await process.close()
    ray_cluster.kill(added)
    await until(lambda: len(bridge.nodes) == 3, bridge)


@pytest.mark.soak
async def test_a_node_that_is_killed_loses_its_processes(ray_cluster: RayCluster, bridge: Bridge) -> None:
    added = ray_cluster.add("brief")
    await until(lambda: len(bridge.nodes) == 4, bridge)
    process = new_process(bridge, "brief")
    await process.start()
    calling = asyncio.create_task(process.call(time.sleep, 3600))
    await asyncio.sleep(0.1)
    ray_cluster.kill(added)
    with pytest.raises(ProcessLost):
        await calling
    await until(lambda: len(bridge.nodes) == 3, bridge)
    await process.close()


@pytest.mark.soak
async def test_a_bridge_that_is_killed_is_replaced(bridge: Bridge) -> None:
    process = new_process(bridge)
    async with started(process) as ended:
        pid, bridge_pid = process.pid, bridge.pid
        assert pid is not None
        assert bridge_pid is not None
        calling = asyncio.create_task(process.call(time.sleep, 3600))
        await asyncio.sleep(0.1)
        psutil.Process(bridge_pid).kill()
        with pytest.raises(ProcessLost, match="the bridge to Ray has ended"):
            await calling
        await ended.wait()
        assert bridge.nodes == ()
        assert bridge.fault is not None
        assert bridge.fault.startswith("the bridge to Ray has ended, and starts again:")
        with pytest.raises(ProcessLost, match="the bridge to Ray has ended"):
            await bridge.call("start_actor", "name", ActorSpec("", cpus=1))
        await gone(pid)
        await until(lambda: len(bridge.nodes) == 3, bridge)
        await process.start()
        assert await process.call(os.getpid) == process.pid
        assert bridge.pid != bridge_pid
