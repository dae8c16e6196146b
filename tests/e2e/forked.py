"""Commands in processes that are forked from one that has imported the program.

An import takes a second of a core, most of what a command or the start of a server takes. Nothing else is
shared: each process has its own session, environment, folder and output.
"""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path

_TESTS = str(Path(__file__).parents[1])
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["app.cli", "app.commands.serve", "app.commands.transcribe"])


class ForkedProcess:
    """A command, with the methods of `subprocess.Popen` that tests use. It reads nothing."""

    def __init__(
        self, words: Sequence[str], environ: Mapping[str, str], folder: Path, stdout: Path, stderr: Path
    ) -> None:
        """`words`: the name of the program, and its arguments. `stdout`, `stderr`: files to write."""
        vars(sys.modules["__main__"]).pop("__file__", None)  # pytest, which the process would import
        for path in (stdout, stderr):
            path.write_bytes(b"")
        paths = (str(folder), str(stdout), str(stderr))
        self._process = _context.Process(target=_run, args=(words, dict(environ), *paths, _usable_cores()))
        self._process.start()
        self._reading = threading.Lock()  # of the exit code, which arrives once
        self.pid = self._process.pid or 0
        with suppress(ProcessLookupError):
            while os.getsid(self.pid) != self.pid:
                time.sleep(0.001)

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        with self._reading:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired("whisperfleet", timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _usable_cores() -> set[int]:
    """The cores of this process, which a test may have limited."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _run(
    words: Sequence[str], environ: Mapping[str, str], folder: str, stdout: str, stderr: str, cores: set[int]
) -> None:
    """Become a process like one that a shell starts, and run the program in it."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    for number, path in enumerate((os.devnull, stdout, stderr)):
        opened = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    if cores:
        os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = words
    sys.path[:] = [entry for entry in sys.path if not entry.startswith(_TESTS)]
    tempfile.tempdir = None
    multiprocessing.context._default_context._actual_context = None
    os.close(resource_tracker._resource_tracker._fd)
    resource_tracker._resource_tracker._fd = None  # that of the tests
    os.setsid()  # at last: the test goes on
    from app.cli import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()
