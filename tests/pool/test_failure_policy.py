"""What failures mean for tasks and slots, event by event. The dispatcher's tests show the same with slots."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from app.pool.failure_policy import (
    MAX_CRASHES,
    MAX_LOSSES,
    MAX_TRIES,
    Action,
    FailSlot,
    FailTask,
    FailurePolicy,
    RecordCrash,
    Requeue,
    RestartSlot,
    restart_reason,
)
from app.pool.tasks import RestartReason, Task, TaskResult

DEVICE_FAILED = DeviceFailed("CUDA failed with error an illegal memory access was encountered")
CRASHED = ProcessCrashed("crashed", fault=Fault.OWN)
KILLED = ProcessCrashed("killed")
SHORT_OF_MEMORY = ProcessCrashed("killed", fault=Fault.MEMORY)
HUNG = ProcessHung("no answer", fault=Fault.OWN)
STOPPED = ProcessHung("no answer")
LOST = ProcessLost("its node is gone")
NO_MODEL = OSError("no such model")


def new_policy(*, retries_errors: bool = False) -> FailurePolicy[str, str]:
    return FailurePolicy("worker", retries_errors=retries_errors)


def new_task(crash_count: int = 0) -> Task[str, str]:
    future = cast(asyncio.Future[TaskResult[str]], None)  # only the dispatcher answers tasks
    task = Task[str, str]("job", "a", None, None, crash_count, lambda count: None, 0.0, 1, False, future)
    task.crashes_before = crash_count
    return task


def failed_slots(actions: Sequence[Action[str, str]]) -> list[int]:
    return [action.slot for action in actions if isinstance(action, FailSlot)]


def test_backoffs_double_up_to_a_minute() -> None:
    policy = new_policy()
    assert [policy.next_backoff(0) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert policy.next_backoff(1) == 1, "each slot has its own"


def test_a_start_ends_the_backoffs_unless_the_device_has_failed() -> None:
    policy = new_policy()
    policy.next_backoff(0)
    policy.after_start(0)
    assert policy.next_backoff(0) == 1
    policy.after_failure(0, [new_task(), new_task()], [], DEVICE_FAILED, 0.0)
    policy.after_start(0)
    assert policy.next_backoff(0) == 2
    policy.after_success(0, [new_task()])
    assert policy.next_backoff(0) == 1


def test_a_slot_fails_at_the_third_crash_in_a_row_of_its_start() -> None:
    policy = new_policy()
    assert [failed_slots(policy.after_failed_start(0, CRASHED)) for _ in range(2)] == [[], []]
    policy.after_start(0)
    assert [failed_slots(policy.after_failed_start(0, CRASHED)) for _ in range(4)] == [[], [], [0], [0]]


def test_a_start_that_raises_another_error_fails_the_slot_at_once() -> None:
    assert new_policy().after_failed_start(1, NO_MODEL) == [FailSlot(1, "no such model")]


@pytest.mark.parametrize("error", [CRASHED, DEVICE_FAILED])
def test_a_crash_takes_the_following_batch_as_well(error: ProcessCrashed) -> None:
    first, second = new_task(), new_task()
    policy = new_policy()
    requeued = [Requeue([second], isolated=False), Requeue([first], isolated=True)]
    assert policy.after_failure(0, [first], [second], error, 0.0) == requeued, "the second one was not begun"
    policy.after_start(0)
    assert (first.crash_count, second.crash_count) == (0, 0), "the first one was not alone in flight"


def test_an_error_leaves_the_following_batch_to_its_process() -> None:
    first, second = new_task(), new_task()
    policy = new_policy()
    requeued = policy.after_failure(0, [first], [second], RequeueBatch("out of memory"), 0.0)
    assert requeued == [Requeue([first], isolated=False)]
    error = ValueError("cannot be done")
    assert policy.after_failure(0, [first], [second], error, 0.0) == [FailTask(first, error)]


@pytest.mark.parametrize("error", [CRASHED, HUNG, DEVICE_FAILED])
def test_a_task_fails_once_three_processes_have_ended_on_it_whose_successors_work(
    error: ProcessCrashed,
) -> None:
    task, policy = new_task(), new_policy()
    for count in range(1, MAX_CRASHES + 1):
        actions = policy.after_failure(0, [task], [], error, 100.0 * count)
        assert actions == ([Requeue([task], isolated=True)] if count < MAX_CRASHES else [])
        assert policy.needs_probe(0)
        actions = policy.after_start(0)
        assert (task.crash_count, task.hangs) == ((0, count) if error is HUNG else (count, 0))
    assert [type(action) for action in actions] == ([] if error is HUNG else [RecordCrash]) + [FailTask]
    assert isinstance(actions[-1], FailTask)
    assert isinstance(actions[-1].error, TaskCrashes)


def test_hangs_and_crashes_count_apart() -> None:
    task, policy = new_task(), new_policy()
    for error in (CRASHED, HUNG, CRASHED, HUNG):
        [requeue] = policy.after_failure(0, [task], [], error, 0.0)
        assert isinstance(requeue, Requeue)
        policy.after_start(0)


@pytest.mark.parametrize("error", [KILLED, STOPPED, SHORT_OF_MEMORY])
def test_a_task_that_is_killed_from_outside_is_set_aside_in_the_end_and_not_accused(
    error: ProcessCrashed,
) -> None:
    task, policy = new_task(), new_policy()
    pauses = []
    for _ in range(MAX_TRIES - 1):
        [requeue] = policy.after_failure(0, [task], [], error, 0.0)
        assert isinstance(requeue, Requeue)
        assert not policy.needs_probe(0)
        pauses.append(requeue.pause_s)
    assert pauses == [0, 0, *sorted(pauses[2:])]
    assert 60 < sum(pauses) < 600, "a verdict within a quarter of an hour, with the starts of processes"
    [failed] = policy.after_failure(0, [task], [], error, 0.0)
    assert isinstance(failed, FailTask)
    assert isinstance(failed.error, Interrupted)
    assert task.crash_count == 0


def test_a_batch_for_which_the_machine_lacks_memory_is_retried_as_it_was() -> None:
    batch = [new_task(), new_task()]
    assert new_policy().after_failure(0, batch, [], SHORT_OF_MEMORY, 0.0) == [Requeue(batch, isolated=False)]


# What else happened when a process crashed on a task that was alone, and whether that excuses the task.
ELSEWHERE = {
    "nothing": False,
    "an idle process died": True,
    "one died whose task has succeeded since": True,
    "one died whose task has not": False,
    "one died a minute before": False,
    "the same slot's process died before": False,
}


@pytest.mark.parametrize("death", [CRASHED, HUNG, KILLED, STOPPED, SHORT_OF_MEMORY, DEVICE_FAILED, LOST])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("elsewhere", ELSEWHERE)
@pytest.mark.parametrize("slots", [1, 2])
def test_who_is_blamed(death: ProcessCrashed, alone: bool, elsewhere: str, slots: int) -> None:
    task, mate, other, policy = new_task(), new_task(), new_task(), new_policy()
    other_slot = 0 if slots == 1 or elsewhere.startswith("the same") else 1
    for at in (100.0, 200.0, 300.0):
        before_s = 60.0 if elsewhere.endswith("before") else 1.0
        if "idle" in elsewhere:
            policy.after_idle_crash(other_slot, at - before_s)
        elif "died" in elsewhere:
            policy.after_failure(other_slot, [other], [new_task()], KILLED, at - before_s)
        if "has succeeded" in elsewhere:
            policy.after_success(other_slot, [other])
        actions = policy.after_failure(0, [task] if alone else [task, mate], [], death, at)
        if death is not LOST:
            actions += policy.after_start(0)
    accuses = death in (CRASHED, HUNG, DEVICE_FAILED) and alone
    is_excused = ELSEWHERE[elsewhere] and slots == 2
    failed = [action.task for action in actions if isinstance(action, FailTask)]
    assert failed == ([task] if accuses and not is_excused else [])
    assert (other.crash_count, other.hangs, mate.crash_count, mate.hangs) == (0, 0, 0, 0)


def test_two_tasks_that_crash_processes_do_not_excuse_each_other() -> None:
    tasks, policy = [new_task(), new_task()], new_policy()
    failed = []
    for at in range(MAX_CRASHES):
        for slot, task in enumerate(tasks):
            policy.after_failure(slot, [task], [], CRASHED, 10.0 * at)
        actions = [action for slot in range(2) for action in policy.after_start(slot)]
        failed += [action.task for action in actions if isinstance(action, FailTask)]
    assert failed == tasks


def test_a_success_that_comes_later_excuses_too() -> None:
    task, victim, policy = new_task(), new_task(), new_policy()
    policy.after_failure(1, [victim], [], CRASHED, 0.0)
    policy.after_failure(0, [task], [], CRASHED, 1.0)
    assert policy.after_start(0) == [RecordCrash(task)]
    policy.after_success(1, [victim])
    for at in (100.0, 200.0):
        policy.after_failure(0, [task], [], CRASHED, at)
        policy.after_start(0)
    assert task.crash_count == 2


def test_a_probe_that_passes_counts_the_failure_of_the_device_as_a_crash() -> None:
    task, policy = new_task(), new_policy()
    assert policy.after_failure(0, [task], [], DEVICE_FAILED, 0.0) == [Requeue([task], isolated=True)]
    assert (policy.needs_probe(0), policy.needs_probe(1)) == (True, False)
    assert task.crash_count == 0, "the device is not probed yet"
    assert policy.after_start(0) == [RecordCrash(task)]
    assert task.crash_count == 1
    assert policy.after_start(0) == [], "it counts once"
    assert policy.needs_probe(0), "until a batch succeeds"
    policy.after_success(0, [new_task()])
    assert not policy.needs_probe(0)


def test_a_lost_process_counts_against_no_task_and_no_slot() -> None:
    tasks, policy = [new_task(), new_task()], new_policy()
    assert policy.after_failure(0, tasks[:1], tasks[1:], LOST, 0.0) == [Requeue(tasks, isolated=False)]
    assert policy.after_failure(0, tasks[:1], [], LOST, 0.0) == [Requeue(tasks[:1], isolated=False)]
    assert [task.crash_count for task in tasks] == [0, 0]
    assert not policy.needs_probe(0)
    assert restart_reason(LOST) == RestartReason.LOST


def test_a_start_that_is_lost_never_fails_its_slot_and_is_retried_within_seconds() -> None:
    policy, pauses = new_policy(), []
    for _ in range(9):
        assert policy.after_failed_start(0, LOST) == []
        pauses.append(policy.next_backoff(0))
    assert pauses == [1, 2, 4, 8, 8, 8, 8, 8, 8]
    assert policy.after_failed_start(0, CRASHED) == [], "the losses do not count as crashes"


def test_a_task_that_is_lost_for_ever_is_isolated_and_then_set_aside() -> None:
    task, other, policy = new_task(), new_task(), new_policy()
    for _ in range(MAX_LOSSES):
        assert not task.isolated
        other.losses = 0
        assert policy.after_failure(0, [task, other], [], LOST, 0.0) == [
            Requeue([task, other], isolated=False)
        ]
    assert (task.isolated, other.isolated) == (True, False)
    while isinstance(actions := policy.after_failure(0, [task], [], LOST, 0.0)[0], Requeue):
        assert actions.isolated
    assert isinstance(actions, FailTask)
    assert isinstance(actions.error, Interrupted)


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_suspicion_ends_without_a_verdict_if_its_process_is_lost(is_removed: bool) -> None:
    task, policy = new_task(), new_policy()
    for slot in range(MAX_CRASHES):
        policy.after_failure(slot, [task], [], DEVICE_FAILED, 0.0)
    assert policy.held == [task]
    ended = policy.after_removal(0) if is_removed else policy.after_failed_start(0, LOST)
    assert ended == [Requeue([task], isolated=True, pause_s=1.0)]
    assert (task.crash_count, len(task.open_suspicions), policy.held) == (0, MAX_CRASHES - 1, [])
    assert policy.needs_probe(0) != is_removed, "its device may still have failed"


def test_a_number_that_is_used_again_has_no_failures() -> None:
    policy = new_policy()
    for _ in range(2):
        policy.after_failed_start(0, CRASHED)
        policy.next_backoff(0)
    assert policy.after_removal(0) == policy.after_removal(7) == []
    assert policy.after_failed_start(0, CRASHED) == []
    assert policy.next_backoff(0) == 1


def test_a_task_is_held_while_the_open_suspicions_would_make_it_fail() -> None:
    task, policy = new_task(), new_policy()
    for slot in range(MAX_CRASHES):
        actions = policy.after_failure(slot, [task], [], DEVICE_FAILED, 0.0)
    assert actions == []
    assert policy.held == [task]
    assert policy.after_start(0) == [RecordCrash(task)]
    assert policy.held == [task], "a crash in place of a suspicion"
    assert policy.after_failed_start(1, DEVICE_FAILED) == [Requeue([task], isolated=True, pause_s=1.0)]
    assert policy.held == []


def test_a_held_task_fails_if_every_device_passes_its_probe() -> None:
    task, policy = new_task(), new_policy()
    for slot in range(MAX_CRASHES):
        policy.after_failure(slot, [task], [], DEVICE_FAILED, 0.0)
    actions = [action for slot in range(MAX_CRASHES) for action in policy.after_start(slot)]
    assert [action.task for action in actions if isinstance(action, FailTask)] == [task]
    assert policy.held == []


@pytest.mark.parametrize(("crash_counts", "quarantined"), [([1], False), ([0], True), ([1, 1], True)])
def test_a_task_that_is_known_to_make_devices_fail_quarantines_no_slot(
    crash_counts: list[int], quarantined: bool
) -> None:
    policy = new_policy()
    failed = []
    for _ in range(MAX_CRASHES):
        batch = [new_task(crash_count) for crash_count in crash_counts]
        failed += failed_slots(policy.after_failure(0, batch, [], DEVICE_FAILED, 0.0))
        policy.after_start(0)
    assert bool(failed) == quarantined


def raise_on_0_and_succeed_on_1(policy: FailurePolicy[str, str]) -> list[Action[str, str]]:
    task = new_task()
    policy.after_failure(0, [task], [], ValueError("of the slot, or of the task?"), 0.0)
    return policy.after_success(1, [task])


def test_five_errors_that_come_from_a_slot_count_as_a_failure_of_its_device() -> None:
    policy = new_policy(retries_errors=True)
    rounds = [[raise_on_0_and_succeed_on_1(policy) for _ in range(5)] for _ in range(3)]
    restart = RestartSlot(0, "tasks that fail on it succeed on other slots")
    assert rounds[:2] == [[[], [], [], [], [restart]]] * 2
    [failed, restarted] = rounds[2].pop()
    assert isinstance(failed, FailSlot)
    assert failed.reason.startswith("quarantined, since its device failed 3 times in a row: tasks that fail")
    assert restarted == restart


def test_errors_of_a_slot_are_forgotten_when_it_succeeds() -> None:
    policy = new_policy(retries_errors=True)
    for _ in range(4):
        raise_on_0_and_succeed_on_1(policy)
    policy.after_success(0, [new_task()])
    assert [raise_on_0_and_succeed_on_1(policy) for _ in range(4)] == [[]] * 4


def test_errors_that_do_not_return_on_the_same_slot_do_not_count_against_it() -> None:
    policy = new_policy(retries_errors=True)
    tasks = [new_task() for _ in range(5)]
    for task in tasks:
        policy.after_failure(0, [task], [], ValueError("now and then"), 0.0)
    assert policy.after_success(0, tasks) == []


ERRORS = [
    DEVICE_FAILED,
    CRASHED,
    KILLED,
    HUNG,
    LOST,
    RequeueBatch("out of memory"),
    ValueError("cannot be done"),
    None,
]
STARTS = [DEVICE_FAILED, CRASHED, LOST, NO_MODEL, None]


@given(st.data())
def test_each_task_is_requeued_held_or_answered_and_none_is_held_for_ever(data: st.DataObject) -> None:
    slots = data.draw(st.integers(1, 4))
    policy = new_policy(retries_errors=data.draw(st.booleans()))
    waiting = [new_task() for _ in range(6)]
    is_running = [True] * slots
    answered: list[Task[str, str]] = []

    def perform(actions: Sequence[Action[str, str]]) -> None:
        for action in actions:
            if isinstance(action, Requeue):
                waiting.extend(action.tasks)
            elif isinstance(action, FailTask):
                answered.append(action.task)

    for _ in range(data.draw(st.integers(0, 30))):
        slot = data.draw(st.integers(0, slots - 1))
        if data.draw(st.sampled_from([False] * 9 + [True])):
            perform(policy.after_removal(slot))  # and another one is added
            is_running[slot] = True
        elif not is_running[slot]:
            error = data.draw(st.sampled_from(STARTS))
            perform(policy.after_start(slot) if error is None else policy.after_failed_start(slot, error))
            is_running[slot] = error is None
            continue
        size = data.draw(st.integers(1, 2))
        batch, waiting[:] = waiting[:size], waiting[size:]
        if not batch:
            continue
        error = data.draw(st.sampled_from(ERRORS))
        if error is None:
            perform(policy.after_success(slot, batch))
            answered += batch
        else:
            perform(policy.after_failure(slot, batch, [], error, 0.0))
            is_running[slot] = not isinstance(error, ProcessCrashed)
        assert all(task.open_suspicions for task in policy.held)
    for slot in range(slots):
        if not is_running[slot]:
            perform(policy.after_failed_start(slot, NO_MODEL))
    assert policy.held == []
    places = Counter(id(task) for task in [*waiting, *answered])
    assert sorted(places.values()) == [1] * 6
