"""Where the CPU time of a server's process goes, by part. Imports nothing of the service or of bench.

The thread of the event loop is sampled by a timer on its own CPU time: each sample counts for the innermost
function that belongs to a part. Threads of a pool are timed call by call. Other threads count by their names.
"""

import ctypes
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import thread as pool
from pathlib import Path
from types import FrameType
from typing import Any

EPOLL, LOOP, REST = "epoll", "event loop", "rest"
# The first fragment of "file:function" that fits decides.
PARTS = {
    "/workers/messages.py:Window.read": "reading PCM",
    "/app/engines/slot.py:WhisperSlot._read": "reading PCM",
    "/concurrent/futures/process.py": "channel to processes",
    "/multiprocessing/": "channel to processes",
    "/app/pool/process.py": "channel to processes",
    "/app/engines/inline.py": "channel to processes",
    "/workers/calls.py": "channel to processes",
    "/app/pool/helper.py": "pipeline",
    "/app/pool/": "dispatcher",
    "/app/engines/": "dispatcher",
    "/app/database/": "database",
    "/app/jobs/storage/": "database",
    "/app/jobs/running/": "database",
    "/app/jobs/events.py": "database",
    "/sqlalchemy/": "database",
    "/aiosqlite/": "database",
    "/asyncpg/": "database",
    "/app/jobs/serialization.py": "words",
    "/app/transcript/": "words",
    "/app/recording/clip_decoding.py": "words",
    "/app/recording/word_times.py": "words",
    "/workers/messages.py": "words",
    "/app/recording/clip_search.py": "finding clips",
    "/app/recording/clip_planner.py": "finding clips",
    "/app/recording/speech.py": "finding clips",
    "/app/recording/": "pipeline",
    "/app/intake/": "upload and HTTP",
    "/app/server/": "upload and HTTP",
    "/app/media/": "finding clips",
    "/app/api/": "upload and HTTP",
    "/uvicorn/": "upload and HTTP",
    "/h11/": "upload and HTTP",
    "/starlette/": "upload and HTTP",
    "/fastapi/": "upload and HTTP",
    "/selectors.py": EPOLL,
}
_THREADS = {
    "_connection_worker_thread": "database",
    "_ExecutorManagerThread": "channel to processes",
    "QueueFeederThread": "channel to processes",
    "AnyIO": "upload and HTTP",
}
_SIGEV_THREAD_ID = 4
_CLOCK_THREAD_CPUTIME_ID = 3
_PERIOD_NS = 1_000_000


class CpuParts:
    """What the process did since the last report."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._samples: Counter[str] = Counter()
        self._functions: Counter[str] = Counter()
        self._pool_s: Counter[str] = Counter()
        self._before: dict[int, float] = {}
        self._process_s = 0.0

    def install(self) -> None:
        """Begin, in the main thread. SIGRTMIN writes a report, as JSON, and begins the next."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGRTMIN, lambda *_: self.write())
        _start_timer(signal.SIGPROF)
        run = pool._WorkItem.run

        def timed(item: Any) -> None:
            function, began = item.fn, time.thread_time()
            run(item)
            self._pool_s[part_of_call(function)] += time.thread_time() - began

        pool._WorkItem.run = timed  # type: ignore[method-assign]

    def write(self) -> None:
        """Write the report, and begin the next."""
        sampled, functions, pool_s = self._samples, self._functions, self._pool_s
        self._samples, self._functions, self._pool_s = Counter(), Counter(), Counter()
        loop_s, threads = 0.0, Counter[str]()
        for thread in threading.enumerate():
            took_s = self._since_before(thread)
            if thread is threading.main_thread():
                loop_s = took_s
            else:
                threads[f"{type(thread).__name__} {thread.name}"] += took_s
        of_sample_s = loop_s / (sampled.total() or 1)
        parts = Counter({part: count * of_sample_s for part, count in sampled.items()})
        for name, took_s in threads.items():
            if "asyncio_" not in name:  # those are timed call by call
                parts[next((part for key, part in _THREADS.items() if key in name), REST)] += took_s
        parts.update(pool_s)
        now_s = time.process_time()
        total_s, self._process_s = now_s - self._process_s, now_s
        parts[REST] += total_s - parts.total()
        report = {
            "process_s": total_s,
            "parts_s": parts,
            "threads_s": {"event loop": loop_s} | threads,
            "functions_s": {name: count * of_sample_s for name, count in functions.most_common(60)},
        }
        partial = self._report.with_suffix(".partial")
        partial.write_text(json.dumps(report))
        partial.rename(self._report)

    def _since_before(self, thread: threading.Thread) -> float:
        """The CPU time of a thread since the last report."""
        assert thread.ident is not None  # it is started
        try:
            now = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        except OSError:  # it has just ended
            return 0.0
        before = self._before.get(thread.ident, 0.0)
        self._before[thread.ident] = now
        return now - before

    def _sample(self, number: int, frame: FrameType | None) -> None:
        innermost, part = "", None
        while frame is not None and part is None:
            where = f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"
            innermost = innermost or where
            part = _part_of(where)
            frame = frame.f_back
        part = part or (LOOP if "/asyncio/" in innermost else REST)
        self._samples[part] += 1
        self._functions[f"{part}: {'/'.join(innermost.split('/')[-2:])}"] += 1


def _part_of(where: str) -> str | None:
    return next((part for fragment, part in PARTS.items() if fragment in where), None)


def part_of_call(function: Callable[..., Any]) -> str:
    """The part of a function that a pool is given: for `asyncio.to_thread`, of the one that it was given."""
    while (inner := getattr(function, "func", None)) is not None:  # functools.partial
        context_run = getattr(inner, "__name__", "") == "run"
        function = function.args[0] if context_run and function.args else inner  # type: ignore[attr-defined]
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    return (_part_of(f"{code.co_filename}:{code.co_qualname}") if code is not None else None) or REST


class _SigEvent(ctypes.Structure):
    _fields_ = [
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("padding", ctypes.c_char * 44),
    ]


def _start_timer(number: signal.Signals) -> None:
    """Send this thread a signal after each millisecond of its CPU time, or as often as the kernel can."""
    libc = ctypes.CDLL(None, use_errno=True)
    event = _SigEvent(None, number, _SIGEV_THREAD_ID, threading.get_native_id())
    timer = ctypes.c_void_p()
    times = (ctypes.c_long * 4)(0, _PERIOD_NS, 0, _PERIOD_NS)  # interval, first
    if libc.timer_create(_CLOCK_THREAD_CPUTIME_ID, ctypes.byref(event), ctypes.byref(timer)) or (
        libc.timer_settime(timer, 0, times, None)
    ):
        raise OSError(ctypes.get_errno(), "no timer on the CPU time of a thread")
