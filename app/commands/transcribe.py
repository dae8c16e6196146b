"""`whisperfleet transcribe`"""

import asyncio
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from app.commands.arguments import (
    STANDARD_STREAM,
    Input,
    Target,
    check_options,
    check_terms,
    choose_format,
    find_recordings,
    note_without_effect,
    plan_targets,
    store_beside,
    write_output,
)
from app.commands.ending import command, print_error, run_until
from app.commands.models import find_with_bar
from app.commands.progress import Board, FileBar
from app.commands.remote import Remote
from app.common.errors import InvalidInput, ModelUnavailable, UnsuitableFormat, WhisperfleetError
from app.common.options import Options
from app.engines.catalogue import ModelCatalogue
from app.engines.model_files import DEMO
from app.engines.plan import Plan, check_compute_type, make_plan
from app.intake.uploads import Upload
from app.jobs.term_lists import common_terms
from app.recording.recording_work import Observer
from app.recording.recording_work import Progress as PipelineProgress
from app.recording.service import TranscriptionService
from app.settings import Settings, load_settings
from app.telemetry.logs import configure_logs
from app.transcript.rendering import render_transcript, with_word_times
from app.transcript.terms import Term, joined_terms
from app.transcript.timeline import Transcript

MIN_FILES_AT_ONCE = 4  # keeps the workers busy between the end of one file and the start of the next
_READY_POLL_S = 0.05

# Transcribes a recording into the content of its file, and reports its progress.
Transcriber = Callable[[Target, FileBar], Awaitable[bytes]]


class BarObserver(Observer):
    """Shows the progress of a file."""

    def __init__(self, bar: FileBar) -> None:
        self._bar = bar

    def progressed(self, progress: PipelineProgress) -> None:
        self._bar.advance(progress.done_s, progress.expected_s)


@command()
def run_transcribe(
    files: Sequence[str | Path],
    output: str | None,
    file_format: str | None,
    options: dict[str, object],
    model: str | None,
    server: str | None,
    api_key: str | None,
    *,
    terms: Path | None = None,
    overwrite: bool = False,
    kept: Mapping[str, str] | None = None,
) -> int:
    """Transcribe files here or on a server. Returns the exit code: 1 if a file failed, 2 for wrong usage.

    In folders, recordings whose outputs exist are skipped, unless `overwrite` says otherwise. `kept`: the
    title and tags of jobs that stay on the server; None: they are deleted.
    """
    if str(STANDARD_STREAM) in map(str, files):
        raise InvalidInput("a recording cannot come from standard input: name its file")
    recordings = find_recordings(files)
    if server is None and (urls := [one.url for one in recordings if one.url]):
        raise InvalidInput(
            f"{urls[0]} is a URL, which a running service downloads: add --server http://host:8000, or "
            "download the recording and name its file"
        )
    chosen = choose_format(output, file_format, recordings)
    given, own_terms = check_options(options), check_terms(terms)
    note_without_effect(given, chosen if kept is None else None)  # other formats of jobs come later
    checked = with_word_times(given, chosen)
    targets = plan_targets(recordings, output, chosen)
    if not overwrite:
        targets = _without_existing(recordings, targets)
    if not targets:
        return 0
    if kept is not None and server is None:
        raise InvalidInput("--keep leaves jobs on a running service: add --server http://host:8000")
    if kept and "title" in kept and len(targets) > 1:
        raise InvalidInput(
            f"--title is for one recording, and there are {len(targets)}: leave it out, and each job has the "
            "name of its file, or name one recording at a time"
        )
    if server is None:
        work = _transcribe_here(targets, checked, chosen, model, own_terms)
    else:
        remote = Remote(
            server, api_key, given, chosen, model, kept=kept, recordings=recordings, terms=own_terms
        )
        work = _transcribe_there(targets, remote)
    return run_until(work, signal.SIGTERM)


def _without_existing(recordings: Sequence[Input], targets: Sequence[Target]) -> list[Target]:
    """The targets that are still missing, or whose files were named. Prints how many are skipped."""
    left = [
        target
        for recording, target in zip(recordings, targets, strict=True)
        if recording.folder is None or target[1] is None or not target[1].exists()
    ]
    if skipped := len(targets) - len(left):
        print(
            f"{skipped} of {len(targets)} recordings are skipped, because their outputs exist; --overwrite "
            "transcribes them again",
            file=sys.stderr,
        )
    return left


