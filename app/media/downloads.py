"""URLs to disk: a spawned child visits the site, and is gone with all that it did when the file is there.

The server itself never connects. `workers.download` says what the child may do. Each download gets its own
child, so that nothing that a site does to one reaches the next.
"""

import asyncio
import hashlib
import os
import shutil
import socket
import stat
import uuid
from pathlib import Path

import structlog

from app import url_policy as destinations
from app.disk import raise_if_full
from app.errors import InvalidInput, ProcessCrashed, TooLarge, WhisperfleetError
from app.media.uploads import Upload
from app.scheduling.process import ChildProcess
from app.shielding import run_shielded
from workers import runtime
from workers.addresses import Resolver
from workers.download import fetch
from workers.messages import RecordingRefused

PARAM = "url"
LOOK_TIMEOUT_S = 120.0
TAKE_TIMEOUT_S = 3600.0
MAX_TITLE_CHARS = 150

_FOLDER_SUFFIX = ".download"
_TOO_LARGE = frozenset({"file_too_large", "audio_too_long"})

log = structlog.get_logger(__name__)


def check_url(url: str) -> None:
    """Raise InvalidInput for a URL that will not be visited, as far as its text tells."""
    destinations.check_url(url, PARAM)


async def check_destination(url: str, resolver: Resolver = socket.getaddrinfo) -> None:
    """Raise InvalidInput as `check_url` does, and for a host whose name leads into a private network."""
    await destinations.check_destination(url, PARAM, resolver)


async def download(
    url: str,
    folder: Path,
    max_bytes: int,
    max_duration_s: float | None,
    *,
    resolver: Resolver = socket.getaddrinfo,
    connect: fetch.Connect = socket.create_connection,
) -> Upload:
    """Download the one recording behind a URL into `folder`.

    `resolver` and `connect` are pickled into the child.

    Raises InvalidInput (codes url_refused, url_unavailable, url_is_playlist, url_is_live), TooLarge and
    DiskFull; nothing stays on disk then, nor when this is cancelled.
    """
    check_url(url)
    name = uuid.uuid4().hex
    work = folder / f"{name}{_FOLDER_SUFFIX}"
    child = ChildProcess(runtime.initialise, "")
    try:
        await asyncio.to_thread(work.mkdir, mode=0o700, parents=True)
        await child.start()
        await child.call(
            fetch.prepare, str(work), max_bytes, max_duration_s, resolver, connect, deadline_s=LOOK_TIMEOUT_S
        )
        found = await child.call(fetch.look, url, deadline_s=LOOK_TIMEOUT_S)
        await child.call(fetch.take, deadline_s=TAKE_TIMEOUT_S)
        size, sha256 = await run_shielded(asyncio.to_thread(_keep, work / fetch.RECORDING, folder / name))
        await run_shielded(_discard(child, work))
    except BaseException as error:
        await run_shielded(_discard(child, work, folder / name))
        told = _told(error)
        if told is error:
            raise
        raise told from error
    return Upload(folder / name, _filename(found), size, sha256)


def clean(folder: Path) -> None:
    """Remove what a killed process left behind of downloads that it had begun."""
    for path in folder.glob(f"*{_FOLDER_SUFFIX}"):
        shutil.rmtree(path, ignore_errors=True)


def _keep(source: Path, target: Path) -> tuple[int, str]:
    """Move the recording to its place. Its size and hash."""
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            raise InvalidInput("The recording behind the URL is empty.", param=PARAM, code="url_unavailable")
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    source.chmod(0o600)
    source.rename(target)
    return status.st_size, sha256


async def _discard(child: ChildProcess, *paths: Path) -> None:
    """End the child, and then remove what it wrote."""
    await child.close()
    for path in paths:
        if path.is_dir():
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _told(error: BaseException) -> BaseException:
    """What went wrong, as one of the service's own errors where it is the URL's fault."""
    if isinstance(error, RecordingRefused):
        kind = TooLarge if error.code in _TOO_LARGE else InvalidInput
        return kind(error.message, param=PARAM, code=error.code)
    if isinstance(error, ModuleNotFoundError):
        return InvalidInput(
            "This service cannot download URLs, because yt-dlp is missing. Its operator can install "
            '"whisperfleet[url]".',
            param=PARAM,
            code="url_unavailable",
        )
    if isinstance(error, ProcessCrashed):
        log.warning("download failed", error=error.message)
        return InvalidInput(
            "The recording could not be downloaded: the site is too slow, or sends what cannot be handled.",
            param=PARAM,
            code="url_unavailable",
        )
    if isinstance(error, OSError):
        try:
            raise_if_full(error)
        except WhisperfleetError as full:
            return full
    return error


def _filename(found: fetch.Found) -> str:
    """A name for people to read; never used as a path."""
    title = "".join(char if char not in "/\\" else "_" for char in found.title if char.isprintable())
    extension = found.extension if found.extension.isalnum() and len(found.extension) < 10 else ""
    return ".".join(part for part in (title.strip()[:MAX_TITLE_CHARS], extension) if part)
