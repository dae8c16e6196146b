"""A database, which is SQLite unless a test is marked with `ON_BOTH`, its clip store, and a site."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.database.connection import Database
from app.jobs.running.clip_store import ClipStore
from app.jobs.storage.store import Store
from tests.jobs.databases import opened, put_tables
from tests.jobs.sites import Site, opened_site


@pytest.fixture
def kind() -> str:
    """The kind of a test's database."""
    return "sqlite"


@pytest.fixture
def empty_url(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of a database without tables."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/jobs.db"
    return str(request.getfixturevalue("postgresql")(empty=True))


@pytest.fixture
def url(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of a database without jobs."""
    if kind == "postgresql":
        return str(request.getfixturevalue("postgresql")())
    put_tables(tmp_path / "jobs.db")
    return f"sqlite:///{tmp_path}/jobs.db"


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """An open database."""
    async with opened(url) as database:
        yield database


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database)


@pytest.fixture
async def clip_store(database: Database) -> AsyncIterator[ClipStore]:
    """A clip store that runs."""
    clip_store = ClipStore(database)
    clip_store.start()
    yield clip_store
    await clip_store.stop()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site with default settings."""
    async with opened_site(tmp_path) as site:
        yield site
