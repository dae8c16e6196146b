"""`whisperfleet transcribe`"""

import asyncio
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from app.commands.arguments import (
    STANDARD_STREAM,
    Target,
    check_options,
    choose_format,
    plan_targets,
    write_output,
)
from app.engines.plan import check_compute_type, make_plan
from app.errors import InvalidInput, InvalidSetting, UnsuitableFormat, WhisperfleetError
from app.logs import configure_logs
from app.media.uploads import Upload
from app.options import Options
from app.settings import load_settings
from app.transcript.rendering import render_transcript, with_word_times
from app.transcript.timeline import Transcript
from app.transcription.pipeline import Observer
from app.transcription.pipeline import Progress as PipelineProgress
from app.transcription.service import TranscriptionService

FILES_AT_ONCE = 4  # keeps the workers busy between the end of one file and the start of the next
SERVER_FORMATS = {"srt": "srt", "vtt": "vtt", "txt": "verbose_json", "json": "verbose_json"}

# Transcribes a recording into the content of its file and reports its progress: (done, total) in any unit.
Transcriber = Callable[[Target, Callable[[float, float | None], None]], Awaitable[bytes]]


class BarObserver(Observer):
    """Reports the progress of a file to its progress bar."""

    def __init__(self, report: Callable[[float, float | None], None]) -> None:
        self._report = report

    def progressed(self, progress: PipelineProgress) -> None:
        self._report(progress.done_s, progress.total_s)


def run_transcribe(
    files: Sequence[Path],
    output: str | None,
    file_format: str | None,
    options: dict[str, object],
    model: str | None,
    server: str | None,
    api_key: str | None,
) -> int:
    """Transcribe files here or on a server. Returns the exit code: 1 if a file failed, 2 for wrong usage."""
    try:
        chosen = choose_format(output, file_format)
        if STANDARD_STREAM in files:
            raise InvalidInput("a recording cannot come from standard input: name its file")
        targets = plan_targets(files, output, chosen)
        checked = with_word_times(check_options(options), chosen)
        if server is None:
            return asyncio.run(_cancel_on_sigterm(_transcribe_here(targets, checked, chosen, model)))
        return asyncio.run(
            _cancel_on_sigterm(_transcribe_there(targets, checked, chosen, model, server, api_key))
        )
    except (InvalidInput, InvalidSetting) as error:
        print(f"whisperfleet: {error.message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except asyncio.CancelledError:
        return 143


async def _cancel_on_sigterm(work: Coroutine[Any, Any, int]) -> int:
    """Run `work`. SIGTERM cancels it, which ends its processes and removes its files."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


async def _transcribe_here(
    targets: Sequence[Target], options: Options, chosen: str, model: str | None
) -> int:
    with tempfile.TemporaryDirectory(prefix="whisperfleet-") as folder:
        overrides = {"model": model} if model else {}
        settings = load_settings(log_level="warning", **overrides)
        plan = make_plan(settings)  # CUDA's compiled code stays in the usual data folder
        settings = settings.model_copy(update={"data_dir": Path(folder)})
        check_compute_type(plan)
        configure_logs(settings)
        service = TranscriptionService(settings, plan)

        async def transcriber(target: Target, report: Callable[[float, float | None], None]) -> bytes:
            default = service.catalogue.resolve("")
            upload = _upload(target[0])
            transcript = await service.transcribe(upload, options, default, BarObserver(report))
            return await asyncio.to_thread(_render, transcript, options, chosen, target)

        try:
            await service.start()
            return await _transcribe_all(targets, transcriber)
        finally:
            await service.stop()


def _render(transcript: Transcript, options: Options, chosen: str, target: Target) -> bytes:
    """The content of the target's file. If its format cannot hold the transcript, that is stored as JSON.

    Raises `UnsuitableFormat`, which names the JSON file, and OSError.
    """
    try:
        return render_transcript(transcript, options, chosen)
    except UnsuitableFormat as error:
        recording, output = target
        stored = _store_new(output or Path(recording.name), render_transcript(transcript, options, "json"))
        raise UnsuitableFormat(f"{error.message} The transcript is stored in {stored}.") from None


def _store_new(beside: Path, content: bytes) -> Path:
    """A new file with the content, named like `beside`, with the suffix .json, and a number if need be."""
    for number in count():
        path = beside.with_name(f"{beside.stem}{f'.{number}' if number else ''}.json")
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            continue
        return path
    raise AssertionError("count() does not end")


def _upload(file: Path) -> Upload:
    return Upload(file.resolve(), file.name, file.stat().st_size, sha256="")


async def _transcribe_there(
    targets: Sequence[Target],
    options: Options,
    chosen: str,
    model: str | None,
    server: str,
    api_key: str | None,
) -> int:
    if chosen not in SERVER_FORMATS:
        raise InvalidInput(
            f"--format {chosen} is not available with --server. Choose one of {', '.join(SERVER_FORMATS)}"
        )
    given = options.model_dump(exclude_unset=True, exclude={"word_timestamps"})
    fields = {name: str(value) for name, value in given.items() if value is not None}
    fields |= {"model": model or "whisper-1", "response_format": SERVER_FORMATS[chosen]}
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    async with httpx.AsyncClient(
        base_url=server, headers=headers, timeout=httpx.Timeout(30, read=None)
    ) as client:

        async def transcriber(target: Target, report: Callable[[float, float | None], None]) -> bytes:
            file = target[0]
            path = f"/v1/audio/{'translations' if options.task == 'translate' else 'transcriptions'}"
            with file.open("rb") as content:
                try:
                    answer = await client.post(path, data=fields, files={"file": (file.name, content)})
                except httpx.HTTPError as error:
                    raise WhisperfleetError(f"{server} cannot be reached: {error}") from None
            if answer.is_error:
                raise WhisperfleetError(_message(answer))
            report(1, 1)
            return answer.content if chosen != "txt" else _lines(answer).encode()

        return await _transcribe_all(targets, transcriber)


def _lines(answer: httpx.Response) -> str:
    """Plain text with one line for each segment; OpenAI's API returns a single line."""
    return "".join(f"{segment['text'].strip()}\n" for segment in answer.json()["segments"])


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {answer.status_code}"


async def _transcribe_all(targets: Sequence[Target], transcriber: Transcriber) -> int:
    """Transcribe several files at once. If one fails, the others continue. Returns the exit code."""
    limit = asyncio.Semaphore(FILES_AT_ONCE)
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:

        async def one(file: Path, target: Path | None) -> bool:
            async with limit:
                bar = bars.add_task(file.name, total=None, state="")
                try:
                    content = await transcriber((file, target), _reporter(bars, bar))
                    await asyncio.to_thread(write_output, target, content)
                except (WhisperfleetError, OSError) as error:
                    bars.update(bar, total=1, completed=0, state="failed")
                    # Not wrapped: scripts may search for a phrase.
                    console.print(
                        f"{file}: {error}", style="red", markup=False, highlight=False, soft_wrap=True
                    )
                    return False
                bars.update(bar, total=1, completed=1, state="done")
                return True

        done = await asyncio.gather(*(one(file, target) for file, target in targets))
    return 0 if all(done) else 1


def _reporter(bars: Progress, bar: TaskID) -> Callable[[float, float | None], None]:
    def report(done: float, total: float | None) -> None:
        bars.update(
            bar,
            completed=done,
            total=total,
            state=f"{done:.0f} s" if total is None else f"{done / total:.0%}",
        )

    return report
