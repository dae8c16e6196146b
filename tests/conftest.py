"""What tests of several rooms share."""

from collections.abc import Iterator

import pytest

from tests.postgresql import NewDatabase, postgresql_server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[NewDatabase]:
    """Makes databases on a PostgreSQL server."""
    with postgresql_server() as new_database:
        yield new_database


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"
