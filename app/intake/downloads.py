"""Downloads URLs to disk. Each download runs in its own download worker, which ends with the download.

The server itself never connects. `workers.download.sandbox` says what the worker may do. A new process for
each download keeps one site from affecting the next download.
"""

import asyncio
import hashlib
import math
import os
import shutil
import socket
import stat
import uuid
from pathlib import Path

import structlog

from app.common.concurrency import run_shielded
from app.common.errors import InvalidInput, ProcessCrashed, TooLarge
from app.common.files import is_older
from app.intake.disk import disk_full
from app.intake.uploads import Upload
from app.intake.url_policy import refusing
from app.pool.process import ChildProcess
from workers import runtime
from workers.addresses import Connect, Resolver, check_url
from workers.download import fetch
from workers.messages import NO_SPACE_ERRNOS, FoundRecording, RecordingRefused

PARAM = "url"
PROBE_TIMEOUT_S = 120.0
DOWNLOAD_TIMEOUT_S = 3600.0
MAX_TITLE_CHARS = 150

_FOLDER_SUFFIX = ".download"
_TOO_LARGE = frozenset({"file_too_large", "audio_too_long"})

log = structlog.get_logger(__name__)


async def download(
    url: str,
    folder: Path,
    max_bytes: int,
    max_duration_s: float | None,
    *,
    resolver: Resolver = socket.getaddrinfo,
    connect: Connect = socket.create_connection,
) -> Upload:
    """Download the one recording behind a URL into `folder`.

    `resolver` and `connect` are pickled and sent to the worker.

    Raises InvalidInput (codes url_refused, url_unavailable, url_is_playlist, url_is_live), TooLarge and
    DiskFull. After an error or a cancellation, no file stays on disk.
    """
    with refusing(PARAM):
        check_url(url)
    name = uuid.uuid4().hex
    work = folder / f"{name}{_FOLDER_SUFFIX}"
    child = ChildProcess(runtime.initialise, "")
    try:
        await asyncio.to_thread(work.mkdir, mode=0o700, parents=True)
        await child.start()
        await child.call(
            fetch.prepare, str(work), max_bytes, max_duration_s, resolver, connect, deadline_s=PROBE_TIMEOUT_S
        )
        found = await child.call(fetch.probe, url, deadline_s=PROBE_TIMEOUT_S)
        await child.call(fetch.download, deadline_s=DOWNLOAD_TIMEOUT_S)
        size, sha256 = await run_shielded(
            asyncio.to_thread(_move_into_place, work / fetch.RECORDING, folder / name)
        )
        await run_shielded(_discard(child, work))
    except BaseException as error:
        await run_shielded(_discard(child, work, folder / name))
        translated = _translate_error(error)
        if translated is error:
            raise
        raise translated from error
    return Upload(folder / name, _filename(found), size, sha256)


def clean(folder: Path, before: float = math.inf) -> None:
    """Remove the partial downloads, begun `before` a Unix time (s), of a process that was killed."""
    for path in folder.glob(f"*{_FOLDER_SUFFIX}"):
        if is_older(path, before):
            shutil.rmtree(path, ignore_errors=True)


def _move_into_place(source: Path, target: Path) -> tuple[int, str]:
    """Move the recording to `target`. Returns its size in bytes and its SHA-256."""
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            raise InvalidInput("The recording behind the URL is empty.", param=PARAM, code="url_unavailable")
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    source.chmod(0o600)
    source.rename(target)
    return status.st_size, sha256


async def _discard(child: ChildProcess, *paths: Path) -> None:
    """End the child, then remove its files."""
    await child.close()
    for path in paths:
        if path.is_dir():
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _translate_error(error: BaseException) -> BaseException:
    """The service's own error for a failed download, or `error` itself if the failure is internal."""
    if isinstance(error, RecordingRefused):
        kind = TooLarge if error.code in _TOO_LARGE else InvalidInput
        return kind(error.message, param=PARAM, code=error.code)
    if isinstance(error, ModuleNotFoundError):
        return InvalidInput(
            "This service cannot download URLs, because yt-dlp is missing. Its operator can install it with "
            "`pip install yt-dlp`.",
            param=PARAM,
            code="url_unavailable",
        )
    if isinstance(error, ProcessCrashed):
        log.warning("download failed", error=error.message)
        return InvalidInput(
            "The recording could not be downloaded: the site is too slow, or its data cannot be handled.",
            param=PARAM,
            code="url_unavailable",
        )
    if isinstance(error, OSError) and error.errno in NO_SPACE_ERRNOS:
        return disk_full()
    return error


def _filename(found: FoundRecording) -> str:
    """A name for display; never used as a path."""
    title = "".join(char if char not in "/\\" else "_" for char in found.title if char.isprintable())
    extension = found.extension if found.extension.isalnum() and len(found.extension) < 10 else ""
    return ".".join(part for part in (title.strip()[:MAX_TITLE_CHARS], extension) if part)
