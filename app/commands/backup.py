"""`whisperfleet backup` and `whisperfleet restore`: the SQLite database as one file.

It has jobs, transcripts and corrections. Recordings are files beside it, which any program can copy.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.commands.ending import command
from app.common.errors import InvalidSetting, WhisperfleetError
from app.common.files import NO_LINKS, rename_new, sync, try_lock
from app.database.connection import Database
from app.intake.data_folder import DataFolder
from app.settings import Settings, load_settings

BUSY_S = 60.0  # how long to wait while a service recovers its database
SIDE_FILES = ("-wal", "-shm")  # of SQLite: the last transactions, and an index of them
TABLES = {"alembic_version", "jobs", "transcripts"}
RECORDINGS = "SELECT file FROM jobs WHERE file IS NOT NULL UNION SELECT id FROM uploads WHERE job_id IS NULL"


class BackupFailed(WhisperfleetError):
    """A file cannot be written, or is no backup. Nothing was changed."""


@command(errors=(OSError, sqlite3.Error))
def run_backup(file: Path) -> int:
    """Copy the database into `file`. Returns the exit code: 2 if a setting is invalid."""
    print(back_up(file))
    return 0


@command(errors=(OSError, sqlite3.Error))
def run_restore(file: Path) -> int:
    """Replace the database by `file`. Returns the exit code: 2 for a running service or a bad setting."""
    print(restore(file))
    return 0


def back_up(file: Path) -> str:
    """Write a backup, which the service does not notice. Returns a line about it.

    `file` appears once all of it is on the disk. Raises BackupFailed if it exists or cannot be written, and
    InvalidSetting if there is no SQLite database.
    """
    database = _database_path(load_settings())
    if not database.is_file():
        raise InvalidSetting(
            f"there is no database at {database}; set WHISPER_DATA_DIR and WHISPER_DATABASE_URL as for the "
            "service"
        )
    if file.exists():
        raise _exists(file)
    with _draft_beside(file) as draft:
        _vacuum(database, draft)
        jobs = _check(draft, draft)
        sync(draft)
        _publish(draft, file)
        sync(file.absolute().parent)
    return f"{file}: {jobs} jobs, {file.stat().st_size / 10**6:.1f} MB"


def restore(file: Path) -> str:
    """Replace the database by a backup. Returns lines about it.

    The database before stays under another name, with its recordings in a folder. A kill leaves that one or
    the new one, and the next start or restoration moves the recordings. Raises BackupFailed if `file` is no
    backup, and InvalidSetting if the service runs.
    """
    settings = load_settings()
    database = _database_path(settings)
    folder = DataFolder(settings.data_dir)
    folder.lock()
    try:
        with _locked(database), _draft_beside(database) as draft:
            try:
                shutil.copyfile(file, draft)
            except OSError as error:
                raise BackupFailed(f"{file} cannot be copied: {error.strerror}") from None
            jobs = _check(draft, file)
            recordings = _recordings(draft, "immutable=1")
            with suppress(sqlite3.Error):  # it is damaged, or there is none
                folder.finish_restoration(_recordings(database, "mode=rw"))  # of one that was killed
            _give_to_owner(draft)
            sync(draft)
            suffix = _new_suffix(database, folder.uploads, folder.uploads / folder.uploads.name)
            kept = _set_aside(database, suffix)
            if kept is not None:
                folder.begin_restoration(f"{folder.uploads.name}{suffix}")
            draft.replace(database)
            sync(database.parent)
            aside = folder.finish_restoration(recordings)
    finally:
        folder.release()
    return (
        f"{database}: {jobs} jobs"
        + (f"; the database before is {kept}" if kept else "")
        + (f"\n{aside}: the recordings of the database before" if aside else "")
    )


def _database_path(settings: Settings) -> Path:
    """The SQLite file. Raises InvalidSetting for another database."""
    database = Database(settings.database_url, settings.data_dir)
    if not database.is_sqlite or database.url.database is None:
        raise InvalidSetting(
            f"the jobs are in {database.name}: back it up with pg_dump, and restore it with pg_restore"
        )
    return Path(database.url.database)


def _vacuum(database: Path, draft: Path) -> None:
    """Copy a consistent state of the database, while others write, into an empty file."""
    # Not read-only: SQLite may have to recover the log of a service that was killed.
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", BUSY_S, uri=True)) as source:
        source.execute("VACUUM INTO ?", (str(draft),))


def _check(copy: Path, file: Path) -> int:
    """The number of jobs in a database that nobody writes. Raises BackupFailed, which names `file`."""
    try:
        # Immutable: without a log beside it, and without making one.
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?immutable=1", uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            if not tables >= TABLES:
                raise BackupFailed(f"{file} is no backup of whisperfleet")
            [(result,)] = database.execute("PRAGMA quick_check(1)")
            if result != "ok":
                raise BackupFailed(f"{file}: the backup is damaged ({result})")
            [(jobs,)] = database.execute("SELECT count(*) FROM jobs")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise BackupFailed(f"{file} is no backup of whisperfleet") from None
        raise BackupFailed(f"{file}: the backup is damaged ({error})") from None
    return int(jobs)


def _publish(draft: Path, file: Path) -> None:
    """Give the draft its name. Raises BackupFailed if a file of that name has appeared meanwhile."""
    try:
        rename_new(draft, file)
    except FileExistsError:
        raise _exists(file) from None


def _recordings(database: Path, mode: str) -> set[str]:
    """The names of the recordings that a database needs. `mode`: of opening it. Raises sqlite3.Error."""
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?{mode}", uri=True)) as opened:
        return {name for (name,) in opened.execute(RECORDINGS)}


def _new_suffix(*paths: Path) -> str:
    """The end of the names of what is set aside. None of `paths` has been given it yet."""
    moment = datetime.now(UTC)
    while True:
        suffix = f".until-{moment:%Y%m%dT%H%M%SZ}"
        if not any(Path(f"{path}{suffix}").exists() for path in paths):
            return suffix
        moment += timedelta(seconds=1)


def _set_aside(database: Path, suffix: str) -> Path | None:
    """Keep the present database under another name. Returns the name; None if there is no database.

    The database itself stays in its place, with all that was in its log: a kill loses nothing. If it is so
    damaged that SQLite cannot read it, its log is kept beside it.
    """
    present = f"{database.absolute().as_uri()}?mode=rw"
    with suppress(sqlite3.Error), closing(sqlite3.connect(present, uri=True)) as old:
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = Path(f"{database}{suffix}")
    # The log of one database would damage another one.
    for end in SIDE_FILES:
        with suppress(FileNotFoundError):
            Path(f"{database}{end}").rename(f"{kept}{end}")
    if not database.exists():
        return None
    try:
        os.link(database, kept)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        shutil.copyfile(database, kept)
    return kept


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    """Hold the lock of the database. Raises InvalidSetting if a service has it."""
    lock = try_lock(Path(f"{database}.lock"))
    if lock is None:
        raise InvalidSetting(f"another whisperfleet uses this database ({database}); stop it first")
    with closing(lock):
        yield


@contextmanager
def _draft_beside(file: Path) -> Iterator[Path]:
    """An empty file in the same folder, which only its owner can read. It is removed at the end."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.absolute().parent)
    except OSError as error:
        raise BackupFailed(f"{file} cannot be written: {error.strerror}") from None
    os.close(number)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _give_to_owner(draft: Path) -> None:
    """The service's user must be able to write the database that root restores."""
    if os.geteuid() == 0:
        folder = draft.parent.stat()
        os.chown(draft, folder.st_uid, folder.st_gid)


def _exists(file: Path) -> BackupFailed:
    return BackupFailed(f"{file} exists; name a file that does not")
