"""A lower bound for the time that any schedule needs to decode the windows of a set of clips. Pure.

A batch of windows costs fixed + window x (number of windows, `limit` at most) + token x (tokens of the
longest). The host computes its features first: host x (number of windows), while the device decodes another
batch, if it has one. Windows are given by their tokens. A clip's next window is known when the one before is
decoded, so its features are computed after that.

The chain: the windows of one clip are in different batches, one after the other. Each of them takes at least
host + fixed + window + token x its tokens, so the clip takes at least the sum.

All other bounds leave the order of a clip's windows out: without it, every schedule is still possible, so the
shortest one is not longer. They are computed with the host's work, and once more without it: no device begins
earlier than host, so a bound without it holds from then on.

A bound for a subset of the windows is a bound for all of them. So each bound below is computed for the r
longest windows, for several r, and the greatest counts: with a small r the windows are long, with a large r
they are many. For such a subset, with n windows d1 >= d2 >= ... >= dn on k slots:

1. The longest window is in some batch, which takes at least host + fixed + window + token x d1.
2. The fullest slot: some slot decodes m >= ceil(n / k) windows in b >= ceil(m / limit) batches.
   - The longest tokens of its batches, in order, are at least those of its windows number 1, limit + 1,
     2 x limit + 1, ... in descending order. These are at least those of the m shortest windows of all.
   - Its device waits for the features of its first batch. The others hold limit windows at most, so the first
     holds at least max(1, m - limit x (b - 1)). From b = ceil(m / limit) + 1 on, a further batch only costs
     more.
3. The work. Let the schedule have B batches on u <= k slots, and end at T.
   - Rank the batches by their longest window. The j - 1 batches before rank j hold at most limit x (j - 1)
     windows, so the longest window of batch j is at least d(limit x (j - 1) + 1). Batches beyond
     ceil(n / limit) have at least dn. All batches together take at least
     W(B) = fixed x B + window x n + token x (the sum of these lengths).
   - The devices wait for the features of the first batches on the u slots. The other B - u batches hold at
     most limit x (B - u) windows, so the first ones hold at least max(u, n - limit x (B - u)).
   - A batch whose longest window is d ends by T only if it has at most
     min(limit, (T - fixed - token x d) / (window + host)) windows. Filling batches greedily in descending
     order needs the fewest batches (each batch then begins at the shortest possible window). B is at least
     that number.
   - A slot with b batches decodes, and waits for the first of them, for at most T, and at most for b full
     batches of the longest window and the features of one. The sum over the slots must reach W(B) and the
     waits. It is concave in each b, so it is greatest if the batches are distributed evenly. This is why 5
     full batches on 4 slots cost more than 5/4.
   - Without work of the host, two batches on one slot with at most `limit` windows in total cost less as one
     batch. So a slot needs two batches only if it decodes limit + 1 windows, which takes at least
     2 x fixed + window x (limit + 1) + token x (the longest and the shortest of the limit + 1 shortest
     windows). A schedule that ends earlier has at most one batch on each slot: B <= k.
   A T for which no B and u satisfy all of these is impossible. Possibility is monotone in T, so bisection
   finds the least possible T, from below.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from app.pool.batching import BatchCost

_BISECTIONS = 20
_SUBSETS = 40  # sizes of subsets that are tried, in addition to the multiples of the number of slots


@dataclass(frozen=True)
class _Machine:
    slots: int
    cost: BatchCost
    limit: int  # windows in a batch
    host_ms: float  # for each window

    def seconds_alone(self, tokens: float) -> float:
        """The time (s) of a window that is a batch of its own, with its features."""
        return self.host_ms / 1000 + self.cost.seconds([tokens])


def lower_bound(
    clips: Sequence[Sequence[float]], slots: int, cost: BatchCost, limit: int, host_ms: float = 0.0
) -> float:
    """Seconds that any schedule needs for clips with these tokens in their windows, in order."""
    machine = _Machine(slots, cost, limit, host_ms)
    best = max(sum(machine.seconds_alone(tokens) for tokens in clip) for clip in clips)
    ranked = sorted(chain.from_iterable(clips), reverse=True)
    if host_ms:
        best = max(best, _of_windows(ranked, replace(machine, host_ms=0.0), 0.0) + host_ms / 1000)
    return _of_windows(ranked, machine, best)


def _of_windows(ranked: Sequence[float], machine: _Machine, best: float) -> float:
    """The greatest bound of the subsets of these windows, longest first; at least `best`."""
    slots = machine.slots
    sizes = {*range(len(ranked), 0, -max(1, len(ranked) // _SUBSETS))}
    sizes |= {size + more for size in range(0, len(ranked), slots) for more in (0, 1) if size + more}
    for size in sorted(sizes, reverse=True)[: 4 * _SUBSETS]:
        best = max(best, _of_subset(ranked[:size], machine, best))
    return best


def _of_subset(ranked: Sequence[float], machine: _Machine, known: float) -> float:
    """The bound for these windows, longest first. Returns `known` or less if it is not greater than that."""
    low = max(known, _of_fullest_slot(ranked, machine), machine.seconds_alone(ranked[0]))
    if _possible(low, ranked, machine):
        return low
    high = low * 2
    while not _possible(high, ranked, machine):
        low, high = high, high * 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _possible(middle, ranked, machine):
            high = middle
        else:
            low = middle
    return low


def _of_fullest_slot(ranked: Sequence[float], machine: _Machine) -> float:
    most = -(-len(ranked) // machine.slots)
    fewest = -(-most // machine.limit)
    return min(
        _work(ranked[len(ranked) - most :], batches, machine)
        + machine.host_ms / 1000 * max(1, most - machine.limit * (batches - 1))
        for batches in (fewest, fewest + 1)
    )


def _work(ranked: Sequence[float], batches: int, machine: _Machine) -> float:
    """The least total time (s) on devices of `batches` batches that contain all these windows."""
    cost, leaders = machine.cost, ranked[:: machine.limit]
    decoding = sum(leaders) + (batches - len(leaders)) * ranked[-1]
    return (cost.fixed_ms * batches + cost.task_ms * len(ranked) + cost.size_ms * decoding) / 1000


def _possible(end: float, ranked: Sequence[float], machine: _Machine) -> bool:
    """Whether the conditions above allow a schedule that ends after `end` s."""
    slots, cost, limit, host_s = machine.slots, machine.cost, machine.limit, machine.host_ms / 1000
    with_host = replace(cost, task_ms=cost.task_ms + machine.host_ms)
    fewest, first = 0, 0
    while first < len(ranked):
        size = min(limit, with_host.capacity(end, ranked[first]))
        if size < 1:
            return False
        first += size
        fewest += 1
    most = 2 * (fewest + slots)
    if not host_s and (len(ranked) <= limit or end < _work(ranked[-limit - 1 :], 2, machine)):
        most = min(most, slots)
    full = cost.seconds([ranked[0]] * limit)
    for batches in range(fewest, min(most, len(ranked)) + 1):
        work = _work(ranked, batches, machine) * (1 - 1e-9)
        for used in range(min(slots, batches), 0, -1):
            if used * end < work:
                break
            each, more = divmod(batches, used)
            wait = host_s * limit
            busy = more * min(end, (each + 1) * full + wait) + (used - more) * min(end, each * full + wait)
            if busy >= work + host_s * max(used, len(ranked) - limit * (batches - used)):
                return True
    return False
