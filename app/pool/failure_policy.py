"""The policy for failures: whether a task or a slot is at fault, and what follows for both. Pure.

A process that crashes or hangs by its own fault, with a single task, puts that task under suspicion. Once the
slot's next process has passed its probe, the task is accused. A crash elsewhere at the same time excuses it
if that process was idle, or its tasks have succeeded since. A task whose process is killed from outside is
not accused: it is tried again, up to a limit.

The policy keeps the counts and the open suspicions, and answers each event with actions. The dispatcher
performs them in this order. Times are those of its event loop, in s.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import structlog

from app.common.errors import (
    DeviceFailed,
    Fault,
    Interrupted,
    ProcessCrashed,
    ProcessHung,
    ProcessLost,
    RequeueBatch,
    TaskCrashes,
)
from app.common.known_errors import explain
from app.pool.tasks import RestartReason, Suspicion, Task

P = TypeVar("P")
R = TypeVar("R")

MAX_CRASHES = 3  # of processes that had only this task in flight, before the task fails; as many may hang
MAX_TRIES = 12  # of a task that was alone in processes that ended, whyever, before it is set aside
MAX_LOSSES = 8  # of processes that had this task in flight, before it is isolated
_AT_ONCE_S = 5.0  # between crashes that may have one cause
_KNOWN_CRASHES = 64  # the last ones
_TRIES_WITHOUT_PAUSE = 2
_MAX_PAUSE_S = 120.0  # before a try: all of them end within a quarter of an hour
_MAX_START_CRASHES = 3  # in a row, before the slot counts as failed
_MAX_DEVICE_FAILURES = 3  # without a batch that succeeds between them, before the slot is quarantined
_MAX_SLOT_ERRORS = 5  # that tasks raise on one slot only, before its process is replaced
_FIRST_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0
_MAX_LOST_BACKOFFS = 3  # that double the pause: a node that is back has its workers within 8 s

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RecordCrash(Generic[P, R]):
    """Report the task's new `crash_count` to its `on_crash`."""

    task: Task[P, R]


@dataclass(frozen=True, slots=True)
class FailTask(Generic[P, R]):
    """Answer the task with an error."""

    task: Task[P, R]
    error: Exception


@dataclass(frozen=True, slots=True)
class Requeue(Generic[P, R]):
    """Return tasks to the head of the queue, after a pause; `isolated`: each for a batch of its own."""

    tasks: Sequence[Task[P, R]]
    isolated: bool
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class FailSlot:
    """Take a slot out of service until a later start succeeds."""

    slot: int
    reason: str


@dataclass(frozen=True, slots=True)
class RestartSlot:
    """Replace a slot's process."""

    slot: int
    reason: str


Action = RecordCrash[P, R] | FailTask[P, R] | Requeue[P, R] | FailSlot | RestartSlot


@dataclass(slots=True)
class _Health(Generic[P, R]):
    """What went wrong with a slot since its last batch that succeeded."""

    start_crashes: int = 0
    device_failures: int = 0
    errors: int = 0  # of tasks that succeeded on another slot
    backoffs: int = 0
    suspicion: Suspicion | None = None  # against the only task that was in flight
    suspect: Task[P, R] | None = None  # that task


@dataclass(frozen=True, slots=True)
class _Crash(Generic[P, R]):
    """A process that has ended by itself, or was killed by something else."""

    at: float
    slot: int
    victims: Sequence[Task[P, R]]  # none: it was idle


