"""What a failure means: whether a task or a slot is at fault, and what follows for both.

The policy keeps the counts and the open suspicions, and answers each event with actions. The dispatcher
performs them in this order.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from app.errors import DeviceFailed, ProcessCrashed, ProcessHung, ProcessLost, RequeueBatch, TaskCrashes
from app.known_errors import explain
from app.scheduling.tasks import RestartReason, Task

P = TypeVar("P")
R = TypeVar("R")

MAX_CRASHES = 3  # of processes that had only this task in flight, before the task fails
MAX_LOSSES = 8  # of processes that had this task in flight, before a loss may count as a crash
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
    """Return tasks to the head of the queue; `isolated`: each for a batch of its own."""

    tasks: Sequence[Task[P, R]]
    isolated: bool


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
    suspect: Task[P, R] | None = None  # the only task in flight when the device failed


class FailurePolicy(Generic[P, R]):
    """Decides what follows from each failure in a pool of slots."""

    def __init__(self, pool: str, *, retries_errors: bool = False) -> None:
        """`pool` names it in logs. `retries_errors`: see `Dispatcher`."""
        self._pool = pool
        self._retries_errors = retries_errors
        self._health: defaultdict[int, _Health[P, R]] = defaultdict(_Health[P, R])  # by slot
        self.held: list[Task[P, R]] = []  # those that the open suspicions would make fail

    def after_removal(self, slot: int) -> list[Action[P, R]]:
        """A slot is removed. Another one with its number starts with no failures."""
        health = self._health.pop(slot, None)
        return self._end_suspicion(health, is_task_at_fault=False) if health is not None else []

    def needs_probe(self, slot: int) -> bool:
        """Whether a slot's new process must show that the device works."""
        health = self._health[slot]
        return health.device_failures > 0 or health.suspect is not None

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
            if task.has_raised and task.failed_on is not None and task.failed_on != slot:
                actions += self._count_slot_error(task.failed_on)
        return actions

    def after_failure(
        self, slot: int, batch: Sequence[Task[P, R]], following: Sequence[Task[P, R]], error: Exception
    ) -> list[Action[P, R]]:
        """A batch failed. `following`: tasks that the process had not begun; a crash takes them as well.

        Tasks with deadlines are not retried, unless no task of the batch is at fault for certain.
        """
        if isinstance(error, RequeueBatch):
            log.warning("batch requeued", pool=self._pool, tasks=len(batch), reason=error.message)
            return [Requeue(batch, isolated=False)]
        is_alone = len(batch) == 1 and not following
        if isinstance(error, DeviceFailed):
            actions = self._after_device_failure(slot, batch, error, is_alone=is_alone)
        elif isinstance(error, ProcessLost):
            batch, following = [*batch, *following], ()
            actions = self._after_loss(slot, batch, error)
        elif isinstance(error, ProcessCrashed):
            actions = self._after_crash(batch, error, is_alone=is_alone)
        else:
            return _without_late_retries(self._after_error(slot, batch, error), error)
        if following:
            actions.insert(0, Requeue(following, isolated=False))
        return _without_late_retries(actions, error)

    def _after_crash(
        self, batch: Sequence[Task[P, R]], error: ProcessCrashed, *, is_alone: bool
    ) -> list[Action[P, R]]:
        """Retry the tasks of a crashed process one by one: so the one at fault is found."""
        how = {"error": error.message, "exit_status": error.exit_status}
        log.warning("process crashed", pool=self._pool, tasks=len(batch), **how)
        return [*([_count_crash(batch[0])] if is_alone else []), *self._retry_suspects(batch)]

    def _after_loss(self, slot: int, batch: Sequence[Task[P, R]], error: ProcessLost) -> list[Action[P, R]]:
        """Retry the tasks of a lost process as they were: none of them is at fault.

        But a task may be what takes nodes down, and would do so for ever. So one that was lost too often is
        isolated, and each later loss counts as a crash.
        """
        log.warning("process lost", pool=self._pool, slot=slot, tasks=len(batch), error=error.message)
        if len(batch) == 1 and batch[0].losses >= MAX_LOSSES:
            return [_count_crash(batch[0]), *self._retry_suspects(batch)]
        for task in batch:
            task.losses += 1
            task.isolated = task.isolated or task.losses >= MAX_LOSSES
        return [Requeue(batch, isolated=False)]

    def _after_device_failure(
        self, slot: int, batch: Sequence[Task[P, R]], error: DeviceFailed, *, is_alone: bool
    ) -> list[Action[P, R]]:
        """Retry the tasks one by one. The slot's next process shows whether a task was at fault.

        If that process passes its probe, the device works, and the failure counts as a crash of the only
        task in flight.
        """
        log.warning("device failed", pool=self._pool, slot=slot, tasks=len(batch), error=error.message)
        if is_alone and batch[0].deadline is None:
            self._health[slot].suspect = batch[0]
            batch[0].failed_on = slot
            batch[0].open_suspicions += 1
        actions = self._retry_suspects(batch)
        if not is_alone or not batch[0].crash_count:  # else the task is known to make devices fail
            actions += self._count_device_failure(slot, error)
        return actions

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
        task, health.suspect = health.suspect, None
        if task is None:
            return []
        task.open_suspicions -= 1
        actions: list[Action[P, R]] = [_count_crash(task)] if is_task_at_fault else []
        if task in self.held:
            self.held.remove(task)
            actions += self._retry_suspects([task])
        return actions

    def _retry_suspects(self, batch: Sequence[Task[P, R]]) -> list[Action[P, R]]:
        """Retry tasks, each in a batch of its own, except those that had their last chance."""
        actions: list[Action[P, R]] = []
        retried = []
        for task in batch:
            if task.crash_count >= MAX_CRASHES:
                actions.append(FailTask(task, crashes_processes(task.crash_count)))
            elif task.crash_count + task.open_suspicions >= MAX_CRASHES:
                self.held.append(task)
            else:
                retried.append(task)
        return [*actions, Requeue(retried, isolated=True)]

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
            action = Requeue([task for task in action.tasks if task.deadline is None], action.isolated)
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


def _count_crash(task: Task[P, R]) -> RecordCrash[P, R]:
    task.crash_count += 1
    return RecordCrash(task)
