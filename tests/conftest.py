"""Fixtures for all tests."""

from collections.abc import Iterator

import hypothesis
import pytest

from tests.postgresql import NewDatabase, postgresql_server

# Tests assert no times.
hypothesis.settings.register_profile("whisperfleet", deadline=None)
hypothesis.settings.load_profile("whisperfleet")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of `async def` tests, for anyio's pytest plugin."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[NewDatabase]:
    """A function that creates databases on a PostgreSQL server."""
    with postgresql_server() as new_database:
        yield new_database
