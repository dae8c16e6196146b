"""`whisperfleet doctor`"""

import asyncio
import json
import logging
import os
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.doctor import cluster, fleet, gpus, machine, model, speakers
from app.doctor.finding import Finding, Severity, fail_setting, ok, warn
from app.engines.cluster.bridge import Bridge
from app.engines.cluster.nodes import usable_device
from app.engines.devices import usable_cores
from app.engines.model_files import DEMO, ModelFiles, locate
from app.engines.plan import Plan, make_plan, media_workers
from app.errors import InvalidSetting
from app.settings import Settings, load_settings
from app.telemetry.logs import configure_logs

_STYLES = {Severity.OK: "green", Severity.WARN: "yellow", Severity.FAIL: "bold red"}


def run_doctor(*, as_json: bool = False, cluster: bool = False) -> int:
    """Run all checks and print their findings. Returns that of `exit_code`, or 130 after Ctrl-C.

    `as_json`: standard output gets one JSON document at the end, and nothing else. `cluster`: check the nodes
    of the Ray cluster instead of this machine.
    """
    checks = run_cluster_checks() if cluster else run_checks()
    try:
        work = _run_and_dump(checks) if as_json else _run_and_print(checks, Console(highlight=False))
        return asyncio.run(work)
    except KeyboardInterrupt:
        return 130


async def run_checks() -> AsyncGenerator[Finding]:
    """Yield each finding as soon as it is known. No process outlives the generator."""
    set_globally = machine.global_start_method()
    settings = _settings()
    if isinstance(settings, InvalidSetting):
        yield fail_setting("settings", settings)
        return
    yield machine.check_settings(settings, os.environ)
    yield machine.check_data_dir(settings)
    yield machine.check_port(settings)
    yield machine.check_python()
    yield machine.check_packages()
    yield machine.check_start_method(await fleet.child_start_method(), set_globally)
    nvml, plan = await asyncio.to_thread(gpus.query_nvml), _plan(settings)
    for finding in gpus.check_gpus(nvml, settings.device, _visible(plan), os.environ):
        yield finding
    if isinstance(plan, InvalidSetting):
        yield fail_setting("plan", plan)
        return
    yield plan_finding(plan, media_workers(settings, plan, usable_cores()))
    if plan.simulation is not None:
        remedy = "Leave WHISPER_ENGINE unset to transcribe recordings."
        yield warn("workers", "simulated: their transcripts are made up", remedy)
        return
    async with aclosing(_check_plan(plan, settings)) as findings:
        async for finding in findings:
            yield finding


async def _check_plan(plan: Plan, settings: Settings) -> AsyncGenerator[Finding]:
    async with aclosing(fleet.check_libraries(plan)) as findings:
        async for finding in findings:
            yield finding
    files: list[ModelFiles | None] = []
    for index, name in enumerate(plan.models):
        falls_back = index == 0 and settings.model == "auto" and settings.demo_fallback
        finding, located = await asyncio.to_thread(model.check_model, name, falls_back=falls_back)
        files.append(located)
        yield finding
    with tempfile.TemporaryDirectory(prefix="whisperfleet-doctor-") as folder:
        media_findings, pcm = await fleet.detect_speech(Path(folder))
        media_findings.append(await speakers.check_speaker_model(settings.speaker_model, Path(folder)))
    for finding in media_findings:
        yield finding
    if not pcm:
        yield warn("workers", "not checked: there is no decoded audio", "Fix the audio decoder first.")
        return
    if files[0] is None:
        yield ok("workers", f"checked with the demo model: {plan.models[0]} is not on this machine")
    async with aclosing(fleet.transcribe(plan, files[0] or locate(DEMO), pcm)) as findings:
        async for finding in findings:
            yield finding


async def run_cluster_checks() -> AsyncGenerator[Finding]:
    """Check the nodes of the Ray cluster that the settings name. Yields findings as they are known."""
    settings = _settings(engine="ray")
    if isinstance(settings, InvalidSetting):
        yield fail_setting("settings", settings)
        return
    yield machine.check_settings(settings, os.environ)
    plan = _plan(settings)
    if isinstance(plan, InvalidSetting):
        yield fail_setting("plan", plan)
        return
    async with cluster.connected(settings) as (bridge, connection):
        yield connection
        if not bridge.nodes:
            return
        assert plan.cluster is not None
        if (device := usable_device(bridge.nodes, plan.cluster.device)) is not None:
            plan = make_plan(settings, device)
        async with aclosing(_check_nodes(bridge, plan)) as findings:
            async for finding in findings:
                yield finding


