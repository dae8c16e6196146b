"""Log lines that a thread writes: a terminal or a pipe that takes no more must not stop the service."""

import logging
import os
import threading
from contextlib import suppress
from queue import SimpleQueue

MAX_LINES = 10_000  # waiting; further ones are dropped
FLUSH_S = 1.0


class LogWriter(logging.Handler):
    """Writes to a file descriptor in a thread. Drops lines, and counts them, while too many wait."""

    def __init__(self, descriptor: int, max_lines: int = MAX_LINES) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._max_lines = max_lines
        self._dropped = 0
        # Not a `Queue`: a signal handler that logs could wait for a lock that its own thread holds.
        self._waiting: SimpleQueue[str | threading.Event] = SimpleQueue()
        threading.Thread(target=self._write_forever, name="log-writer", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line. It is formatted here: the context of the caller belongs to it."""
        if self._waiting.qsize() >= self._max_lines:
            self._dropped += 1
            return
        try:
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self._waiting.put(self.format(_notice(dropped)))
            self._waiting.put(self.format(record))
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Wait until all lines so far are written, `FLUSH_S` at most. `logging` calls this at the exit."""
        written = threading.Event()
        self._waiting.put(written)
        written.wait(FLUSH_S)

    def _write_forever(self) -> None:
        while True:
            line = self._waiting.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            # Not `sys.stderr`: at the exit, the interpreter would wait for its lock.
            data = memoryview(f"{line}\n".encode(errors="backslashreplace"))
            with suppress(OSError):  # nobody reads the log any more
                while data:
                    data = data[os.write(self._descriptor, data) :]


def _notice(dropped: int) -> logging.LogRecord:
    message = (
        "%d log lines were dropped: nothing read standard error. Check the terminal or the log collector."
    )
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (dropped,), None)
