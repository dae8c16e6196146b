"""The state of each recording: a SQLite file, so it survives kills and holds any number of them."""

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from app.common.errors import DatabaseUnavailable, InvalidSetting

SUBMITTED = "submitted"  # the service has a job, or is about to get one
DONE = "done"
SKIPPED = "skipped"  # by a rule
FAILED = "failed"

_BUSY_S = 30.0
_AT_ONCE = 500  # paths in a query
_COLUMNS = (
    "kind, path, inode, size, mtime_ns, status, digest, key, job, filename, language, sidecar, sidecar_mark"
)


class Version(NamedTuple):
    """What tells the contents of a file from others. Stays when the file is renamed."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Version":
        # SQLite's integers are signed, and the inodes of some network mounts use all 64 bits.
        inode = status.st_ino if status.st_ino < 1 << 63 else status.st_ino - (1 << 64)
        return cls(inode, status.st_size, status.st_mtime_ns)

    def same_content(self, other: "Version") -> bool:
        """Whether a file at the same path has the same content. Some mounts change the inodes of files."""
        return self[1:] == other[1:]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one recording in one version."""

    path: Path
    version: Version
    status: str
    digest: str  # of the rules
    key: str = ""  # idempotency key of the job
    job: str = ""  # its id; blank once it is deleted
    filename: str = ""  # under which it was submitted: a repetition must be equal
    language: str = ""  # if it was detected
    sidecar: Path | None = None  # written, or while the status is `submitted`, about to be written
    # Of its contents that this program has written, or is about to write: others may change the file.
    sidecar_digests: tuple[str, ...] = ()

    def is_final(self, version: Version, digest: str) -> bool:
        """Whether there is nothing to do for a file at this path with this version, under these rules."""
        return _is_final(self.version, self.status, self.digest, version, digest)

    def without_job(self) -> "Entry":
        """The same, as it is once the job is deleted."""
        return replace(self, job="", key="", filename="")


class State:
    """The recordings of all watched folders, by the kind of subtitles and by path.

    Can be used from several threads. Methods raise DatabaseUnavailable if the file cannot be read or written.
    """

    def __init__(self, path: Path, kind: str) -> None:
        """Raises InvalidSetting if the file cannot be opened."""
        self._kind = kind
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(
                path, timeout=_BUSY_S, check_same_thread=False, isolation_level=None
            )
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(Path(__file__).with_suffix(".sql").read_text("utf-8"))
        except sqlite3.Error as error:
            raise InvalidSetting(
                f"{path} cannot be used: {error}. It holds what was transcribed already; if it is damaged, "
                "remove it, and recordings without subtitles are transcribed again."
            ) from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def get(self, path: Path) -> Entry | None:
        """What is known of the recording at a path."""
        return next(iter(self._select("path = ?", os.fsencode(path))), None)

    def final(self, files: Mapping[str, Version], digest: str) -> set[str]:
        """Those of some files, by path, for which there is nothing to do under the rules of the digest."""
        paths, found = list(files), set()
        for start in range(0, len(paths), _AT_ONCE):  # one for each path would take several times as long
            some = [os.fsencode(path) for path in paths[start : start + _AT_ONCE]]
            with self._cursor() as cursor:
                rows = cursor.execute(
                    "SELECT path, inode, size, mtime_ns, status, digest FROM recordings "
                    f"WHERE kind = ? AND path IN ({', '.join('?' * len(some))})",
                    (self._kind, *some),
                ).fetchall()
            for name, *version, status, its_digest in rows:
                path = os.fsdecode(name)
                if _is_final(Version(*version), status, its_digest, files[path], digest):
                    found.add(path)
        return found

    def with_version(self, version: Version) -> list[Entry]:
        """The recordings with this version, wherever they were seen."""
        return self._select("inode = ? AND size = ? AND mtime_ns = ?", *version)

    def done_with_job(self) -> list[Entry]:
        """The recordings that are done, and whose jobs may not be deleted."""
        return self._select("status = ? AND job <> ''", DONE)

    def put(self, entry: Entry) -> None:
        """Store what is known of a recording, instead of what was known of its path."""
        values = (
            self._kind, os.fsencode(entry.path), *entry.version, entry.status, entry.digest, entry.key,
            entry.job, entry.filename, entry.language, os.fsencode(entry.sidecar or b""),
            " ".join(entry.sidecar_digests),
        )  # fmt: skip
        marks = ", ".join("?" * len(values))
        with self._cursor() as cursor:
            cursor.execute(f"INSERT OR REPLACE INTO recordings ({_COLUMNS}) VALUES ({marks})", values)

    def move(self, entry: Entry, path: Path) -> Entry:
        """Store that a recording was renamed to `path`. Returns what is known of it then."""
        moved = replace(entry, path=path)
        with self._cursor() as cursor:
            cursor.execute(
                "UPDATE OR REPLACE recordings SET path = ? WHERE kind = ? AND path = ?",
                (os.fsencode(path), self._kind, os.fsencode(entry.path)),
            )
        return moved

    def forget(self, path: Path) -> None:
        """Remove what is known of a path."""
        with self._cursor() as cursor:
            cursor.execute(
                "DELETE FROM recordings WHERE kind = ? AND path = ?", (self._kind, os.fsencode(path))
            )

    def _select(self, condition: str, *values: object) -> list[Entry]:
        with self._cursor() as cursor:
            rows = cursor.execute(
                f"SELECT {_COLUMNS} FROM recordings WHERE kind = ? AND {condition}", (self._kind, *values)
            ).fetchall()
        return [_entry(row) for row in rows]

    @contextmanager
    def _cursor(self) -> Iterator[sqlite3.Cursor]:
        with self._lock:
            try:
                yield self._database.cursor()
            except sqlite3.Error as error:
                raise DatabaseUnavailable(f"the list of recordings cannot be used: {error}") from None


def _is_final(known: Version, status: str, known_digest: str, version: Version, digest: str) -> bool:
    if not known.same_content(version):
        return False
    return status == DONE or (status in (SKIPPED, FAILED) and known_digest == digest)


def _entry(row: tuple[Any, ...]) -> Entry:
    _, path, inode, size, mtime_ns, status, digest, key, job, filename, language, sidecar, digests = row
    return Entry(
        Path(os.fsdecode(path)),
        Version(inode, size, mtime_ns),
        status,
        digest,
        key,
        job,
        filename,
        language,
        Path(os.fsdecode(sidecar)) if sidecar else None,
        tuple(digests.split()),
    )
