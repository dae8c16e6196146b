"""`whisperfleet doctor`"""

import asyncio
import logging
import os
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.doctor import fleet, gpus, machine, model
from app.doctor.finding import Finding, Severity, invalid_setting, ok, warn
from app.engines.model_files import DEMO, ModelFiles, locate
from app.engines.plan import Plan, make_plan
from app.errors import InvalidSetting
from app.logs import configure_logs
from app.settings import Settings, load_settings

_STYLES = {Severity.OK: "green", Severity.WARN: "yellow", Severity.FAIL: "bold red"}


def run_doctor() -> int:
    """Check everything, and say what was found. The exit code is that of `exit_code`, or 130 after Ctrl-C."""
    try:
        return asyncio.run(_report(Console(highlight=False)))
    except KeyboardInterrupt:
        return 130


async def examine() -> AsyncGenerator[Finding]:
    """Every finding, each as soon as it is known. No process outlives the generator."""
    set_globally = machine.global_start_method()
    try:
        settings = load_settings()
    except InvalidSetting as error:
        yield invalid_setting("settings", error)
        return
    _be_quiet(settings)
    for finding in _of_machine(settings):
        yield finding
    yield machine.start_method(await fleet.start_method(), set_globally)
    seen, plan = await asyncio.to_thread(gpus.look), _plan(settings)
    for finding in gpus.findings(seen, settings.device, _visible(plan), os.environ):
        yield finding
    if isinstance(plan, InvalidSetting):
        yield invalid_setting("plan", plan)
        return
    yield _planned(plan)
    if plan.simulation is not None:
        cure = "Leave WHISPER_ENGINE unset to have recordings heard."
        yield warn("workers", "simulated: what they answer is made up", cure)
        return
    async with aclosing(_examine_plan(plan, settings)) as findings:
        async for finding in findings:
            yield finding


def _of_machine(settings: Settings) -> Iterator[Finding]:
    yield machine.settings_read(settings, os.environ)
    yield machine.data_folder(settings)
    yield machine.port(settings)
    yield machine.python_version()
    yield machine.packages()


async def _examine_plan(plan: Plan, settings: Settings) -> AsyncGenerator[Finding]:
    async with aclosing(fleet.libraries(plan)) as findings:
        async for finding in findings:
            yield finding
    files: list[ModelFiles | None] = []
    for index, name in enumerate(plan.models):
        falls_back = index == 0 and settings.model == "auto" and settings.demo_fallback
        finding, located = await asyncio.to_thread(model.look, name, falls_back=falls_back)
        files.append(located)
        yield finding
    with tempfile.TemporaryDirectory(prefix="whisperfleet-doctor-") as folder:
        heard, pcm = await fleet.detect_speech(Path(folder))
    for finding in heard:
        yield finding
    if not pcm:
        yield warn("workers", "not tried: there is no audio to give them", "Cure the audio decoder first.")
        return
    if files[0] is None:
        yield ok("workers", f"tried with the demo model, as {plan.models[0]} is not here")
    async with aclosing(fleet.transcribe(plan, files[0] or locate(DEMO), pcm)) as findings:
        async for finding in findings:
            yield finding


def _plan(settings: Settings) -> Plan | InvalidSetting:
    try:
        return make_plan(settings)
    except InvalidSetting as error:
        return error


def _visible(plan: Plan | InvalidSetting) -> tuple[str, ...] | None:
    """The GPUs that the workers are to see; None where that is not known."""
    if isinstance(plan, InvalidSetting):
        return None
    return plan.devices.visible if plan.devices.device == "cuda" else ()


def _planned(plan: Plan) -> Finding:
    devices, clips = plan.devices, _counted(plan.limits.batch_size, "clip")
    found = (
        f"{_counted(len(devices.visible), 'worker')} on {devices.device} ({','.join(devices.visible)}), "
        f"{_counted(devices.cpu_threads, 'thread')} each, up to {clips} at once"
    )
    return ok("plan", found)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _be_quiet(settings: Settings) -> None:
    """What is worth saying stands in the findings."""
    configure_logs(settings)
    logging.disable(logging.CRITICAL)


async def _report(console: Console) -> int:
    findings: list[Finding] = []
    with console.status("examining …"):
        async with aclosing(examine()) as found:
            async for finding in found:
                findings.append(finding)
                _show(console, finding)
    print(_summary(findings))
    return exit_code(findings)


def exit_code(findings: Sequence[Finding]) -> int:
    """What the command ends with: 2 for a senseless setting, else 1 for a failure, else 0."""
    if any(finding.senseless for finding in findings):
        return 2
    return int(any(finding.status is Severity.FAIL for finding in findings))


def _show(console: Console, finding: Finding) -> None:
    """In colours and in columns on a terminal; elsewhere one plain line, and one for the cure."""
    if not console.is_terminal:
        print(f"{finding.status:<4} {finding.title}: {finding.found}", flush=True)
        if finding.cure:
            print(f"     {finding.cure}", flush=True)
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=4)
    grid.add_column(overflow="fold")
    line = Text.assemble((finding.title, "bold"), f": {finding.found}")
    grid.add_row(Text(finding.status, _STYLES[finding.status]), line)
    if finding.cure:
        grid.add_row("", Text(finding.cure, "italic"))
    console.print(grid)


def _summary(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.status for finding in findings)
    said = ", ".join(f"{counts[status]} {status}" for status in Severity if counts[status])
    return f"{_counted(len(findings), 'check')}: {said}"
