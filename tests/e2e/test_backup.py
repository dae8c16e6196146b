"""Backups of the database of a service that runs, and their restoration."""

import asyncio
import errno
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from app.commands import backup
from app.common.errors import InvalidSetting
from app.database.connection import Database
from tests.e2e.fixtures import Commands, SharedServers, without_jobs
from tests.e2e.running import DATA, ONE_SIMULATED, SIMULATED, Server
from tests.jobs.samples import submission
from tests.jobs.sites import started_jobs

pytestmark = pytest.mark.timeout(60)

SHORT = DATA / "short00.flac"
NAME = "whisperfleet.db"


@pytest.fixture(scope="module")
def site(shared: SharedServers) -> Server:
    """A service with one finished job."""
    site = without_jobs(shared(**ONE_SIMULATED))
    site.finished(site.submit(SHORT)["id"])
    return site


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with an empty database, that of the settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHISPER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("WHISPER_DATABASE_URL", raising=False)
    (tmp_path / "data").mkdir()
    asyncio.run(make_database(tmp_path / "data"))
    return tmp_path / "data"


async def make_database(folder: Path) -> None:
    database = Database(None, folder)
    await database.open()
    await database.close()


def add_job(database: Path, name: str, file: str | None = None) -> None:
    """Add a job. `file`: its recording, which is written."""
    if file is not None:
        (database.parent / "uploads").mkdir(exist_ok=True)
        (database.parent / "uploads" / file).write_bytes(name.encode())
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        columns = [row[1:4] for row in connection.execute("PRAGMA table_info(jobs)")]
        values = {
            column: name if column in ("id", "filename") else 0 if "INT" in kind or kind == "FLOAT" else "{}"
            for column, kind, needed in columns
            if needed and column != "number"
        } | {"file": file}
        marks = ",".join("?" * len(values))
        connection.execute(f"INSERT INTO jobs ({','.join(values)}) VALUES ({marks})", tuple(values.values()))
        connection.commit()