async def _transcribe_here(
    targets: Sequence[Target],
    options: Options,
    chosen: str,
    model: str | None,
    own_terms: tuple[Term, ...],
) -> int:
    overrides = {"model": model} if model else {}
    settings = load_settings(log_level="warning", **overrides)
    configure_logs(settings)
    terms = joined_terms(own_terms, common_terms(settings))
    plan = make_plan(settings)  # CUDA's compiled code stays in the usual data folder
    ModelCatalogue(plan.models[0], idle_s=0).resolve("", options.task, options.language)
    check_compute_type(plan)
    settings, plan = await _with_model(settings, plan)
    with tempfile.TemporaryDirectory(prefix="whisperfleet-") as folder:
        service = TranscriptionService(settings.model_copy(update={"data_dir": Path(folder)}), plan)

        async def transcriber(target: Target, bar: FileBar) -> bytes:
            file, default = target[0], service.fleet.catalogue.resolve("")
            upload = Upload(file.resolve(), file.name, file.stat().st_size, sha256="")
            transcript = await service.transcribe(upload, options, default, BarObserver(bar), terms=terms)
            for warning in transcript.warnings:
                bar.note(warning.message)
            return await asyncio.to_thread(_render, transcript, options, chosen, target)

        try:
            await service.start()
            with Console(stderr=True).status("loading the model …"):
                await _until_loaded(service)
            at_once = max(MIN_FILES_AT_ONCE, 2 * len(service.fleet.workers()))
            return await _transcribe_all(targets, transcriber, at_once)
        finally:
            await service.stop()


async def _with_model(settings: Settings, plan: Plan) -> tuple[Settings, Plan]:
    """Download the model if it is not here; settings and plan for the demo model if that takes its place.

    Raises ModelUnavailable.
    """
    if plan.simulation is not None:
        return settings, plan
    try:
        await find_with_bar(plan.models[0])
    except ModelUnavailable as error:
        if settings.model != "auto" or not settings.demo_fallback:
            raise
        print_error(
            f"falling back to the demo model, which understands synthetic speech only: {error.message}"
        )
        settings = settings.model_copy(update={"model": DEMO})
        return settings, make_plan(settings)
    return settings, plan


async def _until_loaded(service: TranscriptionService) -> None:
    """Wait until a worker has loaded the model, or none can: each recording has that error then."""
    while service.fleet.readiness() is not None:
        if (rows := service.fleet.workers()) and all(row["state"] == "failed" for row in rows):
            return
        await asyncio.sleep(_READY_POLL_S)


def _render(transcript: Transcript, options: Options, chosen: str, target: Target) -> bytes:
    """The content of the target's file. If its format cannot hold the transcript, that is stored as JSON.

    Raises `UnsuitableFormat`, which names the JSON file, and OSError.
    """
    try:
        return render_transcript(transcript, options, chosen, title=target[0].stem)
    except UnsuitableFormat as error:
        stored = store_beside(target, render_transcript(transcript, options, "json"))
        raise UnsuitableFormat(f"{error.message} The transcript is stored in {stored}.") from None


async def _transcribe_there(targets: Sequence[Target], remote: Remote) -> int:
    async with remote:
        return await _transcribe_all(targets, remote.transcribe, await remote.jobs_at_once())


def _write(output: Path | None, content: bytes) -> None:
    """Write the output. One that cannot be written is kept in a temporary folder: it may have taken hours.

    Raises WhisperfleetError, which names the kept file.
    """
    try:
        write_output(output, content)
    except OSError as error:
        reason = f"{output or 'standard output'} cannot be written: {error.strerror}."
        try:
            kept = Path(tempfile.mkdtemp(prefix="whisperfleet-")) / (output.name if output else "transcript")
            write_output(kept, content)
        except OSError:
            raise WhisperfleetError(reason) from None
        raise WhisperfleetError(f"{reason} It is kept as {kept}.") from None


async def _transcribe_all(targets: Sequence[Target], transcriber: Transcriber, at_once: int) -> int:
    """Transcribe several files at once. If one fails, the others continue. Returns the exit code."""
    limit = asyncio.Semaphore(at_once)
    with Board([file for file, _ in targets]) as board:

        async def one(target: Target) -> None:
            async with limit:
                bar = board.begin(target[0])
                try:
                    content = await transcriber(target, bar)
                    await asyncio.to_thread(_write, target[1], content)
                except (WhisperfleetError, OSError) as error:
                    bar.fail(error)
                else:
                    bar.done(target[1])

        async with asyncio.TaskGroup() as group:  # a cancellation waits for all: they delete their jobs
            for target in targets:
                group.create_task(one(target))
    return 1 if board.failed else 0