async def _check_nodes(bridge: Bridge, plan: Plan) -> AsyncGenerator[Finding]:
    files: ModelFiles | None = ModelFiles(plan.models[0], Path())
    if plan.simulation is None:
        # A node may have workers if its files of the model are like those of this machine.
        finding, files = await asyncio.to_thread(model.check_model, plan.models[0], falls_back=False)
        yield finding
    if files is None:
        files = locate(DEMO)
        yield ok("workers", f"checked with the demo model: {plan.models[0]} is not on this machine")
    with tempfile.TemporaryDirectory(prefix="whisperfleet-doctor-") as folder:
        media_findings, pcm = await fleet.detect_speech(Path(folder))
    for finding in media_findings:
        yield finding
    if not pcm:
        yield warn("nodes", "not checked: there is no decoded audio", "Fix the audio decoder first.")
        return
    async with aclosing(cluster.check_nodes(bridge, plan, files, pcm)) as findings:
        async for finding in findings:
            yield finding


def _settings(**given: str) -> Settings | InvalidSetting:
    """The settings of the checks, which log nothing: the findings say everything."""
    try:
        settings = load_settings(**given)
    except InvalidSetting as error:
        return error
    configure_logs(settings, children=False)
    logging.disable(logging.CRITICAL)
    return settings


def _plan(settings: Settings) -> Plan | InvalidSetting:
    try:
        return make_plan(settings)
    except InvalidSetting as error:
        return error


def _visible(plan: Plan | InvalidSetting) -> tuple[str, ...] | None:
    """The workers' GPUs; None if they are unknown."""
    if isinstance(plan, InvalidSetting):
        return None
    return plan.devices.visible if plan.devices.device == "cuda" else ()


def plan_finding(plan: Plan, media_worker_count: int) -> Finding:
    """Which workers and how many media workers there are, and which GPUs have no worker."""
    devices, clips = plan.devices, _counted(plan.limits.batch_size, "clip")
    found = (
        f"{_counted(len(devices.visible), 'worker')} on {devices.device} ({','.join(devices.visible)}), "
        f"{_counted(devices.cpu_threads, 'thread')} each, up to {clips} at once; "
        f"{_counted(media_worker_count, 'media worker')}"
    )
    if devices.warnings:
        return warn("plan", found, f"{'; '.join(devices.warnings)}.", "wrong-gpu-names")
    return ok("plan", found)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


async def _run_and_print(checks: AsyncGenerator[Finding], console: Console) -> int:
    findings: list[Finding] = []
    with console.status("checking …"):
        async with aclosing(checks):
            async for finding in checks:
                findings.append(finding)
                _print(console, finding)
    print(_summary(findings))
    return exit_code(findings)


async def _run_and_dump(checks: AsyncGenerator[Finding]) -> int:
    async with aclosing(checks):
        findings = [finding async for finding in checks]
    print(json.dumps(report(findings), indent=2, ensure_ascii=False))
    return exit_code(findings)


def report(findings: Sequence[Finding]) -> dict[str, object]:
    """The findings for programs. `status` of the whole is the worst of the checks: ok, warn or fail."""
    worst = max((finding.severity for finding in findings), key=list(Severity).index, default=Severity.OK)
    return {
        "status": worst.lower(),
        "version": metadata.version("whisperfleet"),
        "checks": [
            {
                "name": finding.title,
                "status": finding.severity.lower(),
                "detail": finding.found,
                "remedy": finding.remedy or None,
            }
            for finding in findings
        ],
    }


def exit_code(findings: Sequence[Finding]) -> int:
    """2 if a setting is invalid, else 1 if a check failed, else 0."""
    if any(finding.invalid_setting for finding in findings):
        return 2
    return int(any(finding.severity is Severity.FAIL for finding in findings))


def _print(console: Console, finding: Finding) -> None:
    """Colours and columns on a terminal; elsewhere a plain line, and another for the remedy."""
    if not console.is_terminal:
        print(f"{finding.severity:<4} {finding.title}: {finding.found}", flush=True)
        if finding.remedy:
            print(f"     {finding.remedy}", flush=True)
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=4)
    grid.add_column(overflow="fold")
    line = Text.assemble((finding.title, "bold"), f": {finding.found}")
    grid.add_row(Text(finding.severity, _STYLES[finding.severity]), line)
    if finding.remedy:
        grid.add_row("", Text(finding.remedy, "italic"))
    console.print(grid)


def _summary(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    summary = ", ".join(f"{counts[severity]} {severity}" for severity in Severity if counts[severity])
    return f"{_counted(len(findings), 'check')}: {summary}"
