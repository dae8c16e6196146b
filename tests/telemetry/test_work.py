"""The ids of log lines: of one request or job, of a batch of many, in child processes."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from app.pool.dispatcher import Dispatcher
from app.pool.process import ChildProcess
from app.telemetry.work import Work, bound_ids, current_work, log_ids, working_for
from tests.event_loop import let_tasks_run
from tests.pool.fake_slots import FakeSlot, TwoBatchSlot
from workers import calls, runtime
from workers.log_lines import initialise

LOGS = """
import logging, warnings
from workers import calls, log_lines

def work():
    logging.getLogger("a.library").info("below the level")
    logging.getLogger("a.library").warning("a message of %s", "a library")
    warnings.warn("of Python", stacklevel=1)
    try:
        1 / 0
    except ZeroDivisionError:
        logging.getLogger(__name__).exception("x" * 10_000)

log_lines.initialise(log_lines.LogFormat("warning", FORMAT == "json", False), int)
calls.answer({"request_id": ["a", "+3"], "job": "1"}, work)
"""


def run_logs(form: str, stderr: int) -> bytes:
    """What a process writes to standard error, if that is a pipe of its own."""
    script = LOGS.replace("FORMAT", repr(form))
    return subprocess.run([sys.executable, "-c", script], check=True, timeout=60, stderr=stderr).stderr


def ids_and_part() -> dict[str, Any]:
    with calls.measured("a part"):
        return dict(calls.current().ids)


def test_one_id_is_a_string_and_several_are_a_bounded_list() -> None:
    assert log_ids([Work()]) == {}
    assert log_ids([Work("a"), Work("a")]) == {"request_id": "a"}
    assert log_ids([Work("a", "1"), Work("b"), Work(None, "2")]) == {
        "request_id": ["a", "b"],
        "job": ["1", "2"],
    }
    many = log_ids([Work(str(number)) for number in range(128)])["request_id"]
    assert many == [*(str(number) for number in range(8)), "+120"]


def test_work_ends_with_its_block() -> None:
    with working_for(Work("a")), working_for(Work("b", "job")):
        assert current_work() == Work("b", "job")
        assert bound_ids() == {"request_id": "b", "job": "job"}
    assert current_work() == Work()
    assert bound_ids() == {}


@pytest.mark.anyio
async def test_a_call_of_a_process_has_the_ids_of_its_caller_and_returns_what_it_measured() -> None:
    child = ChildProcess(runtime.initialise, "")
    try:
        await child.start()
        before = time.time()
        with structlog.contextvars.bound_contextvars(**log_ids([Work("a"), Work("b", "job")]), slot=1):
            context, own = calls.separate()
        called = asyncio.create_task(child.call(ids_and_part), context=context)
        assert await called == {"request_id": ["a", "b"], "job": "job"}
        [part] = own.parts
        assert part.name == "a part"
        assert before <= part.start <= part.end <= time.time()
        assert await child.call(os.getpid) == child.pid
        assert len(own.parts) == 1
    finally:
        await child.close()


def test_the_parts_of_a_call_are_bounded() -> None:
    def measure() -> None:
        for _ in range(1000):
            with calls.measured("a part"):
                pass

    assert len(calls.answer({}, measure).parts) == 64


def test_separate_work_keeps_its_own_ids_and_parts() -> None:
    def begin() -> calls.Call:
        context, call = calls.separate()
        context.run(ids_and_part)
        return call

    answer = calls.answer({"job": "first"}, begin)
    assert answer.parts == ()
    assert answer.result.ids == {"job": "first"}
    assert [part.name for part in answer.result.parts] == ["a part"]


def test_lines_of_processes_look_like_those_of_the_service() -> None:
    message, warning, error = map(json.loads, run_logs("json", subprocess.PIPE).splitlines())
    assert message.items() >= {"event": "a message of a library", "level": "warning", "job": "1"}.items()
    assert message["request_id"] == ["a", "+3"]
    assert set(message) == {"event", "level", "timestamp", "request_id", "job", "pid"}
    assert "of Python" in warning["event"]
    assert "ZeroDivisionError" in error["exception"]
    text = run_logs("console", subprocess.PIPE).decode()
    assert "a message of a library" in text
    assert "job=1" in text


def test_a_process_does_not_wait_for_a_log_that_nobody_reads() -> None:
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(4096))
        os.set_blocking(writing, True)
        run_logs("json", writing)  # has a time limit
    finally:
        os.close(reading)
        os.close(writing)


def test_without_a_format_a_process_logs_as_python_does() -> None:
    handlers = logging.getLogger().handlers
    called: list[object] = []
    initialise(None, called.append, "the device")
    assert called == ["the device"]
    assert logging.getLogger().handlers is handlers


async def run_batches(slot: FakeSlot, *submissions: tuple[Work, str]) -> list[Any]:
    """The log lines of a dispatcher with one slot, to which several requests submit a payload each."""
    dispatcher = Dispatcher[str, str]("worker", [slot])
    with capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        submitted = []
        for work, payload in submissions:
            with working_for(work):
                submitted.append(asyncio.create_task(dispatcher.submit("job", payload, key="k")))
        await let_tasks_run()
        dispatcher.start()
        await asyncio.gather(*submitted, return_exceptions=True)
        await dispatcher.stop()
    return list(lines)


@pytest.mark.anyio
async def test_a_crash_is_logged_with_the_ids_of_all_that_it_may_have_been() -> None:
    slot = FakeSlot(0, batch_limit=4)
    lines = await run_batches(slot, (Work("a"), "crash"), (Work("b", "job"), "fine"))
    first, *retries = [line for line in lines if line["event"] == "a process ended with work"]
    assert (first["request_id"], first["job"]) == (["a", "b"], "job")
    assert {line["request_id"] for line in retries} == {"a"}  # one by one, it turns out which it was
    replaced = [line for line in lines if line["event"] == "replacing the process"]
    assert replaced
    assert {line["reason"] for line in replaced} == {"crash"}
    assert not any("request_id" in line for line in replaced)


@pytest.mark.anyio
async def test_each_batch_of_a_slot_runs_with_its_own_ids() -> None:
    slot = TwoBatchSlot(0)
    seen: list[dict[str, Any]] = []
    run = slot.run

    async def note(*batch: Any) -> Any:
        seen.append(bound_ids())
        return await run(*batch)

    slot.run = note  # type: ignore[method-assign]
    await run_batches(slot, (Work("a"), "first"), (Work("b"), "second"))
    assert [ids["request_id"] for ids in seen] == ["a", "b"]
