"""Which tokens of a text another one keeps. Pure.

RapidFuzz finds the longest common subsequence of two texts, which takes a bit of memory for each pair of
tokens. Longer texts are cut: at tokens that both have once, and into windows.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise

from rapidfuzz.distance import LCSseq

Tokens = Sequence[Hashable]

_MOST_PAIRS = 2**25  # of tokens that are compared at once: 4 MiB
_WINDOW = 2048  # tokens of each text


def kept_tokens(old: Tokens, new: Tokens) -> list[int]:
    """For each token of `new`, the index of the token of `old` that it is; -1 if it is a new one.

    The indices increase. Of long texts that differ in much, some tokens that both have may count as new. The
    time hardly grows faster than the texts, whatever they say, and the memory has a limit beyond them.
    """
    kept = [-1] * len(new)
    for first, begin, count in _equal_runs(old, new):
        kept[begin : begin + count] = range(first, first + count)
    return kept


# `(first token of old, first token of new, number of tokens)`
EqualRun = tuple[int, int, int]


def _equal_runs(old: Tokens, new: Tokens) -> Iterator[EqualRun]:
    prefix, shorter = 0, min(len(old), len(new))
    while prefix < shorter and old[prefix] == new[prefix]:
        prefix += 1
    suffix, shorter = 0, shorter - prefix
    while suffix < shorter and old[-1 - suffix] == new[-1 - suffix]:
        suffix += 1
    yield 0, 0, prefix
    yield from _cut_at_anchors(old, new, (prefix, prefix), (len(old) - suffix, len(new) - suffix))
    yield len(old) - suffix, len(new) - suffix, suffix


def _cut_at_anchors(
    old: Tokens, new: Tokens, begin: tuple[int, int], end: tuple[int, int]
) -> Iterator[EqualRun]:
    if (end[0] - begin[0]) * (end[1] - begin[1]) <= _MOST_PAIRS:
        yield from _compared(old, new, begin, end)
        return
    anchors = _anchors(old, new, begin, end)
    for left, right in pairwise([(begin[0] - 1, begin[1] - 1), *anchors, end]):
        if left[0] >= begin[0]:
            yield *left, 1
        yield from _windows(old, new, (left[0] + 1, left[1] + 1), right)


def _anchors(old: Tokens, new: Tokens, begin: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """The most tokens that each text has once, in the same order (patience)."""
    of_old = Counter(old[begin[0] : end[0]])
    of_new = Counter(new[begin[1] : end[1]])
    at = {old[index]: index for index in range(begin[0], end[0]) if of_old[old[index]] == 1}
    pairs = [
        (at[new[index]], index)
        for index in range(begin[1], end[1])
        if of_new[new[index]] == 1 and new[index] in at
    ]
    return [pairs[place] for place in longest_increasing([first for first, _ in pairs])]


def longest_increasing(numbers: Sequence[int]) -> list[int]:
    """The indices of the most of these numbers, all different, that increase."""
    tails: list[int] = []  # the smallest last number of each length
    places: list[int] = []  # of these numbers
    before: list[int] = []  # of each number: the place of the one before it
    for place, number in enumerate(numbers):
        length = bisect_left(tails, number)
        before.append(places[length - 1] if length else -1)
        tails[length : length + 1] = [number]
        places[length : length + 1] = [place]
    chain: list[int] = []
    place = places[-1] if places else -1
    while place >= 0:
        chain.append(place)
        place = before[place]
    return chain[::-1]


def _windows(old: Tokens, new: Tokens, begin: tuple[int, int], end: tuple[int, int]) -> Iterator[EqualRun]:
    """The equal runs of texts of any length, compared window after window.

    What stands near the end of a window is compared again in the next one, with the text that follows it.
    """
    first, second = begin
    while (end[0] - first) * (end[1] - second) > _MOST_PAIRS:
        length, other = _window_lengths(end[0] - first, end[1] - second)
        # Up to where the window counts: half of it, unless the text ends with it.
        limit = first + (length if first + length == end[0] else -(-length // 2))
        other_limit = second + (other if second + other == end[1] else -(-other // 2))
        position = (first, second)
        for at, place, count in _compared(old, new, position, (first + length, second + other)):
            inside = min(count, limit - at, other_limit - place)
            if inside <= 0:
                break
            yield at, place, inside
            first, second = at + inside, place + inside
        if limit < end[0]:
            first = max(first, -(-(position[0] + limit) // 2))
        if other_limit < end[1]:
            second = max(second, -(-(position[1] + other_limit) // 2))
    yield from _compared(old, new, (first, second), end)


def _window_lengths(length: int, other: int) -> tuple[int, int]:
    """The lengths of a window. If one text is short, the other one has a longer window."""
    shorter = min(length, other, _WINDOW)
    longer = _WINDOW * _WINDOW // max(shorter, 1)
    return (shorter, min(other, longer)) if length <= other else (min(length, longer), shorter)


def _compared(old: Tokens, new: Tokens, begin: tuple[int, int], end: tuple[int, int]) -> Iterator[EqualRun]:
    """The equal runs of two texts that are short enough."""
    if begin[0] == end[0] or begin[1] == end[1]:
        return
    edits = LCSseq.editops(old[begin[0] : end[0]], new[begin[1] : end[1]])
    for block in edits.as_matching_blocks():
        if block.size:
            yield begin[0] + block.a, begin[1] + block.b, block.size
