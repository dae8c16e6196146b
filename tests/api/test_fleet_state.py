"""Which events bring clients up to date: a snapshot and all events after it are the fleet of now."""

import random
from collections.abc import Sequence
from typing import Any

from app.api.operation.fleet_state import FleetEvent, FleetState
from app.engines.ledger import KEPT_S, Block, JobName
from app.pool.tasks import Outcome

QUEUE = {"clips": 0, "oldest_s": 0.0, "jobs": 0}
NOW = 1_790_000_000.0


def row(slot: int = 0, **changes: object) -> dict[str, object]:
    return {
        "slot": slot, "state": "idle", "error": None, "batches": 0, "clips": 0, "audio_s": 0.0, "gpu": None,
        "working": [],
    } | changes  # fmt: skip


def block(number: int, end: float = NOW) -> Block:
    return Block(number, number % 3, {JobName("job", "9b2e"): 2}, end - 1, end, 8.0, Outcome.OK)


def names(events: Sequence[FleetEvent]) -> list[str]:
    return [event.name for event in events]


def fold(fleet: dict[str, Any], events: Sequence[FleetEvent]) -> dict[str, Any]:
    """The fleet after events, as the documentation tells clients to do."""
    for event in events:
        fleet = fleet | {"time": event.data["time"]}
        if event.name == "workers":
            rows = {row["slot"]: row for row in [*fleet["workers"], *event.data["workers"]]}
            gone = set(event.data["removed"])
            fleet["workers"] = [rows[slot] for slot in sorted(rows.keys() - gone)]
        elif event.name == "block":
            fleet["blocks"] = [*fleet["blocks"], *event.data["blocks"]]
        else:
            fleet["queue"] = event.data["queue"]
    return fleet


def snapshot(state: FleetState, now: float, blocks: Sequence[Block]) -> dict[str, Any]:
    data, recent = state.snapshot(now, blocks)
    return data | {"blocks": [entry.public() for entry in recent]}


def test_nothing_is_sent_if_nothing_changed() -> None:
    state = FleetState()
    assert names(state.update(NOW, [row()], [block(1)], QUEUE)) == ["workers", "block", "queue"]
    for second in range(1, 100):
        assert state.update(NOW + second, [row()], [], dict(QUEUE)) == []


def test_only_changed_rows_are_sent() -> None:
    state = FleetState()
    state.update(NOW, [row(0), row(1)], [], QUEUE)
    [event] = state.update(NOW + 0.1, [row(0), row(1, state="restarting", error="it crashed")], [], QUEUE)
    assert event.data["workers"] == [row(1, state="restarting", error="it crashed")]


def test_workers_that_are_gone_are_named_once() -> None:
    state = FleetState()
    state.update(NOW, [row(0), row(1), row(2)], [], QUEUE)
    [event] = state.update(NOW + 0.1, [row(1)], [], QUEUE)
    assert (event.data["workers"], event.data["removed"]) == ([], [0, 2])
    assert state.update(NOW + 0.2, [row(1)], [], QUEUE) == []
    assert state.snapshot(NOW, [])[0]["workers"] == [row(1)]
    [event] = state.update(NOW + 0.3, [row(0), row(1)], [], QUEUE)
    assert (event.data["workers"], event.data["removed"]) == ([row(0)], [])


def test_counters_alone_are_sent_every_two_seconds() -> None:
    state = FleetState()
    sent = [
        bool(state.update(NOW + tick / 2, [row(batches=tick, clips=tick)], [], QUEUE)) for tick in range(9)
    ]
    assert sent == [True, False, False, False, True, False, False, False, True]
    [event] = state.update(NOW + 4.1, [row(batches=9, state="busy")], [], QUEUE)
    assert event.data["workers"] == [row(batches=9, state="busy")], "counters come along with other changes"


def test_the_queue_is_sent_once_a_second() -> None:
    state = FleetState()
    sent = [bool(state.update(NOW + tick / 2, [], [], QUEUE | {"clips": 10 - tick})) for tick in range(6)]
    assert sent == [True, False, True, False, True, False]


def test_blocks_are_bundled() -> None:
    state = FleetState()
    [event] = state.update(NOW, [], [block(1), block(2)], {})
    assert [entry["id"] for entry in event.data["blocks"]] == [1, 2]
    assert state.last_block == 2


def test_a_snapshot_has_what_the_others_know_and_no_more() -> None:
    state = FleetState()
    state.update(NOW, [row()], [block(1), block(2)], QUEUE)
    old = block(0, NOW - KEPT_S - 1)
    fleet = snapshot(state, NOW, [old, block(1), block(2), block(3)])
    assert fleet == {
        "time": NOW,
        "workers": [row()],
        "queue": QUEUE,
        "blocks": [block(1).public(), block(2).public()],
    }


def test_a_snapshot_and_the_events_after_it_are_a_later_snapshot() -> None:
    chance = random.Random(1)
    state, kept = FleetState(), [block(1)]
    rows = {slot: row(slot) for slot in range(4)}
    state.update(NOW, list(rows.values()), kept, QUEUE)
    fleet = snapshot(state, NOW, kept)
    for tick in range(1, 400):
        now = NOW + tick / 2
        for slot in chance.sample(range(5), chance.randrange(3)):
            change = chance.choice(["state", "batches", "error", "gpu"])
            if chance.random() < 0.2:
                rows.pop(slot, None)
            else:
                rows[slot] = rows.get(slot, row(slot)) | {change: chance.randrange(3)}
        new = [block(len(kept) + number + 1, now) for number in range(chance.randrange(3))]
        kept += new
        queue = {"clips": chance.randrange(2), "oldest_s": 0.0, "jobs": chance.randrange(2)}
        fleet = fold(fleet, state.update(now, list(rows.values()), new, queue))
        assert fleet | {"time": 0} == snapshot(state, now, kept) | {"time": 0}
    state.update(now + 5, list(rows.values()), [], queue)
    assert state.snapshot(now, [])[0]["workers"] == [rows[slot] for slot in sorted(rows)]
    assert state.snapshot(now, [])[0]["queue"] == queue
