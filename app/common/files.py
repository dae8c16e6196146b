"""Files: names of recordings, locks, whole writes, and renaming."""

import ctypes
import errno
import fcntl
import os
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import BinaryIO

NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})  # without hard links
# Of `renameat2`, see its manual page.
_AT_FDCWD = -100
_NOREPLACE = 1
_EXCHANGE = 2
_AUDIO = (
    ".3ga .aac .ac3 .aif .aifc .aiff .amr .ape .au .caf .dts .eac3 .flac .gsm .m4a .m4b .mka .mp2 .mp3 .mpc "
    ".oga .ogg .opus .ra .spx .tak .tta .voc .w64 .wav .weba .wma .wv"
)
_VIDEO = (
    ".3g2 .3gp .asf .avi .divx .dv .f4v .flv .m2ts .m2v .m4v .mkv .mov .mp4 .mpeg .mpg .mts .mxf .nut .ogm "
    ".ogv .rm .rmvb .ts .vob .webm .wmv .wtv"
)
MAX_STEM_BYTES = 200  # in UTF-8; most file systems allow 255 for a name
# What Windows or Linux forbids in names, control characters, and those that change the order of letters.
_UNSAFE = re.compile(
    '[<>:"/\\\\|?*\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]'
)
# Of Windows, with any extension: https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|clock\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\..*)?", re.IGNORECASE
)
SUFFIXES = frozenset((*_AUDIO.split(), *_VIDEO.split()))


def entries_of(path: Path) -> list[str]:
    """The lines of a text file, without empty ones and those that begin with `#`.

    Raises OSError, and ValueError if it is not UTF-8.
    """
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def is_recording(path: PurePath) -> bool:
    """Whether a file in a folder is taken for a recording. Hidden files are not."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def safe_stem(filename: str, fallback: str) -> str:
    """The name of a file without folders and extension, by `safe_name`; `fallback`: if none is left."""
    return safe_name(PurePath(filename).stem) or safe_name(fallback)


def titled_stem(title: str | None, filename: str, fallback: str) -> str:
    """The name of files about a recording, by its title if it has one; see `safe_name` and `safe_stem`."""
    return safe_name(title or "") or safe_stem(filename, fallback)


def folded_name(name: str) -> str:
    """Equal for names of files that are one on some system."""
    return unicodedata.normalize("NFC", name).casefold()


def safe_name(text: str) -> str:
    """A name for a file on every system: with `_` in place of what is unsafe; may be empty."""
    name = _UNSAFE.sub("_", text).encode()[:MAX_STEM_BYTES].decode(errors="ignore").strip(" .")
    return f"_{name}" if _DEVICE.fullmatch(name) else name


def try_lock(path: Path, *, shared: bool = False) -> BinaryIO | None:
    """Lock the file at `path`, creating it if needed. Closing the returned file releases the lock.

    One process at a time can hold it, or any number that all share it. The kernel releases it when a process
    ends. Returns None if another process holds the lock. Raises OSError if the file cannot be created.
    """
    lock = path.open("ab+")  # NFS shares locks of files that can be read
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def write_whole(target: Path, content: bytes, part: Path, model: os.stat_result | None) -> None:
    """Write a file all of it or not at all: as `part` first, which is in the same folder.

    It gets the permissions of `model` as in `write_part`. Raises OSError; no other file is left then.
    """
    write_part(part, content, model)
    try:
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def write_part(part: Path, content: bytes, model: os.stat_result | None) -> None:
    """Write a file that gets another name later, in place of one that a killed process left.

    It gets the permissions of `model` and, where this process may set it, its owner. Raises OSError; no file
    is left then.
    """
    part.unlink(missing_ok=True)
    try:
        with part.open("xb") as file:
            file.write(content)
            if model is not None:
                with suppress(OSError):  # a file system without owners, or of somebody else
                    os.fchown(file.fileno(), model.st_uid, model.st_gid)
                with suppress(OSError):
                    os.fchmod(file.fileno(), model.st_mode & 0o666 | 0o600)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def rename_new(source: Path, target: Path) -> None:
    """Rename a file, but never over another one. Raises FileExistsError if there is one, and OSError.

    On a file system that has neither hard links nor such a rename, an empty file holds the name for a moment.
    """
    if _renameat2(source, target, _NOREPLACE):
        return
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        source.replace(target)
    else:
        source.unlink()


def exchange(one: Path, other: Path) -> bool:
    """Swap the names of two files in one step. Returns False if the system cannot. Raises OSError."""
    return _renameat2(one, other, _EXCHANGE)


def _renameat2(source: Path, target: Path, flag: int) -> bool:
    """Rename a file by Linux's call. Returns False if system or file system lack that. Raises OSError."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in NO_LINKS or number == errno.EINVAL:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(target))


def is_older(path: Path, before: float) -> bool:
    """Whether there is a file or a folder, last written before a Unix time (s)."""
    try:
        return path.stat().st_mtime < before
    except FileNotFoundError:
        return False


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files, those that are there. Raises OSError."""
    for path in paths:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder. Blocks. Raises OSError."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
