"""The time below which no schedule can hear a set of clips. Pure.

A batch of clips costs fixed + clip x (number of clips, `limit` at most) + token x (tokens of the longest).
Clips are given by their tokens. Whatever holds for a part of the clips holds for all of them, so each bound
below may be taken of the r longest clips for any r, and the greatest counts: with r small the clips are
long, with r large they are many. For such a part, with n clips d1 >= d2 >= ... >= dn on k slots:

1. The longest: it is in some batch, so fixed + clip + token x d1.
2. The fullest slot: some slot hears m = ceil(n / k) clips or more, in ceil(m / limit) batches or more. The
   longest tokens of its batches, in order, are at least those of its clips number 1, limit + 1,
   2 x limit + 1, ... in descending order, and these at least those of the m shortest clips of all.
3. The work. Let the schedule have B batches and end at T.
   - The batch of rank j by longest clip has limit x (j - 1) clips at most before it that are longer, so its
     longest is at least d(limit x (j - 1) + 1); batches beyond ceil(n / limit) have at least dn. So all
     batches together take W(B) = fixed x B + clip x n + token x (the sum of those) or more.
   - A batch whose longest clip is d must end by T: it has min(limit, (T - fixed - token x d) / clip) clips
     at most. Filling batches in descending order as far as that allows needs the fewest batches there can
     be (each batch then begins at the shortest clip that it possibly can), and B is no less.
   - A slot with b batches is busy for T at most, and for b full batches of the longest clip at most. The sum
     over the slots is greatest with the batches dealt out evenly, since it is concave in each b, and has to
     reach W(B). That is what makes 5 full batches on 4 slots cost more than 5/4.
   - Two batches on one slot with no more than `limit` clips in all cost less as one. So a slot need have two
     only if it hears limit + 1 clips, which takes 2 x fixed + clip x (limit + 1) + token x (the longest and
     the shortest of the limit + 1 shortest); a schedule that ends before that has one batch on each slot at
     most: B <= k.
   A T for which no B fulfils all of this cannot be reached. Whether one does is monotone in T, and the
   least T is found by bisection, from below.
"""

from collections.abc import Sequence

from app.scheduling.batching import BatchCost

_BISECTIONS = 20
_PARTS = 40  # sizes of parts that are tried, beside the multiples of the number of slots


def lower_bound(tokens: Sequence[float], slots: int, cost: BatchCost, limit: int) -> float:
    """Seconds that any schedule needs for clips of so many tokens on so many slots."""
    ranked = sorted(tokens, reverse=True)
    sizes = {*range(len(ranked), 0, -max(1, len(ranked) // _PARTS))}
    sizes |= {size + more for size in range(0, len(ranked), slots) for more in (0, 1) if size + more}
    best = 0.0
    for size in sorted(sizes, reverse=True)[: 4 * _PARTS]:
        best = max(best, _of_part(ranked[:size], slots, cost, limit, best))
    return best


def _of_part(ranked: Sequence[float], slots: int, cost: BatchCost, limit: int, known: float) -> float:
    """The bound for these clips, longest first, or less than `known` where it is no better than that."""
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
    """The least that so many batches of all these clips can take together, in s."""
    leaders = ranked[::limit]
    decoding = sum(leaders) + (batches - len(leaders)) * ranked[-1]
    return (cost.fixed_ms * batches + cost.task_ms * len(ranked) + cost.size_ms * decoding) / 1000


def _possible(end: float, ranked: Sequence[float], slots: int, cost: BatchCost, limit: int) -> bool:
    """Whether nothing said above keeps a schedule from ending after `end` s."""
    fewest, first = 0, 0
    while first < len(ranked):
        size = min(limit, cost.room(end, ranked[first]))
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
