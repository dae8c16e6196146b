"""How many GPUs a front end keeps busy, computed from costs."""

import pytest

from bench.capacity import PARTS, Costs, Part, capacity_table

COSTS = Costs(
    windows_per_hour=150,
    jobs_s=3.0,
    dispatcher_ms={8: 0.5, 64: 1.0, 1000: 2.0},
    decoding_s=5.0,
    speech_s=10.0,
    sqlite_clips_per_s=500,
    postgresql_clips_per_s=300,
    server_send_ms=0.0,
    bridge_ms=2.0,
    raylet_ms=1.0,
    node_ms=4.0,
)
BY_NAME = {part.name: part for part in PARTS}


@pytest.mark.parametrize("part", PARTS, ids=BY_NAME)
@pytest.mark.parametrize("speed", [100, 400])
def test_a_part_is_full_at_the_last_number_of_gpus_within_its_limit(part: Part, speed: float) -> None:
    gpus = part.full_at(COSTS, speed)
    assert gpus > 0
    assert part.used(COSTS, gpus, speed) <= 1 < part.used(COSTS, gpus + 1, speed)


def test_shares_are_those_computed_by_hand() -> None:
    # 36 GPUs of 100 times real time transcribe an hour each second.
    assert BY_NAME["bridge to Ray"].used(COSTS, 36, 100) == pytest.approx(150 * 0.002)
    assert BY_NAME["database, SQLite"].used(COSTS, 36, 100) == pytest.approx(150 / 500)
    assert BY_NAME["server's process"].used(COSTS, 36, 100) == pytest.approx(3.0 + 150 * 0.00025)
    assert BY_NAME["network, sending PCM"].used(COSTS, 36, 100) == pytest.approx(3600 * 16_000 * 16 / 10e9)


@pytest.mark.parametrize(
    ("slots", "ms"), [(8, 0.5), (36, 0.75), (64, 1.0), (532, 1.5), (1000, 2.0), (1936, 3.0)]
)
def test_the_dispatcher_costs_are_on_a_line_between_measured_ones(slots: int, ms: float) -> None:
    assert COSTS.dispatcher_on(slots) == pytest.approx(ms)


def test_the_part_that_is_full_first_comes_first() -> None:
    _, _, *rows = capacity_table(COSTS)
    assert len(rows) == len(PARTS)
    assert rows[0].startswith("| server's process | 1 core |")
    full = [int(row.split("|")[-3].split(" · ")[0].replace(",", "")) for row in rows]
    assert full == sorted(full)
