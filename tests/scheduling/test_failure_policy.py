"""What failures mean for tasks and slots, event by event. The dispatcher's tests show the same with slots."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DeviceFailed, ProcessCrashed, ProcessLost, RequeueBatch, TaskCrashes
from app.scheduling.failure_policy import (
    MAX_CRASHES,
    MAX_LOSSES,
    Action,
    FailSlot,
    FailTask,
    FailurePolicy,
    RecordCrash,
    Requeue,
    RestartSlot,
    restart_reason,
)
from app.scheduling.tasks import RestartReason, Task, TaskResult

DEVICE_FAILED = DeviceFailed("CUDA failed with error an illegal memory access was encountered")
CRASHED = ProcessCrashed("killed")
LOST = ProcessLost("its node is gone")
NO_MODEL = OSError("no such model")


def new_policy(*, retries_errors: bool = False) -> FailurePolicy[str, str]:
    return FailurePolicy("worker", retries_errors=retries_errors)


def new_task(crash_count: int = 0) -> Task[str, str]:
    future = cast(asyncio.Future[TaskResult[str]], None)  # only the dispatcher answers tasks
    return Task("job", "a", None, None, crash_count, lambda count: None, 0.0, 1, False, future)


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
    policy.after_failure(0, [new_task(), new_task()], [], DEVICE_FAILED)
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
    assert policy.after_failure(0, [first], [second], error) == requeued, "the second one was not begun"
    policy.after_start(0)
    assert (first.crash_count, second.crash_count) == (0, 0), "the first one was not alone in flight"


def test_an_error_leaves_the_following_batch_to_its_process() -> None:
    first, second = new_task(), new_task()
    policy = new_policy()
    requeued = policy.after_failure(0, [first], [second], RequeueBatch("out of memory"))
    assert requeued == [Requeue([first], isolated=False)]
    error = ValueError("cannot be done")
    assert policy.after_failure(0, [first], [second], error) == [FailTask(first, error)]


def test_a_crash_is_recorded_before_its_task_is_retried_or_fails() -> None:
    task, policy = new_task(), new_policy()
    for _ in range(MAX_CRASHES - 1):
        assert policy.after_failure(0, [task], [], CRASHED) == [
            RecordCrash(task),
            Requeue([task], isolated=True),
        ]
    recorded, failed, requeued = policy.after_failure(0, [task], [], CRASHED)
    assert recorded == RecordCrash(task)
    assert isinstance(failed, FailTask)
    assert isinstance(failed.error, TaskCrashes)
    assert requeued == Requeue([], isolated=True)


def test_a_probe_that_passes_counts_the_failure_of_the_device_as_a_crash() -> None:
    task, policy = new_task(), new_policy()
    assert policy.after_failure(0, [task], [], DEVICE_FAILED) == [Requeue([task], isolated=True)]
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
    assert policy.after_failure(0, tasks[:1], tasks[1:], LOST) == [Requeue(tasks, isolated=False)]
    assert policy.after_failure(0, tasks[:1], [], LOST) == [Requeue(tasks[:1], isolated=False)]
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


def test_a_task_that_is_lost_for_ever_is_isolated_and_then_fails() -> None:
    task, other, policy = new_task(), new_task(), new_policy()
    for _ in range(MAX_LOSSES):
        assert not task.isolated
        other.losses = 0
        assert policy.after_failure(0, [task, other], [], LOST) == [Requeue([task, other], isolated=False)]
    assert (task.isolated, other.isolated) == (True, False)
    for count in range(1, MAX_CRASHES):
        actions = policy.after_failure(0, [task], [], LOST)
        assert actions == [RecordCrash(task), Requeue([task], isolated=True)]
        assert task.crash_count == count
    assert [type(action) for action in policy.after_failure(0, [task], [], LOST)][:2] == [
        RecordCrash,
        FailTask,
    ]


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_suspicion_ends_without_a_verdict_if_its_process_is_lost(is_removed: bool) -> None:
    task, policy = new_task(), new_policy()
    for slot in range(MAX_CRASHES):
        policy.after_failure(slot, [task], [], DEVICE_FAILED)
    assert policy.held == [task]
    ended = policy.after_removal(0) if is_removed else policy.after_failed_start(0, LOST)
    assert ended == [Requeue([task], isolated=True)]
    assert (task.crash_count, task.open_suspicions, policy.held) == (0, MAX_CRASHES - 1, [])
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
        actions = policy.after_failure(slot, [task], [], DEVICE_FAILED)
    assert actions == [Requeue([], isolated=True)]
    assert policy.held == [task]
    assert policy.after_start(0) == [RecordCrash(task), Requeue([], isolated=True)]
    assert policy.held == [task], "a crash in place of a suspicion"
    assert policy.after_failed_start(1, DEVICE_FAILED) == [Requeue([task], isolated=True)]
    assert policy.held == []


def test_a_held_task_fails_if_every_device_passes_its_probe() -> None:
    task, policy = new_task(), new_policy()
    for slot in range(MAX_CRASHES):
        policy.after_failure(slot, [task], [], DEVICE_FAILED)
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
        failed += failed_slots(policy.after_failure(0, batch, [], DEVICE_FAILED))
        policy.after_start(0)
    assert bool(failed) == quarantined


def raise_on_0_and_succeed_on_1(policy: FailurePolicy[str, str]) -> list[Action[str, str]]:
    task = new_task()
    policy.after_failure(0, [task], [], ValueError("of the slot, or of the task?"))
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
        policy.after_failure(0, [task], [], ValueError("now and then"))
    assert policy.after_success(0, tasks) == []


ERRORS = [DEVICE_FAILED, CRASHED, LOST, RequeueBatch("out of memory"), ValueError("cannot be done"), None]
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
            perform(policy.after_failure(slot, batch, [], error))
            is_running[slot] = not isinstance(error, ProcessCrashed)
        assert all(task.open_suspicions for task in policy.held)
    for slot in range(slots):
        if not is_running[slot]:
            perform(policy.after_failed_start(slot, NO_MODEL))
    assert policy.held == []
    places = Counter(id(task) for task in [*waiting, *answered])
    assert sorted(places.values()) == [1] * 6