class FailurePolicy(Generic[P, R]):
    """Decides what follows from each failure in a pool of slots."""

    def __init__(self, pool: str, *, retries_errors: bool = False) -> None:
        """`pool` names it in logs. `retries_errors`: see `Dispatcher`."""
        self._pool = pool
        self._retries_errors = retries_errors
        self._health: defaultdict[int, _Health[P, R]] = defaultdict(_Health[P, R])  # by slot
        self._crashes: deque[_Crash[P, R]] = deque(maxlen=_KNOWN_CRASHES)
        self.held: list[Task[P, R]] = []  # those that the open suspicions would make fail

    def after_removal(self, slot: int) -> list[Action[P, R]]:
        """A slot is removed. Another one with its number starts with no failures."""
        health = self._health.pop(slot, None)
        return self._end_suspicion(health, is_task_at_fault=False) if health is not None else []

    def needs_probe(self, slot: int) -> bool:
        """Whether a slot's new process must show that the device works."""
        health = self._health[slot]
        return health.device_failures > 0 or health.suspicion is not None

    def next_backoff(self, slot: int) -> float:
        """The time before the slot's next start (s), which grows with every call."""
        health = self._health[slot]
        backoff_s: float = _FIRST_BACKOFF_S * 2**health.backoffs
        health.backoffs += backoff_s < _MAX_BACKOFF_S
        return min(backoff_s, _MAX_BACKOFF_S)

    def after_start(self, slot: int) -> list[Action[P, R]]:
        """A process has started, and has passed its probe if it needed one."""
        health = self._health[slot]
        health.start_crashes = 0
        if not health.device_failures:
            health.backoffs = 0
        return self._end_suspicion(health, is_task_at_fault=True)

    def after_failed_start(self, slot: int, error: Exception) -> list[Action[P, R]]:
        """A process has not started, or has not passed its probe."""
        health = self._health[slot]
        actions = self._end_suspicion(health, is_task_at_fault=False)
        if isinstance(error, DeviceFailed):
            return actions + self._count_device_failure(slot, error)
        if isinstance(error, ProcessLost):
            health.backoffs = min(health.backoffs, _MAX_LOST_BACKOFFS)
            return actions
        # A crash may have a cause outside the slot, so the first ones are only retried.
        health.start_crashes += isinstance(error, ProcessCrashed)
        if not isinstance(error, ProcessCrashed) or health.start_crashes >= _MAX_START_CRASHES:
            actions.append(FailSlot(slot, explain(error)))
        return actions

    def after_success(self, slot: int, batch: Sequence[Task[P, R]]) -> list[Action[P, R]]:
        """A batch succeeded. If a task of it raised an error on another slot, that slot was at fault."""
        health = self._health[slot]
        health.start_crashes = health.device_failures = health.errors = health.backoffs = 0
        actions: list[Action[P, R]] = []
        for task in batch:
            task.has_succeeded = True
            if task.has_raised and task.failed_on is not None and task.failed_on != slot:
                actions += self._count_slot_error(task.failed_on)
        return actions

    def after_idle_crash(self, slot: int, now: float) -> None:
        """A process has ended that had nothing to do."""
        self._crashes.append(_Crash(now, slot, ()))

    def after_failure(
        self,
        slot: int,
        batch: Sequence[Task[P, R]],
        following: Sequence[Task[P, R]],
        error: Exception,
        now: float,
    ) -> list[Action[P, R]]:
        """A batch failed. `following`: tasks that the process had not begun; a crash takes them as well.

        Tasks with deadlines are not retried, unless no task of the batch is at fault for certain.
        """
        if isinstance(error, RequeueBatch):
            log.warning("batch requeued", pool=self._pool, tasks=len(batch), reason=error.message)
            return [Requeue(batch, isolated=False)]
        is_alone = len(batch) == 1 and not following
        if isinstance(error, ProcessLost):
            batch, following = [*batch, *following], ()
            actions = self._after_loss(slot, batch, error)
        elif isinstance(error, ProcessCrashed):
            actions = self._after_crash(slot, batch, error, now, is_alone=is_alone)
        else:
            return _without_late_retries(self._after_error(slot, batch, error), error)
        if following:
            actions.insert(0, Requeue(following, isolated=False))
        return _without_late_retries(actions, error)

    def _after_crash(
        self, slot: int, batch: Sequence[Task[P, R]], error: ProcessCrashed, now: float, *, is_alone: bool
    ) -> list[Action[P, R]]:
        """Retry the tasks of a process that has ended or whose device has failed.

        One by one, so that the one at fault is found; but as they were if the machine lacked memory for all
        of them.
        """
        what = "device failed" if isinstance(error, DeviceFailed) else "process crashed"
        how = {"error": error.message, "exit_status": error.exit_status, "fault": error.fault.value}
        log.warning(what, pool=self._pool, slot=slot, tasks=len(batch), **how)
        self._crashes.append(_Crash(now, slot, batch))
        if error.fault is Fault.MEMORY and len(batch) > 1:
            return [Requeue(batch, isolated=False)]
        known_to_crash = is_alone and batch[0].crash_count > 0
        if is_alone:
            [task] = batch
            task.tries += 1
            is_own = error.fault is Fault.OWN or isinstance(error, DeviceFailed)
            if is_own and task.deadline is None:
                hung = restart_reason(error) is RestartReason.HANG
                self._health[slot].suspicion = suspicion = Suspicion(now, slot, hung)
                self._health[slot].suspect, task.failed_on = task, slot
                task.open_suspicions.append(suspicion)
        actions = self._retry_suspects(batch)
        if isinstance(error, DeviceFailed) and not known_to_crash:  # else the task makes devices fail
            actions += self._count_device_failure(slot, error)
        return actions

    def _after_loss(self, slot: int, batch: Sequence[Task[P, R]], error: ProcessLost) -> list[Action[P, R]]:
        """Retry the tasks of a lost process as they were: none of them is at fault.

        But a task may be what takes nodes down, and would do so for ever. So one that was lost too often is
        isolated, and each later loss counts as a try.
        """
        log.warning("process lost", pool=self._pool, slot=slot, tasks=len(batch), error=error.message)
        if len(batch) == 1 and batch[0].losses >= MAX_LOSSES:
            batch[0].tries += 1
            return self._retry_suspects(batch)
        for task in batch:
            task.losses += 1
            task.isolated = task.isolated or task.losses >= MAX_LOSSES
        return [Requeue(batch, isolated=False)]

    def _after_error(self, slot: int, batch: Sequence[Task[P, R]], error: Exception) -> list[Action[P, R]]:
        """Retry the tasks of a larger batch one by one, and a single task once, on another slot.

        A single task that raises an error again has failed.
        """
        if len(batch) > 1:
            log.warning("batch failed", pool=self._pool, tasks=len(batch), error=repr(error))
            return [Requeue(batch, isolated=True)]
        [task] = batch
        if self._retries_errors and not task.has_raised:
            log.warning("task failed", pool=self._pool, slot=slot, error=repr(error))
            task.failed_on, task.has_raised = slot, True
            return [Requeue(batch, isolated=True)]
        return [FailTask(task, error)]

    def _end_suspicion(self, health: _Health[P, R], *, is_task_at_fault: bool) -> list[Action[P, R]]:
        task, suspicion = health.suspect, health.suspicion
        health.suspect = health.suspicion = None
        if task is None or suspicion is None:
            return []
        task.open_suspicions.remove(suspicion)
        actions: list[Action[P, R]] = []
        if is_task_at_fault:
            task.accusations.append(suspicion)
            actions = self._count(task)
        if task in self.held:
            self.held.remove(task)
            actions += self._retry_suspects([task])
        return actions

    def _count(self, task: Task[P, R]) -> list[Action[P, R]]:
        """Count the accusations of a task that nothing excuses. Later successes may excuse more of them.

        A crash excuses one accusation: of the same time, on another slot, if its process was idle or its
        tasks have succeeded since.
        """
        excuses = [crash for crash in self._crashes if all(victim.has_succeeded for victim in crash.victims)]
        standing = []
        for accusation in task.accusations:
            for crash in excuses:
                if crash.slot != accusation.slot and abs(crash.at - accusation.at) <= _AT_ONCE_S:
                    excuses.remove(crash)
                    break
            else:
                standing.append(accusation)
        task.hangs = sum(accusation.hung for accusation in standing)
        before, task.crash_count = task.crash_count, task.crashes_before + len(standing) - task.hangs
        return [RecordCrash(task)] if task.crash_count != before else []

    def _retry_suspects(self, batch: Sequence[Task[P, R]]) -> list[Action[P, R]]:
        """Retry tasks, each in a batch of its own, except those that had their last chance."""
        actions: list[Action[P, R]] = []
        retried: defaultdict[float, list[Task[P, R]]] = defaultdict(list)  # by their pauses
        for task in batch:
            actions += self._count(task)
            hangs = sum(suspicion.hung for suspicion in task.open_suspicions)
            crashes = len(task.open_suspicions) - hangs
            if error := _verdict(task):
                actions.append(FailTask(task, error))
            elif task.crash_count + crashes >= MAX_CRASHES or task.hangs + hangs >= MAX_CRASHES:
                self.held.append(task)
            else:
                retried[_pause_s(task.tries)].append(task)
        return [*actions, *(Requeue(tasks, isolated=True, pause_s=s) for s, tasks in retried.items())]

    def _count_device_failure(self, slot: int, error: DeviceFailed) -> list[Action[P, R]]:
        health = self._health[slot]
        health.device_failures += 1
        if health.device_failures < _MAX_DEVICE_FAILURES:
            return []
        reason = f"quarantined, since its device failed {health.device_failures} times in a row"
        return [FailSlot(slot, f"{reason}: {explain(error)}")]

    def _count_slot_error(self, slot: int) -> list[Action[P, R]]:
        """A task that raised an error on this slot has succeeded on another."""
        health = self._health[slot]
        health.errors += 1
        if health.errors < _MAX_SLOT_ERRORS:
            return []
        health.errors = 0
        error = DeviceFailed("tasks that fail on it succeed on other slots")
        return [*self._count_device_failure(slot, error), RestartSlot(slot, error.message)]


