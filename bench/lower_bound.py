"""A lower bound for the time that any schedule needs to transcribe a set of clips. Pure.

A batch of clips costs fixed + clip x (number of clips, `limit` at most) + token x (tokens of the longest).
Clips are given by their tokens. A bound for a subset of the clips is a bound for all of them. So each bound
below is computed for the r longest clips, for several r, and the greatest counts: with a small r the clips
are long, with a large r they are many. For such a subset, with n clips d1 >= d2 >= ... >= dn on k slots:

1. The longest clip is in some batch, which takes at least fixed + clip + token x d1.
2. The fullest slot: some slot transcribes m >= ceil(n / k) clips in at least ceil(m / limit) batches. The
   longest tokens of its batches, in order, are at least those of its clips number 1, limit + 1,
   2 x limit + 1, ... in descending order. These are at least those of the m shortest clips of all.
3. The work. Let the schedule have B batches and end at T.
   - Rank the batches by their longest clip. The j - 1 batches before rank j hold at most limit x (j - 1)
     clips, so the longest clip of batch j is at least d(limit x (j - 1) + 1). Batches beyond ceil(n / limit)
     have at least dn. All batches together take at least
     W(B) = fixed x B + clip x n + token x (the sum of these lengths).
   - A batch whose longest clip is d ends by T only if it has at most
     min(limit, (T - fixed - token x d) / clip) clips. Filling batches greedily in descending order needs the
     fewest batches (each batch then begins at the shortest possible clip). B is at least that number.
   - A slot with b batches is busy for at most T, and at most for b full batches of the longest clip. The sum
     over the slots must reach W(B). It is concave in each b, so it is greatest if the batches are distributed
     evenly. This is why 5 full batches on 4 slots cost more than 5/4.
   - Two batches on one slot with at most `limit` clips in total cost less as one batch. So a slot needs two
     batches only if it transcribes limit + 1 clips, which takes at least 2 x fixed + clip x (limit + 1) +
     token x (the longest and the shortest of the limit + 1 shortest clips). A schedule that ends earlier has
     at most one batch on each slot: B <= k.
   A T for which no B satisfies all of these is impossible. Possibility is monotone in T, so bisection finds
   the least possible T, from below.
"""

from collections.abc import Sequence

from app.scheduling.batching import BatchCost

_BISECTIONS = 20
_SUBSETS = 40  # sizes of subsets that are tried, in addition to the multiples of the number of slots


def lower_bound(tokens: Sequence[float], slots: int, cost: BatchCost, limit: int) -> float:
    """Seconds that any schedule needs for clips with these tokens."""
    ranked = sorted(tokens, reverse=True)
    sizes = {*range(len(ranked), 0, -max(1, len(ranked) // _SUBSETS))}
    sizes |= {size + more for size in range(0, len(ranked), slots) for more in (0, 1) if size + more}
    best = 0.0
    for size in sorted(sizes, reverse=True)[: 4 * _SUBSETS]:
        best = max(best, _of_subset(ranked[:size], slots, cost, limit, best))
    return best


def _of_subset(ranked: Sequence[float], slots: int, cost: BatchCost, limit: int, known: float) -> float:
    """The bound for these clips, longest first. Returns `known` or less if it is not greater than `known`."""
    most = -(-len(ranked) // slots)
    fullest = _work(ranked[len(ranked) - most :], -(-most // limit), cost, limit)
    low = max(known, fullest, cost.seconds(ranked[:1]))
    if _possible(low, ranked, slots, cost, limit):
        return low
    high = low * 2
    while not _possible(high, ranked, slots, cost, limit):
        low, high = high, high * 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _possible(middle, ranked, slots, cost, limit):
            high = middle
        else:
            low = middle
    return low


def _work(ranked: Sequence[float], batches: int, cost: BatchCost, limit: int) -> float:
    """The least total time (s) of `batches` batches that contain all these clips."""
    leaders = ranked[::limit]
    decoding = sum(leaders) + (batches - len(leaders)) * ranked[-1]
    return (cost.fixed_ms * batches + cost.task_ms * len(ranked) + cost.size_ms * decoding) / 1000


def _possible(end: float, ranked: Sequence[float], slots: int, cost: BatchCost, limit: int) -> bool:
    """Whether the conditions above allow a schedule that ends after `end` s."""
    fewest, first = 0, 0
    while first < len(ranked):
        size = min(limit, cost.capacity(end, ranked[first]))
        if size < 1:
            return False
        first += size
        fewest += 1
    most = len(ranked)
    if len(ranked) <= limit or end < _work(ranked[-limit - 1 :], 2, cost, limit):
        most = slots
    full = cost.seconds([ranked[0]] * limit)
    for batches in range(fewest, min(most, 2 * (fewest + slots)) + 1):
        each, more = divmod(batches, slots)
        busy = more * min(end, (each + 1) * full) + (slots - more) * min(end, each * full)
        if busy >= _work(ranked, batches, cost, limit) * (1 - 1e-9):
            return True
    return False