def names(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        return {name for (name,) in connection.execute("SELECT id FROM jobs")}


def test_a_service_is_backed_up_while_it_runs_and_restored_elsewhere(
    site: Server, commands: Commands, tmp_path: Path
) -> None:
    job = site.client.get("/v1/jobs").json()["data"][0]["id"]
    result = site.result(job)
    saved = tmp_path / "saved.db"
    done = commands.run("backup", saved, WHISPER_DATA_DIR=site.data)
    assert (done.process.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{saved}: 1 jobs, ")
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600, "it has the key of signed links"
    again = commands.run("backup", saved, WHISPER_DATA_DIR=site.data)
    assert again.process.returncode == 1
    assert again.stderr == f"whisperfleet: {saved} exists; name a file that does not\n"
    running = commands.run("restore", saved, WHISPER_DATA_DIR=site.data)
    assert running.process.returncode == 2
    assert "another whisperfleet uses this folder" in running.stderr
    assert site.result(job) == result, "nothing happened to it"

    data = tmp_path / "new"
    restored = commands.run("restore", saved, WHISPER_DATA_DIR=data)
    assert (restored.process.returncode, restored.stderr) == (0, "")
    shutil.copytree(site.data / "uploads", data / "uploads", dirs_exist_ok=True)
    other = commands.ready(**ONE_SIMULATED, WHISPER_DATA_DIR=data)
    assert other.result(job) == result
    assert other.client.get(f"/v1/jobs/{job}/audio").content == SHORT.read_bytes()
    assert [row["id"] for row in other.client.get("/v1/jobs?q=short00").json()["data"]] == [job]


def test_a_log_that_a_kill_left_is_part_of_a_backup(folder: Path, tmp_path: Path) -> None:
    database = folder / NAME
    script = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA journal_mode=WAL');"
        "db.execute('CREATE TABLE late (n)'); db.commit(); os.kill(os.getpid(), 9)"
    )
    os.spawnvp(os.P_WAIT, "python3", ["python3", "-c", script, str(database)])
    assert (folder / f"{NAME}-wal").stat().st_size
    backup.back_up(tmp_path / "saved.db")
    with closing(sqlite3.connect(tmp_path / "saved.db")) as saved:
        assert saved.execute("SELECT count(*) FROM late").fetchone() == (0,)


def test_a_restored_database_has_nothing_of_the_one_before(folder: Path, tmp_path: Path) -> None:
    database = folder / NAME
    add_job(database, "first")
    backup.back_up(tmp_path / "saved.db")
    add_job(database, "second")
    (folder / f"{NAME}-wal").write_bytes(b"the log of some other database")
    line = backup.restore(tmp_path / "saved.db")
    assert names(database) == {"first"}
    kept = Path(line.partition("the database before is ")[2])
    assert names(kept) == {"first", "second"}
    assert not list(folder.glob("uploads.until-*")), "there are no recordings"
    assert not [path for path in folder.iterdir() if path.name.startswith(f".{NAME}")], "drafts"


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


async def serve(folder: Path, *files: str, delete: str | None = None) -> list[str]:
    """Start a service, submit jobs with these recordings, delete one, and stop it. Returns ids of jobs."""
    async with started_jobs(f"sqlite:///{folder / NAME}", folder) as jobs:
        for file in files:
            (folder / "uploads" / file).write_text(file)
        ids = [(await jobs.submit(submission(file=file)))[0].id for file in files]
        if delete is not None:
            await jobs.delete(delete)
        return ids


def test_recordings_are_set_aside_with_their_database_and_can_come_back(folder: Path, tmp_path: Path) -> None:
    first, second = "a" * 32, "b" * 32
    both = {first: first, second: second}
    [job] = asyncio.run(serve(folder, first))
    backup.back_up(tmp_path / "saved.db")
    asyncio.run(serve(folder, second))
    line, of_recordings = backup.restore(tmp_path / "saved.db").splitlines()
    kept = Path(line.partition("the database before is ")[2])
    aside = Path(str(kept).replace(NAME, "uploads"))
    assert of_recordings == f"{aside}: the recordings of the database before"
    assert stat.S_IMODE(aside.stat().st_mode) == 0o700
    assert content(folder / "uploads") == {first: first}
    asyncio.run(serve(folder, delete=job))
    assert (content(folder / "uploads"), content(aside)) == ({}, both)

    for path in aside.iterdir():  # as the documentation says
        path.rename(folder / "uploads" / path.name)
    backup.restore(kept)
    asyncio.run(serve(folder))
    assert content(folder / "uploads") == both


def test_databases_that_are_restored_one_after_the_other_keep_their_recordings(
    folder: Path, tmp_path: Path
) -> None:
    for place, name in enumerate(("first", "second", "third")):
        add_job(folder / NAME, name, str(place) * 32)
        backup.back_up(tmp_path / f"{name}.db")
    asides = []
    for name in ("second", "first"):  # within a second
        kept = Path(backup.restore(tmp_path / f"{name}.db").splitlines()[0].partition("before is ")[2])
        asides.append((len(names(kept)), set(content(Path(str(kept).replace(NAME, "uploads"))).values())))
    assert asides == [(3, {"first", "second", "third"}), (2, {"first", "second"})]
    assert set(content(folder / "uploads").values()) == {"first"}


@pytest.mark.parametrize("killed_at", ["replace", "rename", "unlink"])
def test_a_restoration_that_is_killed_is_finished_by_the_next(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    class KilledError(BaseException):
        pass

    add_job(folder / NAME, "first", "a" * 32)
    backup.back_up(tmp_path / "saved.db")
    for name in "bc":
        add_job(folder / NAME, name, name * 32)
    real = getattr(Path, killed_at)

    def kill(path: Path, *arguments: object, **options: object) -> object:
        is_database = path.name.startswith(f".{NAME}") and killed_at == "replace"
        if is_database or path.name == "database" or path.name in ("b" * 32, "c" * 32):
            raise KilledError
        return real(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, killed_at, kill)
        with pytest.raises(KilledError):
            backup.restore(tmp_path / "saved.db")
    backup.restore(tmp_path / "saved.db")
    assert content(folder / "uploads") == {"a" * 32: "first"}
    asides = [content(path) for path in folder.glob("uploads.until-*")]
    assert {"a" * 32: "first", "b" * 32: "b", "c" * 32: "c"} in asides
    assert not (folder / "database").exists(), "the next start has nothing to finish"


def test_recordings_on_a_disk_of_their_own_stay_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_job(folder / NAME, "first", "a" * 32)
    backup.back_up(tmp_path / "saved.db")
    add_job(folder / NAME, "second", "b" * 32)
    rename = Path.rename

    def refuse_to_leave(path: Path, target: Path) -> Path:
        if folder / "uploads" in path.parents and folder / "uploads" not in Path(target).parents:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse_to_leave)
    aside = Path(backup.restore(tmp_path / "saved.db").splitlines()[1].partition(": ")[0])
    assert aside.parent == folder / "uploads"
    assert content(aside) == {"a" * 32: "first", "b" * 32: "second"}
    assert content(folder / "uploads") == {"a" * 32: "first"}


def test_a_damaged_database_can_be_replaced(folder: Path, tmp_path: Path) -> None:
    add_job(folder / NAME, "first")
    backup.back_up(tmp_path / "saved.db")
    (folder / NAME).write_bytes(b"not SQLite any more" * 1000)
    backup.restore(tmp_path / "saved.db")
    assert names(folder / NAME) == {"first"}


def test_a_file_that_appears_meanwhile_stays(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "saved.db"
    vacuum = backup._vacuum

    def meanwhile(database: Path, draft: Path) -> None:
        vacuum(database, draft)
        file.write_text("precious")

    monkeypatch.setattr(backup, "_vacuum", meanwhile)
    with pytest.raises(backup.BackupFailed, match="exists"):
        backup.back_up(file)
    assert file.read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"data", "saved.db"}


def test_a_file_system_without_hard_links(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    add_job(folder / NAME, "first", "a" * 32)
    backup.back_up(tmp_path / "saved.db")
    with pytest.raises(backup.BackupFailed, match="exists"):
        backup._publish(folder / NAME, tmp_path / "saved.db")
    add_job(folder / NAME, "second", "b" * 32)
    backup.restore(tmp_path / "saved.db")
    assert names(folder / NAME) == {"first"}
    assert content(folder / "uploads") == {"a" * 32: "first"}
    [aside] = folder.glob("uploads.until-*")
    assert content(aside) == {"b" * 32: "second"}


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"hello" * 2000, "is no backup"), (b"", "is no backup"), (None, "cannot be copied")],
)
def test_files_that_are_no_backups_change_nothing(
    folder: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "other").write_bytes(content)
    with pytest.raises(backup.BackupFailed, match=message):
        backup.restore(tmp_path / "other")
    assert [path.name for path in folder.iterdir() if path.name.startswith(f"{NAME}.until")] == []


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_half_a_backup_is_refused(folder: Path, tmp_path: Path, keep: float) -> None:
    whole = tmp_path / "saved.db"
    backup.back_up(whole)
    half = tmp_path / "half.db"
    half.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * keep)])
    with pytest.raises(backup.BackupFailed, match="damaged"):
        backup.restore(half)


def test_where_no_backup_can_be_written(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(backup.BackupFailed, match="cannot be written: No such file"):
        backup.back_up(tmp_path / "nowhere" / "saved.db")


def test_a_folder_without_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHISPER_DATA_DIR", str(tmp_path))
    with pytest.raises(InvalidSetting, match="there is no database"):
        backup.back_up(tmp_path / "saved.db")


def test_postgresql_has_programs_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHISPER_DATABASE_URL", "postgresql://user:secret@host/jobs")
    with pytest.raises(InvalidSetting, match="pg_dump") as refused:
        backup.back_up(Path("saved.db"))
    assert "secret" not in refused.value.message


def test_an_older_version_does_not_start_with_a_newer_database(folder: Path, commands: Commands) -> None:
    with closing(sqlite3.connect(folder / NAME)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE readers SET oldest = '9999'")
        connection.commit()
    before = (folder / NAME).read_bytes()
    refused = commands.run("serve", "--port", 0, WHISPER_DATA_DIR=folder, **SIMULATED)
    assert refused.process.returncode == 2
    [line] = refused.stderr.splitlines()
    assert "a newer version of whisperfleet has written the database (its tables are of version 9999" in line
    assert (folder / NAME).read_bytes() == before
