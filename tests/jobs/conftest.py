"""Databases of both kinds, and a site."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.jobs.database import Database
from app.jobs.store import Store
from tests.jobs.databases import opened
from tests.jobs.sites import Site, opened_site


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/jobs.db"
    return str(request.getfixturevalue("postgresql")())


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """An open database, of either kind."""
    async with opened(url) as database:
        yield database


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site with default settings."""
    async with opened_site(tmp_path) as site:
        yield site
