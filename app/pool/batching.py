"""The choice of the next batch among waiting tasks, so that all slots finish at the same time. Pure.

A batch has a fixed cost, and runs as long as its largest task. So tasks of similar size belong together and
batches are full while many tasks wait. The last tasks are dealt out evenly: no last round in which only some
slots are busy, and not many small batches.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

# The last batches are planned once so many full batches for each slot wait, or fewer. Until then every batch
# is full; planning further ahead gives the same result.
PLANNED_ROUNDS = 3
# While many tasks wait, a batch is chosen from so many times its size: enough to find tasks of similar size,
# and few enough that a recording is still transcribed from its beginning to its end.
WINDOW_BATCHES = 4

# Two halves of a batch, one after the other, may take so many times as long before the batch is preferred.
_NO_SAVING = 1.02
_BISECTIONS = 10  # of the bracket around the earliest end: to a tenth of a percent of it


@dataclass(frozen=True, slots=True)
class BatchCost:
    """How long a batch takes, in ms. Only the ratios matter: each slot's own speed is measured."""

    fixed_ms: float = 10.0
    task_ms: float = 50.0
    size_ms: float = 2.0  # for each unit of the largest task's size

    def seconds(self, sizes: Sequence[float]) -> float:
        """The time for a batch of tasks of these sizes (s)."""
        return (self.fixed_ms + self.task_ms * len(sizes) + self.size_ms * max(sizes)) / 1000

    def capacity(self, seconds: float, size: float) -> int:
        """How many tasks a batch of `seconds` may have if its largest has this size."""
        # The small addend keeps rounding from costing a task.
        return int((seconds * 1000 - self.fixed_ms - self.size_ms * size) / self.task_ms + 1e-6)


@dataclass(frozen=True, slots=True)
class SlotEstimate:
    """A slot as planning sees it."""

    free_in: float  # s until its batch in flight is done; 0: it is idle
    ratio: float  # its time for a batch, as a multiple of what `BatchCost` says
    limit: int  # most tasks in one of its batches


def choose_similar(
    sizes: Sequence[float], limit: int, cost: BatchCost, urgent: Sequence[int] = ()
) -> list[int]:
    """The places of a batch of tasks of similar size with place 0 among them; a full one if that saves time.

    `sizes`: of the next tasks in line. The largest `limit` tasks belong together, then the next largest, and
    so on: for Whisper no other grouping takes fewer decoding steps.

    `urgent`: places of tasks that come before all others, whatever their size. If they do not fill a batch,
    the others in it are chosen as if there were no urgent ones. A batch of the others that are most similar
    to a few small urgent tasks would leave the largest in line, for all batches to come.
    """
    if not urgent:
        return _similar_to_first(sizes, range(len(sizes)), limit, cost)
    if len(urgent) >= limit:
        return _similar_to_first(sizes, urgent, limit, cost)
    others = [place for place in range(len(sizes)) if place not in urgent]
    places = [*urgent, *_similar_to_first(sizes, others, limit - len(urgent), cost)]
    return places[: efficient_count(sorted((sizes[place] for place in places), reverse=True), cost)]


def _similar_to_first(
    sizes: Sequence[float], places: Sequence[int], limit: int, cost: BatchCost
) -> list[int]:
    """The group of the first of these places, if they are grouped by size."""
    order = sorted(places, key=lambda place: -sizes[place])
    count = efficient_count([sizes[place] for place in order[:limit]], cost)
    start = order.index(places[0]) // count * count if order else 0
    return order[start : start + count]


def plan_last_batches(
    sizes: Sequence[float], slots: Sequence[SlotEstimate], mine: int, cost: BatchCost
) -> list[int]:
    """The places of the next batch of slot `mine`; none if it is busy and the plan has none for it.

    `sizes`: of all tasks left. They are packed, largest first, for the earliest end that all slots together
    can reach, as MULTIFIT does (Coffman, Garey and Johnson, 1978).
    """
    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    packed = _pack_tightest([sizes[place] for place in order], slots, mine, cost)
    planned = [(start, count) for slot, start, count in packed if slot == mine]
    if not planned and slots[mine].free_in > 0:
        return []
    # A slow slot may have nothing in the plan. When it is idle, it takes the smallest batch all the same: the
    # others may be slower than estimated.
    start, count = planned[0] if planned else (packed[-1][1], packed[-1][2])
    places = order[start : start + min(count, slots[mine].limit)]
    # A batch in flight cannot move to another slot, however wrong the estimate of its time was.
    return places[: efficient_count([sizes[place] for place in places], cost)]


def efficient_count(sizes: Sequence[float], cost: BatchCost) -> int:
    """How many of the tasks make a batch that is faster than two batches of half of them each."""
    count = len(sizes)
    while count > 1:
        half = -(-count // 2)
        apart = cost.seconds(sizes[:half]) + cost.seconds(sizes[half:count])
        if apart > _NO_SAVING * cost.seconds(sizes[:count]):
            break
        count = half
    return count


_Packed = list[tuple[int, int, int]]  # slot, first rank, number of tasks


def _pack_tightest(
    ranked: Sequence[float], slots: Sequence[SlotEstimate], mine: int, cost: BatchCost
) -> _Packed:
    # Full batches on all slots without a pause: no plan ends earlier.
    limit = max(slot.limit for slot in slots)
    full = -(-len(ranked) // limit) * cost.fixed_ms + len(ranked) * cost.task_ms
    work = (full + cost.size_ms * sum(ranked[::limit])) / 1000
    speed = sum(1 / slot.ratio for slot in slots)
    low = (work + sum(slot.free_in / slot.ratio for slot in slots)) / speed
    high = low
    while (best := _pack(ranked, slots, mine, cost, high)) is None:
        low, high = high, high * 1.25 + cost.seconds(ranked[:1])
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        packed = _pack(ranked, slots, mine, cost, middle)
        if packed is None:
            low = middle
        else:
            best, high = packed, middle
    return best


def _pack(
    ranked: Sequence[float], slots: Sequence[SlotEstimate], mine: int, cost: BatchCost, end: float
) -> _Packed | None:
    """Batches that all end within `end` s, or None. The largest tasks go where most time is left."""
    # A heap of (minus the time left, whether it is another slot, slot): the most time left comes first.
    slack = [(-(end - slot.free_in) / slot.ratio, index != mine, index) for index, slot in enumerate(slots)]
    heapq.heapify(slack)
    limits = [slot.limit for slot in slots]
    task_s = cost.task_ms / 1000
    packed: _Packed = []
    rank = 0
    while rank < len(ranked):
        minus_left, other, index = slack[0]
        # `cost.capacity` and `cost.seconds`, without a call: this loop is most of the cost of planning.
        first_s = (cost.fixed_ms + cost.size_ms * ranked[rank]) / 1000
        count = min(limits[index], len(ranked) - rank, int((-minus_left - first_s) / task_s + 1e-6))
        if count < 1:
            return None
        packed.append((index, rank, count))
        heapq.heapreplace(slack, (minus_left + first_s + count * task_s, other, index))
        rank += count
    return packed
