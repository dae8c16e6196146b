"""Downloads a model from Hugging Face into its cache. What was cut goes on where it stopped.

huggingface_hub keeps no part of a file that was cut. So the one large file of a model is downloaded here, as
a blob of the cache, and huggingface_hub does the rest: it finds the blob, and lists and links all files.
"""

import errno
import fcntl
import hashlib
import io
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from app.common.errors import ModelUnavailable

FILES = [
    "config.json",
    "preprocessor_config.json",
    "generation_config.json",
    "model.bin",
    "tokenizer.json",
    "vocabulary.*",
]
WEIGHTS = "model.bin"  # the file with nearly all of a model's bytes
CONNECT_TIMEOUT_S = 10.0
_ATTEMPTS = 5  # in a row that bring no byte
_PAUSE_S = 1.0
_STALL_S = 30.0  # a connection that brings nothing for so long is opened again
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_NETWORK = (
    "Connect to the network, or copy the model here and set WHISPER_MODEL to its folder, or try the service "
    "with WHISPER_MODEL=demo."
)

# Takes the bytes of model.bin that are here, and their number in all.
Report = Callable[[int, int], None]


def cache_folder() -> Path:
    """Hugging Face's cache: the variables HF_HUB_CACHE and HF_HOME name it."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def repository_folder(repository: str) -> Path:
    """Where the cache has the files of a repository, whether it is there or not."""
    return cache_folder() / f"models--{repository.replace('/', '--')}"


def cached_folder(repository: str) -> Path | None:
    """The folder with the files of a repository; None unless all of them are in the cache."""
    path = cached_snapshot(repository, FILES)
    return path if path is not None and (path / WEIGHTS).is_file() else None


def cached_snapshot(repository: str, patterns: list[str] | None = None) -> Path | None:
    """The folder with the files of a repository that are in the cache; None if some of `patterns` are not."""
    if not repository_folder(repository).is_dir():
        return None
    from huggingface_hub import snapshot_download  # takes a tenth of a second

    try:
        return Path(snapshot_download(repository, local_files_only=True, allow_patterns=patterns))
    except (OSError, ValueError):  # huggingface_hub raises these for missing files
        return None


def download(name: str, repository: str, report: Report | None = None) -> Path:
    """Download the model `name` from its repository, and return its folder. Blocks until it is here.

    Without `report`, the log shows the progress. Raises ModelUnavailable, whose message says what to do.
    Without a connection that takes `CONNECT_TIMEOUT_S` at most.
    """
    with connection(name, repository, _NETWORK):
        return _download(name, repository, report or _log_progress(name))


@contextmanager
def connection(name: str, repository: str, remedy: str) -> Iterator[None]:
    """Check the connection to Hugging Face, then download files of a model's repository in the block.

    Raises ModelUnavailable, also for what the block raises. `remedy` is the one if the network is at fault.
    """
    import httpx
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise _unavailable(name, "HF_HUB_OFFLINE is set", remedy)
    try:
        # Check the connection first: the download itself would retry for a long time.
        httpx.head(constants.ENDPOINT, timeout=CONNECT_TIMEOUT_S)
    except httpx.HTTPError as error:
        raise _unavailable(name, f"{constants.ENDPOINT} cannot be reached: {error}", remedy) from None
    try:
        with _no_bars():
            yield
    except ModelUnavailable:
        raise
    except Exception as error:  # three libraries raise a dozen kinds
        raise _explained(name, repository, error, remedy) from error


def _download(name: str, repository: str, report: Report) -> Path:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, snapshot_download

    files = _sizes(repository)
    if WEIGHTS not in files:
        raise _unavailable(
            name,
            f"{repository} has no {WEIGHTS}",
            "It is not in CTranslate2 format: convert it with ct2-transformers-converter and set "
            "WHISPER_MODEL to the folder, or name another model.",
        )
    # The large file comes last: if it is there, all others are.
    others = [pattern for pattern in FILES if pattern != WEIGHTS]
    snapshot_download(repository, allow_patterns=others)
    url = hf_hub_url(repository, WEIGHTS)
    metadata = get_hf_file_metadata(url)
    if metadata.etag and metadata.size:
        blob = repository_folder(repository) / "blobs" / metadata.etag
        blob.parent.mkdir(parents=True, exist_ok=True)
        if not blob.exists():
            _download_blob(name, url, blob, metadata.size, report)
    return Path(snapshot_download(repository, allow_patterns=FILES))


def _sizes(repository: str) -> dict[str, int]:
    """The files of a repository on Hugging Face, and their sizes in bytes."""
    from huggingface_hub import HfApi

    siblings = HfApi().model_info(repository, files_metadata=True).siblings or []
    return {file.rfilename: file.size or 0 for file in siblings}


def _download_blob(name: str, url: str, blob: Path, size: int, report: Report) -> None:
    part = blob.with_name(f"{blob.name}.incomplete")
    with part.open("ab") as lock:
        with suppress(OSError):  # some file systems have no locks: the checksum finds mixed parts
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be downloading it: wait for that
        if blob.exists():
            return
        if part.stat().st_size > size:
            os.truncate(part, 0)
        _check_space(name, part, size)
        _fetch(url, part, size, report)
        if _SHA256.fullmatch(blob.name) and _sha256(part) != blob.name:
            part.unlink()
            raise _unavailable(name, f"{WEIGHTS} arrived damaged", "It was deleted: download it again.")
        part.rename(blob)


def _check_space(name: str, part: Path, size: int) -> None:
    """Raise ModelUnavailable if the disk cannot hold what is missing."""
    missing = size - part.stat().st_size
    free = shutil.disk_usage(part.parent).free
    if free < missing:
        raise _disk_full(name, f"it needs {missing / 1e6:,.0f} MB more, and {free / 1e6:,.0f} MB are free")


def _fetch(url: str, part: Path, size: int, report: Report) -> None:
    """Append to `part` what it lacks. A connection that breaks is opened again, unless it brings nothing."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError

    failures = 0
    while (start := part.stat().st_size) < size:
        with _ReportingFile(part, size, report) as file:
            try:
                _receive(url, file, start)
            except (httpx2.TransportError, HfHubHTTPError) as error:
                if isinstance(error, HfHubHTTPError) and error.response.status_code not in _TRANSIENT:
                    raise
                fault: Exception = error
            else:
                fault = OSError(f"{url.partition('?')[0]} ends before byte {size}")
            if file.tell() < size:
                # An answer without the range may bring less than there was.
                failures = failures + 1 if file.tell() <= start else 0
                if failures == _ATTEMPTS:
                    raise fault
                time.sleep(_PAUSE_S)


