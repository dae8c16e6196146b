"""Log lines that a thread writes."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.telemetry.logs import LogWriter

pytestmark = pytest.mark.timeout(30)
PIPE_BYTES = 1 << 16  # more than this does not fit into a pipe that nobody reads


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def log_to(handler: LogWriter) -> Callable[[str], None]:
    """A function that logs a message to the handler."""
    return lambda message: handler.handle(
        logging.LogRecord("test", logging.INFO, __file__, 1, message, (), None)
    )


def test_all_lines_are_written_in_order(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        handler = LogWriter(file.fileno())
        for number in range(500):
            log_to(handler)(f"line {number} ü")
        handler.flush()
    assert (tmp_path / "log").read_text().splitlines() == [f"line {number} ü" for number in range(500)]


def test_a_pipe_that_nobody_reads_stops_nobody_and_lost_lines_are_counted(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    handler = LogWriter(writer, max_lines=20)
    log = log_to(handler)
    long = "x" * PIPE_BYTES
    log(long)  # its line break does not fit any more
    while handler._waiting.qsize():  # the thread has taken it, and is stuck
        time.sleep(0.001)
    for number in range(30):
        log(f"line {number}")
    received = b""
    while b"line 19\n" not in received:
        received += os.read(reader, 1 << 20)
    log("later")
    while b"later\n" not in received:
        received += os.read(reader, 1 << 20)
    *lines, notice, last = received.decode().splitlines()[1:]
    assert lines == [f"line {number}" for number in range(20)]
    assert notice.startswith("10 log lines were dropped")
    assert last == "later"


def test_a_closed_pipe_stops_nobody() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    handler = LogWriter(writer)
    log_to(handler)("nobody reads this")
    handler.flush()
    log_to(handler)("nor this")
    handler.flush()
    os.close(writer)
