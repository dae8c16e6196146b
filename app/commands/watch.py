"""`whisperfleet watch`"""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from app.client.jobs import JobClient
from app.client.service import WATCH, connect
from app.commands.arguments import check_options, choose_format
from app.commands.ending import command, run_until
from app.common.errors import InvalidInput, InvalidSetting
from app.common.languages import language_code
from app.settings import Settings, load_settings
from app.watch.folder_locks import lock_folders
from app.watch.report import Report, shown
from app.watch.rules import Rules
from app.watch.state import State
from app.watch.watcher import Watcher

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MIN_SETTLE_S = 0.1
MIN_POLL_S = 1.0
_NO_LIMIT_MB = 10**9  # of recordings that are on this machine already


@command(errors=(OSError,))  # such as a full disk
def run_watch(
    folders: Sequence[Path],
    file_format: str | None,
    options: dict[str, object],
    model: str | None,
    server: str | None,
    api_key: str | None,
    *,
    skip_existing: bool,
    only_languages: Sequence[str],
    include: Sequence[str],
    exclude: Sequence[str],
    min_duration_s: float,
    settle_s: float,
    poll_s: float | None,
) -> int:
    """Watch folders until a signal ends it.

    Returns the exit code: 2 for wrong usage, 1 if its files or its service cannot be used.
    """
    rules = Rules(
        options=check_options(options),
        model=(model or "") if server else "",  # else it is the one of the service in this process
        file_format=choose_format(None, file_format),
        skip_existing=skip_existing,
        only_languages=tuple(_language(name) for name in only_languages),
        include=tuple(include),
        exclude=tuple(exclude),
        min_duration_s=min_duration_s,
    )
    _check(rules, settle_s, poll_s)
    roots = _roots(folders)
    settings = load_settings(log_level="warning", **({"model": model} if model else {}))
    folder = _state_dir(settings)

    async def watch() -> None:
        report = Report()
        async with connect(server, api_key, WATCH) if server else _local(settings) as http:
            client = JobClient(http, WATCH, "" if server else "the service", report.say)
            await client.check()
            watcher = Watcher(
                roots, rules, state, client, report, sound_dir=own_path, settle_s=settle_s, poll_s=poll_s
            )
            report.say(f"watching {', '.join(map(shown, roots))}")
            await watcher.run()

    with (
        lock_folders(folder, roots) as own_path,
        closing(State(folder / "recordings.db", rules.kind)) as state,
        suppress(asyncio.CancelledError),  # its processes end, and its jobs go on later
    ):
        run_until(watch(), signal.SIGINT, signal.SIGTERM)
    return 0


@asynccontextmanager
async def _local(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The service itself in this process, without a port: jobs survive a kill here as they do there."""
    # Not needed with a server, and importing them takes seconds.
    from app.database.connection import Database
    from app.engines.plan import check_compute_type, make_plan
    from app.main import create_app
    from app.recording.service import TranscriptionService
    from app.telemetry.logs import configure_logs

    no_keys = {"api_keys": (), "api_keys_file": None, "trusted_user_header": None}
    settings = settings.model_copy(update={**no_keys, "max_upload_mb": _NO_LIMIT_MB, "processes": 1})
    plan = make_plan(settings)
    check_compute_type(plan)
    configure_logs(settings)
    service = TranscriptionService(settings, plan)
    try:
        service.media.folder.lock()
    except InvalidSetting as error:
        raise InvalidSetting(
            f"{error.message}. If that is a service, let it do the work: --server http://localhost:8000"
        ) from None
    database = Database(settings.database_url, settings.data_dir)
    await database.open()
    app = create_app(settings, service, database)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(in_own_task(app))
        async with httpx.AsyncClient(base_url="http://localhost", transport=transport) as client:
            yield client


def in_own_task(app: "ASGIApp") -> "ASGIApp":
    """Run each request in a task of its own.

    The application answers a request that is cancelled, as servers want it. In the task of its client, that
    would swallow the cancellation of the client.
    """

    async def run(scope: "Scope", receive: "Receive", send: "Send") -> None:
        request = asyncio.ensure_future(app(scope, receive, send))
        try:
            await asyncio.wait([request])
        except asyncio.CancelledError:
            request.cancel()
            await asyncio.wait([request])
            raise
        request.result()

    return run


def _state_dir(settings: Settings) -> Path:
    folder = settings.data_dir / "watch"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSetting(
            f"WHISPER_DATA_DIR={settings.data_dir} cannot be used: {error.strerror}"
        ) from None
    return folder


def _roots(folders: Sequence[Path]) -> list[Path]:
    """The folders as absolute paths, without those that are below others of them. Raises InvalidInput."""
    for folder in folders:
        if not folder.is_dir():
            raise InvalidInput(f"there is no folder {shown(folder)}")
    real = {folder.resolve(): folder.absolute() for folder in folders}
    return sorted(folder for path, folder in real.items() if real.keys().isdisjoint(path.parents))


def _language(name: str) -> str:
    try:
        return language_code(name) or ""
    except ValueError as error:
        raise InvalidInput(f"--only-language: {error}") from None


def _check(rules: Rules, settle_s: float, poll_s: float | None) -> None:
    """Raises InvalidInput for values that make no sense, alone or together."""
    spoken = rules.options.language
    if spoken and rules.only_languages and spoken not in rules.only_languages:
        raise InvalidInput(
            f"--language {spoken} names the language of all recordings, and --only-language excludes it"
        )
    if settle_s < MIN_SETTLE_S:
        raise InvalidInput(f"--settle must be at least {MIN_SETTLE_S} s")
    if poll_s is not None and poll_s < MIN_POLL_S:
        raise InvalidInput(f"--poll must be at least {MIN_POLL_S:g} s")
    if rules.min_duration_s < 0:
        raise InvalidInput("--min-duration must not be negative")