def _receive(url: str, file: io.FileIO, start: int) -> None:
    """Write a file from its byte `start` on, as it arrives."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

    headers = build_hf_headers() | {"Range": f"bytes={start}-", "Accept-Encoding": "identity"}
    with get_session().stream("GET", url, headers=headers, timeout=_STALL_S) as response:
        hf_raise_for_status(response)
        if response.status_code != 206:  # a proxy has dropped the range
            file.truncate(0)
            start = 0
        file.seek(start)
        for chunk in response.iter_raw():
            file.write(chunk)


class _ReportingFile(io.FileIO):
    """A file that reports how much of it is there. Unbuffered: whatever was written stays after a kill."""

    def __init__(self, path: Path, size: int, report: Report) -> None:
        super().__init__(path, "r+")
        self._size = size
        self._report = report

    def write(self, data: Any) -> int:
        view = memoryview(data)
        while view:  # a nearly full disk takes a part
            view = view[super().write(view) :]
        self._report(self.tell(), self._size)
        return len(data)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _log_progress(name: str) -> Report:
    """Logs each tenth of a download."""
    import structlog  # here: a shell waits for the names of models to complete them

    log = structlog.get_logger(__name__)
    shown = -1

    def report(done: int, size: int) -> None:
        nonlocal shown
        tenth = 10 * done // size
        if tenth > shown:
            shown = tenth
            log.info("downloading a model", model=name, percent=10 * tenth, megabytes=round(size / 1e6))

    return report


@contextmanager
def _no_bars() -> Iterator[None]:
    """Without huggingface_hub's progress bars, which know nothing of the large file."""
    from huggingface_hub.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _explained(name: str, repository: str, error: Exception, remedy: str = _NETWORK) -> ModelUnavailable:
    """The error for the user: the cause in one line, and the remedy for it."""
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    page = f"{constants.ENDPOINT}/{repository}"
    cause = (str(error).splitlines() or [repr(error)])[0]
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
    if isinstance(error, GatedRepoError) or status == 403:
        return _unavailable(
            name,
            f"{repository} needs a login ({status or 403})",
            f"Accept its terms at {page}, and set HF_TOKEN to a token of that account.",
        )
    if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
        return _unavailable(
            name,
            f"there is no model {repository} at {constants.ENDPOINT}, or it needs a login ({status or 404})",
            "Check the name; if the model is private, set HF_TOKEN.",
        )
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return _disk_full(name, os.strerror(error.errno))
    if isinstance(error, OSError) and error.errno in _READ_ONLY:
        return _unavailable(
            name,
            f"{error.filename or cache_folder()}: {error.strerror}",
            "Let this user write to the cache, or set HF_HOME to a folder that it can write to.",
        )
    return _unavailable(name, cause, remedy)


def _disk_full(name: str, reason: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The model {name!r} does not fit on the disk of {cache_folder()}: {reason}. Free space, or set "
        "HF_HOME to a folder on a larger disk. What is here already is not downloaded again."
    )


def _unavailable(name: str, reason: str, remedy: str = _NETWORK) -> ModelUnavailable:
    return ModelUnavailable(
        f"The model {name!r} is not on this machine and cannot be downloaded ({reason}). {remedy}"
    )