def _without_late_retries(actions: Sequence[Action[P, R]], error: Exception) -> list[Action[P, R]]:
    """Fail the tasks with deadlines that the actions would requeue: a retry would come late."""
    changed: list[Action[P, R]] = []
    for action in actions:
        if isinstance(action, Requeue):
            changed += [FailTask(task, error) for task in action.tasks if task.deadline is not None]
            kept = [task for task in action.tasks if task.deadline is None]
            action = replace(action, tasks=kept)
        changed.append(action)
    return changed


def restart_reason(error: Exception) -> RestartReason:
    """Why a process is replaced that has failed with an error."""
    if isinstance(error, ProcessHung) or isinstance(error.__cause__, ProcessHung):
        return RestartReason.HANG
    if isinstance(error, ProcessLost):
        return RestartReason.LOST
    return RestartReason.DEVICE if isinstance(error, DeviceFailed) else RestartReason.CRASH


def crashes_processes(count: int) -> TaskCrashes:
    """The error of a task on which so many processes crashed."""
    return TaskCrashes(f"{count} processes crashed on it")


def _pause_s(tries: int) -> float:
    """How long a task waits before its next try (s)."""
    if tries <= _TRIES_WITHOUT_PAUSE:
        return 0.0
    return min(2.0 ** (tries - _TRIES_WITHOUT_PAUSE - 1), _MAX_PAUSE_S)


def _verdict(task: Task[P, R]) -> Exception | None:
    """The error of a task that is not tried again; None if it is."""
    if task.crash_count >= MAX_CRASHES:
        return crashes_processes(task.crash_count)
    if task.hangs >= MAX_CRASHES:
        return TaskCrashes(f"{task.hangs} processes hung on it")
    if task.tries >= MAX_TRIES:
        return Interrupted(
            f"{task.tries} processes ended while they worked on it, and why is not known: perhaps the "
            "machine lacks memory, or something kills the service's processes",
            code="interrupted",
        )
    return None
