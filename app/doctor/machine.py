"""The machine and how whisperfleet is installed and set up on it. No child is started for this."""

import difflib
import errno
import fcntl
import multiprocessing
import os
import platform
import shutil
import socket
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from app.doctor.finding import Finding, fail, failed_with, ok, warn
from app.settings import Settings

PACKAGES = ("ctranslate2", "faster-whisper", "silero-vad", "torch", "onnxruntime", "av")
EXTRA_PACKAGES = ("nvidia-cublas-cu12",)
_PREFIX = "WHISPER_"
_SECRET = {"api_keys", "webhook_secret", "database_url"}
_OF_OTHERS = {"WHISPER_API_KEY"}  # `whisperfleet transcribe --server` reads it


def settings_read(settings: Settings, environ: Mapping[str, str]) -> Finding:
    """Which settings are set, from the environment or `.env`; and names that look like one but are none."""
    named = [
        f"{_PREFIX}{name.upper()}={'***' if name in _SECRET else _shown(getattr(settings, name))}"
        for name in sorted(settings.model_fields_set)
    ]
    found = ", ".join(named) or "all at their defaults"
    known = {f"{_PREFIX}{name.upper()}" for name in type(settings).model_fields} | _OF_OTHERS
    unknown = sorted(
        name for name in environ if name.upper().startswith(_PREFIX) and name.upper() not in known
    )
    if unknown:
        return warn("settings", found, " ".join(_unknown(name, known) for name in unknown))
    return ok("settings", found)


def data_folder(settings: Settings) -> Finding:
    """Whether the data folder can be used, how much room there is, and whether another one uses it."""
    title, folder = "data folder", settings.data_dir
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        return fail(title, f"{existing} is a file", "Set WHISPER_DATA_DIR to a folder.")
    if not os.access(existing, os.W_OK | os.X_OK):
        return fail(
            title,
            f"{existing} cannot be written by {_user()}",
            "Set WHISPER_DATA_DIR to a folder of the service's own user.",
        )
    free = shutil.disk_usage(existing).free
    found = f"{folder}{'' if existing == folder else ' (to be made)'}, {gigabytes(free)} free"
    if _is_locked(folder / "lock"):
        return warn(
            title,
            f"{found}; another whisperfleet uses this folder",
            "Two cannot share it; the checks below use a folder of their own.",
            "data-folder-in-use",
        )
    if free < settings.max_upload_mb * 10**6:
        cure = f"One upload may take {settings.max_upload_mb} MB (WHISPER_MAX_UPLOAD_MB): make room."
        return warn(title, found, cure, "507-disk-full")
    return ok(title, found)


def port(settings: Settings) -> Finding:
    """Whether the service could listen where it is told to."""
    title, address = "address", f"{settings.host} port {settings.port}"
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            cure = "Another whisperfleet? `ss -ltnp` names the program; or set WHISPER_PORT."
            return warn(title, f"{address} is in use", cure, "port-in-use")
        cure = "Set WHISPER_HOST to an address of this machine, and WHISPER_PORT to one above 1023."
        return fail(title, f"{address}: {error.strerror or error}", cure)
    return ok(title, f"{address} is free" if settings.port else f"{settings.host}, any free port")


def python_version() -> Finding:
    """The interpreter and the system that it runs on."""
    found = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    return ok("python", found)


def packages() -> Finding:
    """The versions of what does the work. Nothing is imported."""
    versions = {name: _version(name) for name in (*PACKAGES, *EXTRA_PACKAGES)}
    missing = [name for name in PACKAGES if versions[name] is None]
    found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    if missing:
        cure = "Install whisperfleet again: `make clean`, then `make run`."
        return fail("packages", f"missing: {', '.join(missing)}; found: {found or 'none'}", cure)
    return ok("packages", found)


def global_start_method() -> str | None:
    """The start method that somebody set for this whole process; None if nobody did.

    To be asked before the first child: multiprocessing settles on its default then.
    """
    return multiprocessing.get_start_method(allow_none=True)


def start_method(of_child: str | BaseException, set_globally: str | None) -> Finding:
    """Whether children are spawned. `of_child` is what one of them says, or why it does not."""
    title = "start method"
    if isinstance(of_child, BaseException):
        return failed_with(title, of_child)
    if of_child != "spawn":
        return fail(title, f"children come by {of_child}", "CUDA needs spawn.", "forked-subprocess")
    if set_globally == "fork":
        cure = "whisperfleet is not harmed, but look for `set_start_method` in what is loaded with it."
        return warn(title, "spawn; somebody set fork for the whole process", cure, "forked-subprocess")
    return ok(title, "children are spawned")


def gigabytes(size: int) -> str:
    """A number of bytes in a unit that suits it; powers of 10."""
    return f"{size / 10**9:.1f} GB" if size >= 10**9 else f"{size / 10**6:.0f} MB"


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _unknown(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name.upper(), known, n=1)
    return f"{name} is no setting{f'; is {close[0]} meant?' if close else '.'}"


def _user() -> str:
    return f"user {os.getuid()}" if hasattr(os, "getuid") else "this user"


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as lock:
            # A shared lock, for a moment, and on a file that is there already: this leaves no trace.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
