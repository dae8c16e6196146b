"""Which of the queued clips make the next batch, so that all slots come to their end at the same time. Pure.

A batch costs something whatever is in it, and decodes for as long as its longest clip does. So clips of
like length belong together, batches want to be full while many tasks wait, and towards the end what is
left has to be dealt out evenly: neither a last round in which a few slots are busy, nor many small batches.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

# The end is planned when no more is queued than so many full batches for each slot. Before that all batches
# are full; a plan that looks further ahead comes out the same.
ROUNDS = 3
# While many tasks wait, a batch is chosen among so many times its size: enough for clips of like length to
# be found, and little enough that the recording is still heard from its beginning to its end.
WINDOW_BATCHES = 4

# A batch whose halves, one after the other, take less than so many times as long saves nothing worth having.
_NO_SAVING = 1.02
_BISECTIONS = 10  # of the bracket around the best end: to a tenth of a percent of it


@dataclass(frozen=True, slots=True)
class BatchCost:
    """What a batch takes, in ms: only the ratios matter, as each slot's pace is measured."""

    fixed_ms: float = 10.0
    task_ms: float = 50.0
    size_ms: float = 2.0  # for each unit of the largest task's size

    def seconds(self, lengths: Sequence[float]) -> float:
        """The time for a batch of clips with so many tokens each, in s."""
        return (self.fixed_ms + self.task_ms * len(lengths) + self.size_ms * max(lengths)) / 1000

    def room(self, seconds: float, length: float) -> int:
        """How many clips a batch may have that is to take `seconds`, its longest having `length` tokens."""
        # A hair more, so that rounding does not cost a clip.
        return int((seconds * 1000 - self.fixed_ms - self.size_ms * length) / self.task_ms + 1e-6)


@dataclass(frozen=True, slots=True)
class SlotEstimate:
    """A slot as planning sees it."""

    free_in: float  # s until it has done what it has in hand; 0: it is idle
    pace: float  # its time for a batch, as a multiple of what `BatchCost` says
    limit: int  # most clips in one of its batches


def choose_similar(lengths: Sequence[float], limit: int, cost: BatchCost) -> list[int]:
    """The places of a batch that holds place 0, of clips of like length; a full one, where that saves time.

    `lengths`: expected tokens of the clips that are next in line. The longest `limit` belong together, the
    next longest, and so on: no other grouping makes fewer decoding steps.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    size = _saving_size([lengths[place] for place in order[:limit]], cost)
    start = order.index(0) // size * size
    return order[start : start + size]


def plan_last_batches(
    lengths: Sequence[float], slots: Sequence[SlotEstimate], mine: int, cost: BatchCost
) -> list[int]:
    """The places of the batch that slot `mine`, which is idle, is to do next; never none.

    `lengths`: expected tokens of all clips that are left. They are packed, longest first, for the earliest
    end that all slots together can make, as MULTIFIT does (Coffman, Garey and Johnson, 1978).
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    packed = _pack_tightest([lengths[place] for place in order], slots, mine, cost)
    # A slow slot, for which the plan has nothing, does the least of it all the same: the others may be
    # slower than they were.
    start, size = next(
        ((start, size) for slot, start, size in packed if slot == mine), (packed[-1][1], packed[-1][2])
    )
    places = order[start : start + min(size, slots[mine].limit)]
    # What a slot has in hand goes to no other, however wrong the plan was about the time that it takes.
    return places[: _saving_size([lengths[place] for place in places], cost)]


def _saving_size(lengths: Sequence[float], cost: BatchCost) -> int:
    """How many of the clips are to be heard at once, where they could as well be heard in several batches."""
    size = len(lengths)
    while size > 1:
        half = -(-size // 2)
        apart = cost.seconds(lengths[:half]) + cost.seconds(lengths[half:size])
        if apart > _NO_SAVING * cost.seconds(lengths[:size]):
            break
        size = half
    return size


_Packed = list[tuple[int, int, int]]  # slot, first rank, number of clips


def _pack_tightest(
    ranked: Sequence[float], slots: Sequence[SlotEstimate], mine: int, cost: BatchCost
) -> _Packed:
    # Full batches on all slots, and nobody waits: no plan ends earlier.
    limit = max(slot.limit for slot in slots)
    full = -(-len(ranked) // limit) * cost.fixed_ms + len(ranked) * cost.task_ms
    work = (full + cost.size_ms * sum(ranked[::limit])) / 1000
    speed = sum(1 / slot.pace for slot in slots)
    low = (work + sum(slot.free_in / slot.pace for slot in slots)) / speed
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
    """Batches that are all done after `end` s, or None: the longest clips left go where most time is left."""
    rooms = [(-(end - slot.free_in) / slot.pace, index != mine, index) for index, slot in enumerate(slots)]
    heapq.heapify(rooms)
    packed: _Packed = []
    rank = 0
    while rank < len(ranked):
        room, other, index = rooms[0]
        size = min(slots[index].limit, len(ranked) - rank, cost.room(-room, ranked[rank]))
        if size < 1:
            return None
        packed.append((index, rank, size))
        heapq.heapreplace(
            rooms,
            (room + cost.seconds(ranked[rank : rank + 1]) + (size - 1) * cost.task_ms / 1000, other, index),
        )
        rank += size
    return packed
