"""The units of work that the dispatcher hands out, and the slots and processes that run them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

from app.common.errors import ProcessCrashed
from app.telemetry.work import Work, current_work
from workers.messages import Part

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")
Payload = TypeVar("Payload", contravariant=True)
Result = TypeVar("Result", covariant=True)


# Asleep: started when there is work. Draining: takes no more batches, and ends when it has answered those it
# has. Failed: retried now and then.
State = Literal["loading", "idle", "busy", "restarting", "asleep", "draining", "failed"]
STATES: tuple[State, ...] = get_args(State)


class RestartReason(StrEnum):
    """Why a slot's process was replaced."""

    CRASH = "crash"  # it ended by itself, or something else killed it
    HANG = "hang"  # it did not answer in time
    DEVICE = "device"  # its device failed
    MEMORY = "memory"  # it used too much memory, or may use more again
    ERROR = "error"  # a fault of this service
    LOST = "lost"  # it was lost with its node, or with the connection to it


@dataclass(slots=True)
class SlotStatus:
    """The state of a slot and its counters, as `GET /v1/workers` shows them."""

    state: str = "loading"  # one of `STATES`
    waking: bool = False  # loading after it was asleep
    batches: int = 0
    restarts_by: Counter[RestartReason] = field(default_factory=Counter)
    ending: RestartReason | None = None  # why the process will be replaced; None: it ended by itself
    error: str | None = None

    @property
    def restarts(self) -> int:
        """How often the process was replaced."""
        return self.restarts_by.total()

    @property
    def is_serving(self) -> bool:
        """Whether the slot's process takes batches."""
        return self.state in ("idle", "busy")


class Slot(Protocol[Payload, Result]):
    """A place for one process. The slot keeps its device when the process is replaced."""

    index: int
    status: SlotStatus
    needs_restart: asyncio.Event  # set when the process has ended, or must be replaced
    batches_at_once: int  # that its process has: it runs the first, and the others are ready

    def batch_limit(self, weight: int = 1) -> int:
        """How many tasks of this weight the slot takes at once. Changes with the free memory."""

    async def start(self) -> None:
        """Start the process, in place of an earlier one if there was one. Raises the cause of a failure."""

    async def probe(self) -> None:
        """Run a small task of the slot's own. Raises as `run` does.

        Called after the start of a process whose predecessor raised DeviceFailed.
        """

    async def run(
        self, payloads: Sequence[Payload], expected_s: float | None
    ) -> Sequence[Result | Exception]:
        """Run a batch; returns one result for each payload, in order, or the error of this payload alone.

        Called up to `batches_at_once` times at a time. The process runs the batches in order.

        `expected_s`: what such a batch should take on this slot; None if that is not known yet. Raises
        ProcessCrashed if the process crashes or hangs, ProcessLost if its node or the connection to it is
        gone, DeviceFailed if its device is probably at fault, and RequeueBatch if the batch cannot be run as
        it is, through no fault of its tasks.
        """

    async def close(self) -> None:
        """End the process."""


class WorkerProcess(Protocol):
    """One long-lived process, on this machine or on another: see `ChildProcess`."""

    pid: int | None
    on_exit: Callable[[ProcessCrashed], None]  # called when the process ends, even between two calls

    async def start(self) -> None: ...

    async def call(self, function: Callable[..., T], *args: object, deadline_s: float | None = None) -> T: ...

    def is_stopped(self) -> bool: ...

    async def close(self) -> None: ...


class TaskResult(NamedTuple, Generic[R]):
    """The result of a task, the slot that ran it, and how many processes crashed or hung on it before."""

    result: R
    slot: int
    crash_count: int


@dataclass(frozen=True, slots=True, eq=False)
class Suspicion:
    """A process that crashed or hung by its own fault, with only one task in flight."""

    at: float  # time of the event loop
    slot: int
    hung: bool


@dataclass(slots=True, eq=False)
class Task(Generic[P, R]):
    """A unit of work. Tasks with equal keys have equal weights and may share a batch."""

    job: Hashable
    payload: P
    key: Hashable
    affinity: int | None  # the only slot that may run it, until that slot's process ends or it is removed
    crash_count: int  # processes that crashed by its fault, while it was their only task
    on_crash: Callable[[int], None]
    size: float  # in the unit of `BatchCost.size_ms`
    weight: int  # memory that it takes, relative to the others: see `Slot.batch_limit`
    continues: bool  # comes before the tasks of its job that do not
    future: asyncio.Future[TaskResult[R]]
    queued_at: float = 0.0  # when it was submitted (time of the event loop)
    deadline: float | None = None  # it is dropped if it was not sent by then (time of the event loop)
    urgent: bool = False  # it comes before those that are not
    passed_over: int = 0  # times that a later task of its job was taken first
    isolated: bool = False  # runs in a batch of its own: it may be what crashes processes
    cancelled: bool = False  # its job was cancelled while the task was in flight
    failed_on: int | None = None  # the slot on which it failed last: another one is better, if there is one
    has_raised: bool = False  # an error, which may not have been its own
    work: Work = field(default_factory=current_work)  # of its caller
    context: Context = field(
        default_factory=copy_context
    )  # of its caller: who observes its batches may need it
    losses: int = 0  # processes that were lost with this task in flight
    tries: int = 0  # processes that have ended, whyever, with only this task in flight
    hangs: int = 0  # of these, those that hung by its fault
    open_suspicions: list["Suspicion"] = field(default_factory=list)  # whose slots are not probed yet
    accusations: list["Suspicion"] = field(default_factory=list)  # whose slots have passed the probe
    has_succeeded: bool = False
    hung_s: float = 0.0  # the longest time after which a process with this task was given up
    crashes_before: int = 0  # `crash_count` when it was submitted


@dataclass(slots=True, eq=False)
class Batch(Generic[P, R]):
    """Tasks that were sent together. Times in Unix seconds, for people: the clock may be set meanwhile."""

    slot: int
    tasks: Sequence[Task[P, R]]
    start: float  # when its process was free for them
    sent: float  # when the process got them; before `start` if it ran another
    began: float  # as `start`, in the time of the event loop
    expected_s: float | None  # what they should take; None if that is not known
    end: float = 0.0  # when they were answered, or the process was gone; 0 while they are in flight
    took_s: float = 0.0  # from its start to its end, whatever the clock says
    parts: Sequence[Part] = ()  # that its process has measured


class Outcome(StrEnum):
    """What became of a batch."""

    OK = "ok"  # its tasks are answered
    FAILED = "failed"  # a task is answered with an error
    REQUEUED = "requeued"  # its tasks are retried
