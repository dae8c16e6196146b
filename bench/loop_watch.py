"""Runs `whisperfleet` with a watch on its event loop, which writes what held the loop.

    python bench/loop_watch.py REPORT serve --port 8000        (in the root of a checkout)

SIGRTMIN writes the report of the time since the last one to REPORT, as JSON, and begins the next. SIGUSR2
prints the stacks of all threads, also if the service hangs. This file imports nothing of the service and
nothing of bench, so the checkout may be of any age. With LOOP_WATCH_STACKS=5 in the environment, a thread
also samples the loop's stack whenever a call takes longer than 5 ms.

Times are in ms: `wall`; `cpu`, the CPU time of the loop's thread; `held`, wall time less CPU time and less
the time in which the thread was ready and no core ran it: it waited for the GIL, a lock or the disk.
"""

import asyncio
import faulthandler
import gc
import json
import os
import runpy
import selectors
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

LONGEST = 12  # calls in a report, by wall time and by CPU time
PROBE_S = 0.01  # between two measurements of the loop's lateness
STACK_LINES = 8

_run = asyncio.events.Handle._run
_select = selectors.EpollSelector.select


class LoopWatch:
    """What the loop did since the last report."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._schedstat: int | None = None
        self._probing = False
        self._call: tuple[int, float] | None = None  # number and start of the call that runs
        self._calls = 0
        self._loop_thread = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin()

    def install(self) -> None:
        """Watch every call of the loop, its turns and the garbage collector."""
        asyncio.events.Handle._run = lambda handle: self.run(handle)  # type: ignore[method-assign]
        selectors.EpollSelector.select = lambda selector, timeout=None: self.select(selector, timeout)
        gc.callbacks.append(self.collected)
        signal.signal(signal.SIGRTMIN, lambda *_: self.write())
        faulthandler.register(signal.SIGUSR2)
        if stacks := os.environ.get("LOOP_WATCH_STACKS"):
            threading.Thread(target=self._sample_stacks, args=(float(stacks) / 1000,), daemon=True).start()

    def run(self, handle: Any) -> None:
        """Run a call of the loop, and record what it took."""
        if not self._probing:
            self._start_probe(handle._loop)
        where = _where(handle)
        queued = os.pread(self._schedstat, 64, 0) if self._schedstat is not None else b"0 0"
        self._calls += 1
        wall, cpu = time.perf_counter(), time.thread_time()
        self._call = (self._calls, wall)
        try:
            _run(handle)
        finally:
            self._call = None
            wall_ms = 1000 * (time.perf_counter() - wall)
            cpu_ms = 1000 * (time.thread_time() - cpu)
            if wall_ms > 1:
                self._record(handle, where, wall_ms, cpu_ms, queued)

    def select(self, selector: Any, timeout: float | None) -> Any:
        """Wait for events, and record how long the loop worked since the last wait."""
        if self._woken_at is not None:
            self._turns_ms.append(1000 * (time.perf_counter() - self._woken_at))
        ready = _select(selector, timeout)
        self._woken_at = time.perf_counter()
        return ready

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """Record a full garbage collection, whose time all threads lose."""
        if info["generation"] < 2:
            return
        if phase == "start":
            self._gc_start = time.thread_time()
        else:
            self._gc_ms.append(1000 * (time.thread_time() - self._gc_start))

    def write(self) -> None:
        """Write the report, and begin the next."""
        report = {
            "calls": self._calls,
            "over_20_ms_cpu": sum(call["cpu"] > 20 for call in self._long),
            "over_10_ms_cpu": sum(call["cpu"] > 10 for call in self._long),
            "over_20_ms_held": sum(call["held"] > 20 for call in self._long),
            "late_ms": _percentiles(self._late_ms),
            "turn_ms": _percentiles(self._turns_ms),
            "gc_ms": {"count": len(self._gc_ms), "max": max(self._gc_ms, default=0.0)},
            "loop_cpu_s": time.thread_time() - self._cpu_start,
            "process_cpu_s": time.process_time() - self._process_start,
            "wall_s": time.perf_counter() - self._wall_start,
            "by_cpu": sorted(self._long, key=lambda call: -call["cpu"])[:LONGEST],
            "by_wall": sorted(self._long, key=lambda call: -call["wall"])[:LONGEST],
            "by_held": sorted(self._long, key=lambda call: -call["held"])[:LONGEST],
            "stacks": self._stacks.most_common(LONGEST),
        }
        partial = self._report.with_suffix(".partial")
        partial.write_text(json.dumps(report))
        partial.rename(self._report)
        self._begin()

    def _begin(self) -> None:
        self._long: list[dict[str, Any]] = []  # calls of over a millisecond
        self._late_ms: list[float] = []
        self._turns_ms: list[float] = []
        self._gc_ms: list[float] = []
        self._gc_start = 0.0
        self._stacks: Counter[str] = Counter()
        self._woken_at: float | None = None
        self._cpu_start, self._process_start = time.thread_time(), time.process_time()
        self._wall_start = time.perf_counter()
        self._calls = 0

    def _record(self, handle: Any, where: str, wall_ms: float, cpu_ms: float, queued: bytes) -> None:
        queued_ms = 0.0
        if self._schedstat is not None:
            now = os.pread(self._schedstat, 64, 0)
            queued_ms = (int(now.split()[1]) - int(queued.split()[1])) / 1e6
        held = max(0.0, wall_ms - cpu_ms - queued_ms)
        times = {"wall": round(wall_ms, 2), "cpu": round(cpu_ms, 2), "held": round(held, 2)}
        self._long.append({"name": _name(handle), "from": where, **times})

    def _start_probe(self, loop: asyncio.AbstractEventLoop) -> None:
        self._probing = True
        self._loop_thread = threading.get_ident()
        try:
            path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
            self._schedstat = os.open(path, os.O_RDONLY)
        except OSError:
            self._schedstat = None  # not Linux: a wait for a core counts as held

        def probe(due: float) -> None:
            now = loop.time()
            self._late_ms.append(1000 * (now - due))
            loop.call_at(now + PROBE_S, probe, now + PROBE_S)

        loop.call_later(PROBE_S, probe, loop.time() + PROBE_S)

    def _sample_stacks(self, threshold_s: float) -> None:
        while True:
            time.sleep(threshold_s / 2)
            call = self._call
            if call is None or time.perf_counter() - call[1] < threshold_s:
                continue
            frame = sys._current_frames().get(self._loop_thread)
            lines = []
            while frame is not None and len(lines) < STACK_LINES:
                code = frame.f_code
                lines.append(f"{_short(code.co_filename)}:{frame.f_lineno} {code.co_name}")
                frame = frame.f_back
            self._stacks[" < ".join(lines)] += 1


def _where(handle: Any) -> str:
    """Where the task of a call goes on; empty for a call that is no task's."""
    task = getattr(handle._callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return ""
    innermost, awaited = "", task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            code = frame.f_code
            innermost = f"{code.co_qualname} ({_short(code.co_filename)}:{frame.f_lineno})"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return f"{_request(task)} {innermost}".strip()


def _request(task: "asyncio.Task[Any]") -> str:
    """The method and path of uvicorn's task for a request."""
    coroutine: Any = task.get_coro()
    if not getattr(coroutine, "__qualname__", "").endswith("run_asgi") or coroutine.cr_frame is None:
        return ""
    cycle = coroutine.cr_frame.f_locals.get("self")
    return f"{cycle.scope['method']} {cycle.scope['path']}" if cycle is not None else ""


def _name(handle: Any) -> str:
    """The task's coroutine, or the function."""
    callback = handle._callback
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return getattr(task.get_coro(), "__qualname__", repr(task.get_coro()))
    return getattr(callback, "__qualname__", None) or repr(callback)


def _short(path: str) -> str:
    return "/".join(Path(path).parts[-2:])


def _percentiles(values: list[float]) -> dict[str, float]:
    ranked = sorted(values) or [0.0]
    return {
        name: round(ranked[min(len(ranked) - 1, int(len(ranked) * fraction))], 2)
        for name, fraction in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
    }


if __name__ == "__main__":
    LoopWatch(Path(sys.argv[1])).install()
    sys.argv = ["whisperfleet", *sys.argv[2:]]
    sys.path[0] = str(Path.cwd())
    runpy.run_module("app.cli", run_name="__main__", alter_sys=True)
