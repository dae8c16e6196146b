"""Checks of the machine, the installation and the settings. They start no child processes."""

import fcntl
import multiprocessing
import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from app.commands.doctor.finding import Finding, fail, fail_setting, fail_with, ok, warn
from app.common.errors import InvalidSetting
from app.engines.cluster.node_checks import installed_version
from app.server.listening import key_warnings, max_connections, service_faults, wanted_connections
from app.settings import PREFIX, SECRET_SETTINGS, Settings, key_ring, unknown_variables

PACKAGES = ("ctranslate2", "faster-whisper", "silero-vad", "torch", "onnxruntime", "av")
EXTRA_PACKAGES = ("nvidia-cublas-cu12",)


def check_settings(settings: Settings, environ: Mapping[str, str]) -> Finding:
    """Lists the settings that are set, and warns of unknown variables with their prefix."""
    named = [
        f"{PREFIX}{name.upper()}={'***' if name in SECRET_SETTINGS else _format(getattr(settings, name))}"
        for name in sorted(settings.model_fields_set)
    ]
    found = ", ".join(named) or "all at their defaults"
    if unknown := unknown_variables(environ):
        return warn("settings", found, " ".join(unknown))
    return ok("settings", found)


def check_data_dir(settings: Settings) -> Finding:
    """Whether the data folder is writable, large enough, and not in use by another service."""
    title, folder = "data folder", settings.data_dir
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        return fail(title, f"{existing} is a file", "Set WHISPER_DATA_DIR to a folder.")
    if not os.access(existing, os.W_OK | os.X_OK):
        return fail(
            title,
            f"{existing} cannot be written by user {os.getuid()}",
            "Set WHISPER_DATA_DIR to a folder that this user can write to.",
        )
    free = shutil.disk_usage(existing).free
    found = f"{folder}{'' if existing == folder else ' (to be created)'}, {gigabytes(free)} free"
    if _is_locked(folder / "lock"):
        return warn(
            title,
            f"{found}; another whisperfleet uses this folder",
            "Two services cannot use one folder. The checks below use a temporary one.",
            "data-folder-in-use",
        )
    if free < settings.max_upload_mb * 10**6:
        remedy = f"One upload can take {settings.max_upload_mb} MB (WHISPER_MAX_UPLOAD_MB): free some space."
        return warn(title, found, remedy, "507-disk-full")
    return ok(title, found)


def check_port(settings: Settings) -> Finding:
    """Whether the service can listen on its addresses."""
    title, host, port = "address", settings.host, settings.port
    fault = next(service_faults(settings), None)
    if fault is None:
        return ok(title, f"{host} port {port} is free" if port else f"{host}, any free port")
    if fault.in_use:
        return warn(title, fault.message, fault.remedy)
    return fail(title, fault.message, fault.remedy)


def check_connections(settings: Settings) -> Finding:
    """Whether the service may open as many files as its connections need."""
    title, possible, wanted = "connections", max_connections(settings), wanted_connections(settings)
    if possible < wanted:
        remedy = "Raise the hard limit of open files (`ulimit -Hn`)."
        found = f"at most {possible} instead of {wanted}: too few open files are allowed"
        return warn(title, found, remedy, "connections-in-use")
    return ok(title, f"at most {possible}")


def check_keys(settings: Settings) -> Finding:
    """Who has keys. Several ones without names are most likely those of people who see each other's jobs."""
    title = "keys"
    try:
        keys = key_ring(settings)
    except InvalidSetting as error:
        return fail_setting(title, error)
    warnings = key_warnings(settings, keys)
    named = len(set(keys.named().values()))
    unnamed = len(keys.owners()) - named
    found = f"{unnamed} without a name, {named} with names"
    if not settings.needs_key:
        found = "none: whoever reaches the service sees all jobs"
    if unnamed > 1:
        warnings.append(
            "Each key without a name sees the jobs of all. Give each person or program a name (NAME:KEY): it "
            "keeps its jobs, and sees those alone. docs/security.md#owners has more."
        )
    return warn(title, found, " ".join(warnings)) if warnings else ok(title, found)


def check_python() -> Finding:
    """The interpreter and the operating system."""
    found = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    return ok("python", found)


def check_packages() -> Finding:
    """The versions of the main libraries, without importing them."""
    versions = {name: installed_version(name) for name in (*PACKAGES, *EXTRA_PACKAGES)}
    missing = [name for name in PACKAGES if versions[name] is None]
    found = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    if missing:
        remedy = "Install whisperfleet again: `make clean`, then `make run`."
        return fail("packages", f"missing: {', '.join(missing)}; found: {found or 'none'}", remedy)
    return ok("packages", found)


def global_start_method() -> str | None:
    """The start method that was set for this process globally; None if there is none.

    Call this before the first child starts: multiprocessing then sets its default.
    """
    return multiprocessing.get_start_method(allow_none=True)


def check_start_method(of_child: str | BaseException, set_globally: str | None) -> Finding:
    """Whether children are spawned. `of_child` is a child's start method, or the error of asking for it."""
    title = "start method"
    if isinstance(of_child, BaseException):
        return fail_with(title, of_child)
    if of_child != "spawn":
        return fail(title, f"children start by {of_child}", "CUDA needs spawn.", "forked-subprocess")
    if set_globally == "fork":
        remedy = (
            "whisperfleet works with that, but look for `set_start_method` in code that is loaded with it."
        )
        return warn(title, "spawn; other code set fork globally", remedy, "forked-subprocess")
    return ok(title, "children are spawned")


def gigabytes(size: int) -> str:
    """A number of bytes in GB or MB (powers of 10)."""
    return f"{size / 10**9:.1f} GB" if size >= 10**9 else f"{size / 10**6:.0f} MB"


def _format(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as lock:
            # A shared lock on an existing file, released at once: this changes nothing.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
