"""`whisperfleet doctor`"""

import asyncio
import json
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.commands.doctor import cluster, gpus, machine, model_checks, worker_checks
from app.commands.doctor.finding import Finding, ReportFinding, Severity, fail_setting, ok, warn
from app.commands.ending import command
from app.common.errors import InvalidSetting
from app.engines.backend_choice import TORCH, torch_cuda
from app.engines.devices import usable_cores
from app.engines.model_files import DEMO, ModelFiles, locate
from app.engines.nvml import query_nvml
from app.engines.plan import Plan, make_plan, media_workers
from app.pool.cluster.node_places import usable_device
from app.settings import Settings, load_settings
from app.telemetry.logs import configure_logs

_STYLES = {Severity.OK: "green", Severity.WARN: "yellow", Severity.FAIL: "bold red"}


@command()
def run_doctor(*, as_json: bool = False, cluster: bool = False) -> int:
    """Run all checks and print their findings. Returns that of `exit_code`, or 130 after Ctrl-C.

    `as_json`: standard output gets one JSON document at the end, and nothing else. `cluster`: check the nodes
    of the Ray cluster instead of this machine.
    """
    findings: list[Finding] = []
    console = Console(highlight=False)

    def report(finding: Finding) -> None:
        findings.append(finding)
        if not as_json:
            _print(console, finding)

    with nullcontext() if as_json else console.status("checking …"):
        asyncio.run(check_cluster(report) if cluster else check_machine(report))
    print(json.dumps(as_document(findings), indent=2, ensure_ascii=False) if as_json else _summary(findings))
    return exit_code(findings)


async def check_machine(report: ReportFinding) -> None:
    """Check this machine. No process outlives the call."""
    set_globally = machine.global_start_method()
    settings = _settings(report)
    if settings is None:
        return
    for check in (machine.check_data_dir, machine.check_port, machine.check_connections, machine.check_keys):
        report(check(settings))
    report(machine.check_python())
    report(machine.check_packages())
    report(machine.check_start_method(await worker_checks.child_start_method(), set_globally))
    driver, plan = await asyncio.to_thread(query_nvml), _plan(settings)
    for finding in gpus.check_gpus(driver, settings.device, _visible(plan), os.environ):
        report(finding)
    if isinstance(plan, InvalidSetting):
        report(fail_setting("plan", plan))
        return
    report(plan_finding(plan, media_workers(settings, plan, usable_cores())))
    report(backend_finding(plan, settings))
    if plan.simulation is not None:
        remedy = "Leave WHISPER_ENGINE unset to transcribe recordings."
        report(warn("workers", "simulated: their transcripts are made up", remedy))
        return
    await worker_checks.check_libraries(plan, report)
    files: list[ModelFiles | None] = []
    for index, name in enumerate(plan.models):
        falls_back = index == 0 and settings.model == "auto" and settings.demo_fallback
        finding, located = await asyncio.to_thread(model_checks.check_model, name, falls_back=falls_back)
        files.append(located)
        report(finding)
    pcm = await _check_media(report, "workers", settings.speaker_model)
    if pcm:
        await worker_checks.transcribe(plan, _files(files[0], plan, report), pcm, report)


async def check_cluster(report: ReportFinding) -> None:
    """Check the nodes of the Ray cluster that the settings name."""
    settings = _settings(report, engine="ray")
    if settings is None:
        return
    plan = _plan(settings)
    if isinstance(plan, InvalidSetting):
        report(fail_setting("plan", plan))
        return
    async with cluster.connected(settings) as (bridge, connection):
        report(connection)
        if not bridge.nodes:
            return
        report(backend_finding(plan, settings))
        assert plan.cluster is not None
        if (device := usable_device(bridge.nodes, plan.cluster.device)) is not None:
            plan = make_plan(settings, device)
        files: ModelFiles | None = ModelFiles(plan.models[0], Path())
        if plan.simulation is None:
            # A node may have workers if its files of the model are like those of this machine.
            finding, files = await asyncio.to_thread(
                model_checks.check_model, plan.models[0], falls_back=False
            )
            report(finding)
        files = _files(files, plan, report)
        pcm = await _check_media(report, "nodes")
        if pcm:
            await cluster.check_nodes(bridge, plan, files, pcm, report)


async def _check_media(report: ReportFinding, unchecked: str, speaker_model: str | None = None) -> bytes:
    """Check the media workers and, if it is given, the model of voices. Returns the decoded sample.

    If there is none, `unchecked` is reported as what cannot be checked.
    """
    with tempfile.TemporaryDirectory(prefix="whisperfleet-doctor-") as folder:
        findings, pcm = await worker_checks.detect_speech(Path(folder))
        if speaker_model is not None:
            findings.append(await model_checks.check_speaker_model(speaker_model, Path(folder)))
    for finding in findings:
        report(finding)
    if not pcm:
        report(warn(unchecked, "not checked: there is no decoded audio", "Fix the audio decoder first."))
    return pcm


def _files(files: ModelFiles | None, plan: Plan, report: ReportFinding) -> ModelFiles:
    """The files of the model with which workers are checked: those of the demo model if there are none."""
    if files is None:
        report(ok("workers", f"checked with the demo model: {plan.models[0]} is not on this machine"))
    return files or locate(DEMO)


def _settings(report: ReportFinding, **given: str) -> Settings | None:
    """The settings of the checks, which log nothing: the findings say everything. None if one is invalid."""
    try:
        settings = load_settings(**given)
    except InvalidSetting as error:
        report(fail_setting("settings", error))
        return None
    configure_logs(settings, children=False)
    logging.disable(logging.CRITICAL)
    report(machine.check_settings(settings, os.environ))
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


def backend_finding(plan: Plan, settings: Settings) -> Finding:
    """What computes the model, why, and which build of torch if that does."""
    found = f"{plan.backend} (WHISPER_BACKEND={settings.backend})"
    if plan.backend == TORCH:
        cuda = torch_cuda()
        found += f", torch {metadata.version(TORCH)} for {f'CUDA {cuda}' if cuda else 'CPUs alone'}"
    return ok("backend", found)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def as_document(findings: Sequence[Finding]) -> dict[str, object]:
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
