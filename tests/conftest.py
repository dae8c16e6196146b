"""Fixtures for all tests."""

import os
from collections.abc import Iterator

import hypothesis
import pytest
import structlog

from tests import prometheus, systemd
from tests.browser.chromium import FOLDER as BROWSER_TESTS
from tests.browser.chromium import MISSING
from tests.nginx import MISSING as NGINX_MISSING
from tests.postgresql import NewDatabase, postgresql_server

# Ray reads this once, when a test or a library imports it. Later tests start clusters that ask for a token.
os.environ["RAY_AUTH_MODE"] = "token"

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


@pytest.fixture(scope="session", autouse=True)
def _plain_log() -> Iterator[None]:
    """Plain tracebacks: rich ones take seconds each."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ]
    )
    yield
    structlog.reset_defaults()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Name what was not run or failed at first, as the last lines.

    Here, because pytest-xdist loads only this file in time.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a process of pytest-xdist
        return
    folder = BROWSER_TESTS.relative_to(config.rootpath).as_posix()
    kinds = {
        f"browser tests ({folder})": MISSING,
        "tests behind nginx": NGINX_MISSING,
        "tests of the monitoring": prometheus.MISSING,
        "tests of the systemd unit": systemd.MISSING,
    }
    for kind, reason in kinds.items():
        skipped = [report for report in reporter.stats.get("skipped", []) if reason in str(report.longrepr)]
        if skipped:
            reporter.write_line(f"NOT RUN: {len(skipped)} {kind}, because {reason}.")
    for name in sorted({report.nodeid for report in reporter.stats.get("rerun", [])}):
        reporter.write_line(f"FAILED AT FIRST: {name}")
