"""Fixtures for all tests, and which process runs which tests, in which order."""

import csv
import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from xdist.scheduler import LoadScopeScheduling

from tests import prometheus, systemd
from tests.browser.chromium import FOLDER as BROWSER_TESTS
from tests.browser.chromium import MISSING
from tests.nginx import MISSING as NGINX_MISSING
from tests.postgresql import NewDatabase, postgresql_server

pytest_plugins = ["tests.e2e.fixtures"]

# What pytest and the tests import is millions of objects that stay: see `pytest_collection_finish`.
gc.disable()

# Ray reads this once, when a test or a library imports it. Later tests start clusters that ask for a token.
os.environ["RAY_AUTH_MODE"] = "token"

# Tests assert no times.
hypothesis.settings.register_profile("whisperfleet", deadline=None, max_examples=50)
hypothesis.settings.load_profile("whisperfleet")

# How long the tests of files take that take long (s), as `pytest --record-durations` wrote it.
DURATIONS = Path(__file__).with_name("durations.csv")
LONG_S = 3.0
TOOK_S: Counter[str] = Counter()
TOGETHER = "tests/cluster/"  # its tests share a cluster, so one process runs them all

# Tests with one of these start a service, a browser, a cluster or a database server.
SERVERS = {"commands", "module_commands", "shared", "_sites", "browser", "shared_cluster", "postgresql"}


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


def group_of(nodeid: str) -> str:
    """The tests that one process runs one after the other: those of a file, which share servers."""
    return TOGETHER if nodeid.startswith(TOGETHER) else nodeid.partition("::")[0]


class LongestFirst(LoadScopeScheduling):
    """Hands out groups of tests in the order of the collection, in which the longest come first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst:
    config.option.loadscopereorder = False  # else groups of many tests would come first
    return LongestFirst(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help=f"write {DURATIONS.name} anew")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start servers, and begin with those that take longest."""
    for item in items:
        if SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)
    with DURATIONS.open(encoding="utf-8", newline="") as file:
        lasts_s = {name: float(seconds) for name, seconds in csv.reader(file)}
    items.sort(key=lambda item: -lasts_s.get(group_of(item.nodeid), 0))


def pytest_collection_finish() -> None:
    """Let no collection look through what was imported: many tests make one, and each would take 0.3 s."""
    gc.freeze()
    gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    TOOK_S[group_of(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("record_durations") and not hasattr(session.config, "workerinput"):
        with DURATIONS.open("w", encoding="utf-8", newline="") as file:
            rows = [(name, round(seconds)) for name, seconds in TOOK_S.most_common() if seconds >= LONG_S]
            csv.writer(file, lineterminator="\n").writerows(rows)


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
    at_first = reporter.stats.get("rerun", [])
    for report in at_first:  # pytest prints those of the last run alone, which may be consequences
        reporter.write_line(report.longreprtext)
    for name in sorted({report.nodeid for report in at_first}):
        reporter.write_line(f"FAILED AT FIRST: {name}")
