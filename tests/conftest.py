"""Fixtures for tests of several packages."""

from collections.abc import Iterator

import pytest

from tests.postgresql import NewDatabase, postgresql_server


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of `async def` tests, for anyio's pytest plugin."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[NewDatabase]:
    """Makes databases on a PostgreSQL server."""
    with postgresql_server() as new_database:
        yield new_database
