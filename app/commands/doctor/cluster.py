"""Checks of the nodes of a Ray cluster, through a bridge of the doctor's own."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from app.commands.doctor.finding import Finding, ReportFinding, Severity, fail, fail_with, ok, warn
from app.commands.doctor.gpus import driver_remedy
from app.commands.doctor.worker_checks import report_each, sample_window, transcribe_on
from app.common.errors import ModelUnavailable, WhisperfleetError
from app.engines.catalogue import ModelCatalogue
from app.engines.cluster import node_checks
from app.engines.cluster.cluster_node import ClusterNode
from app.engines.cluster.ray_slot import RaySlots
from app.engines.model_files import ModelFiles
from app.engines.plan import Plan
from app.engines.window_request import WindowRequest
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.node_places import Place
from app.pool.cluster.ray_messages import NodeReport, RayNode
from app.settings import Settings
from workers.messages import LoadOptions

_CONNECT_S = 120.0
_REPORT_S = 120.0  # a node starts a process for its report
_MAX_CLOCK_S = 2.0  # of difference: people compare the logs of machines
_NO_RESOURCES = "has not given a worker"  # what the bridge says of a node whose GPUs are taken


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[tuple[Bridge, Finding]]:
    """A bridge to the cluster, and the finding about it. Without a connection the bridge has no nodes."""
    bridge = Bridge(settings.ray_address, insecure=settings.ray_insecure)
    changed = asyncio.Event()
    bridge.on_nodes = changed.set
    await bridge.start()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT_S):
                await changed.wait()
        yield bridge, check_connection(settings, bridge)
    finally:
        await bridge.stop()


def check_connection(settings: Settings, bridge: Bridge) -> Finding:
    """Whether the bridge is connected, with which nodes, and whether others could connect as well."""
    title, address = "cluster", settings.ray_address or "a Ray on this machine alone"
    if bridge.fault is not None:
        return fail_with(title, WhisperfleetError(bridge.fault))
    count = len(bridge.nodes)
    found = (
        f"{address}, {count} node{'' if count == 1 else 's'}: {', '.join(node.name for node in bridge.nodes)}"
    )
    if not settings.ray_address:
        return warn(title, found, "Set WHISPER_RAY_ADDRESS to check the nodes of a cluster.")
    if settings.ray_insecure:
        remedy = "WHISPER_RAY_INSECURE=1: whoever reaches Ray's ports can run any program on its nodes."
        return warn(title, found, remedy)
    return ok(title, found)


async def check_nodes(
    bridge: Bridge, plan: Plan, model: ModelFiles, pcm: bytes, report: ReportFinding
) -> None:
    """Check all nodes at the same time. A worker of each transcribes the sample (s16le, mono, 16 kHz)."""
    catalogue = ModelCatalogue(model.name, idle_s=0.0, options={model.name: plan.load_options(model)})
    slots = RaySlots(bridge, catalogue, plan)
    places = {place.node.id: place for place in reversed(slots.places(bridge.nodes))}
    if not places:
        remedy = "Start one with GPUs, or set WHISPER_DEVICE=cpu: `ray start --address=…`."
        report(fail("cluster", f"no node has a place for a worker on {plan.devices.device}", remedy))
    window = sample_window(model.name, pcm)
    checks = [
        _check_node(node, places.get(node.id), slots, index, window)
        for index, node in enumerate(bridge.nodes)
    ]
    await report_each(checks, report)


async def _check_node(
    node: RayNode, place: Place | None, slots: RaySlots, index: int, window: WindowRequest
) -> list[Finding]:
    name = f"node {node.name}"
    before = time.time()
    try:
        async with asyncio.timeout(_REPORT_S):
            report: NodeReport = await slots.bridge.call("run_on_node", node.id, node_checks.inspect)
    except TimeoutError:
        remedy = "Ray on it is stopped or very slow: look at its load, or end it. The service leaves it out."
        return [fail(name, f"did not answer within {_REPORT_S:.0f} s", remedy)]
    except Exception as error:
        return [fail_with(name, error)]
    options = slots.catalogue.options[window.decoding.model]
    findings = [
        ok(name, f"{node.address}, {node.gpus:g} GPUs and {node.cpus:g} CPUs for Ray"),
        *check_report(name, node, report, before, time.time(), options),
    ]
    if place is None:
        return [*findings, ok(f"{name}: worker", "none: Ray has nothing for one there")]
    if any(finding.severity is Severity.FAIL for finding in findings):
        return findings  # a worker would not start
    return [*findings, *await _check_worker(place, slots, index, window)]


def check_report(
    name: str, node: RayNode, report: NodeReport, before: float, after: float, options: LoadOptions
) -> Iterator[Finding]:
    """Findings about what a node says of itself.

    `before` and `after`: this machine's clock (Unix s) around the report. `options`: those of its workers.
    """
    title = f"{name}: versions"
    if fault := node_checks.fault_of(report, options):
        yield fail(title, fault, "The service leaves the node out.")
    else:
        yield ok(title, ", ".join(f"{package} {number}" for package, number in report.versions.items()))
    yield _check_driver(f"{name}: NVIDIA driver", node, report)
    # The clock was read at some time between the two: this much is certain.
    off_s = max(before - report.clock, report.clock - after, 0.0)
    if off_s > _MAX_CLOCK_S:
        remedy = "Set the clocks of all machines by NTP: `timedatectl` shows whether one is."
        yield warn(f"{name}: clock", f"{off_s:.1f} s from this machine's", remedy)
    else:
        yield ok(f"{name}: clock", "that of this machine")


def _check_driver(title: str, node: RayNode, report: NodeReport) -> Finding:
    if report.driver is None:
        if not node.gpus:
            return ok(title, "none; the node has no GPUs for Ray")
        remedy = "Check that `nvidia-smi` works there. In a container, pass the GPUs (`--gpus all`)."
        return fail(title, f"none, and Ray has {node.gpus:g} GPUs", remedy, "no-gpu")
    found = f"{report.driver}, {', '.join(report.gpus) or 'no GPU'}"
    if too_old := driver_remedy(report.driver):
        return fail(title, found, too_old, "driver-too-old")
    return ok(title, found)


async def _check_worker(place: Place, slots: RaySlots, index: int, window: WindowRequest) -> list[Finding]:
    """Find the model on the node, and let a worker there transcribe the sample."""
    is_connected = asyncio.Event()
    is_connected.set()
    node = ClusterNode(slots.bridge, place.node, slots.catalogue, is_connected)
    model, name = window.decoding.model, f"node {place.node.name}"
    title = f"{name}: model {model}"
    try:
        await node.find(model)
    except ModelUnavailable as error:
        return [fail(title, error.message, "The service leaves the node out.")]
    except Exception as error:
        return [fail_with(title, error)]
    found = ok(title, node.path(model) or "none: the workers are simulated")
    slot = slots.new_slot(index, place, node)
    try:
        [finding] = await transcribe_on(slot, window, f"{name}: worker")
    finally:
        await slot.close()
    if _NO_RESOURCES in finding.found:
        remedy = (
            "If a service uses the cluster, they are its workers': `GET /v1/workers` shows whether they work."
        )
        finding = replace(finding, severity=Severity.WARN, remedy=remedy)
    return [found, finding]
