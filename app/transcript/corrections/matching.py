"""Which tokens of the old texts the new ones keep, as people see it. Pure.

A text that replaces another one keeps its words if it can. Words may also have moved to a neighbour.
"""

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from app.transcript.corrections.diff import kept_tokens, longest_increasing
from app.transcript.text.scripts import UNSPACED, is_unspaced

_MARKS = "\u0300-\u036f\u200d\ufe00-\ufe0f"  # combining marks, joiner, variants
_CODES = (*range(0x0E00, 0x3100), *range(0xA9E0, 0xAA80))  # with all marks of scripts without spaces


_OF_UNSPACED = "".join(
    char for char in map(chr, _CODES) if unicodedata.category(char)[0] == "M" and is_unspaced(char)
)
_TOKEN = re.compile(rf"\s*(?:(?!\s)[{UNSPACED}][{_OF_UNSPACED}{_MARKS}]*|[^\s{UNSPACED}]+)")


def tokens_of(text: str) -> list[str]:
    """The tokens of the text, each with the spaces before it. Spaces at the end belong to none."""
    found: list[str] = _TOKEN.findall(text)
    return found


def count_tokens(text: str) -> int:
    """How many tokens the text has."""
    return len(_TOKEN.findall(text))


class TokenRow:
    """The tokens of texts in a row."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.spaced: list[str] = []  # with the spaces before each
        self.owners = array("L")  # of each token: the number of its text
        self.edges = array("L", [0])  # tokens before the first text, the second, ..., and of all texts
        for number, text in enumerate(texts):
            tokens = tokens_of(text)
            self.spaced += tokens
            self.owners.extend([number] * len(tokens))
            self.edges.append(len(self.spaced))
        self.tokens: Sequence[str] = [token.strip() for token in self.spaced]

    def __len__(self) -> int:
        return len(self.spaced)


_MOST_CHOICES = 50  # tokens of a text that another token is compared with

# Whether a token of the old texts may be one of this new text.
MayKeep = Callable[[int, int], bool]


def match(old: TokenRow, new: TokenRow, replaces: Sequence[int | None], may_keep: MayKeep) -> list[int]:
    """For each new token, the index of the old one that it is; -1 if it is a new one. The indices increase.

    `replaces`: of each new text, the number of the old text that it replaces. `may_keep(token, number)`:
    whether this token of another old text may be one of this new text.
    """
    kept = [-1] * len(new)
    left = (0, 0)
    for first, begin, count in (*_certain_runs(old, new, replaces), (len(old), len(new), 0)):
        if begin > left[1]:
            found = kept_tokens(old.tokens[left[0] : first], new.tokens[left[1] : begin])
            kept[left[1] : begin] = (at + left[0] if at >= 0 else -1 for at in found)
        kept[begin : begin + count] = range(first, first + count)
        left = (first + count, begin + count)
    _prefer_own(kept, old, new, replaces)
    for at, was in enumerate(kept):
        if was >= 0:
            number = new.owners[at]
            if old.owners[was] != replaces[number] and not may_keep(was, number):
                kept[at] = -1
    _add_own(kept, old, new, replaces)
    return kept


def _certain_runs(
    old: TokenRow, new: TokenRow, replaces: Sequence[int | None]
) -> Iterator[tuple[int, int, int]]:
    """`(first old token, first new token, count)` where a new text begins or ends as the one it replaces.

    Only if it keeps more than half of it, and the text beside it still exists: joined texts may end with the
    same word by chance. And without tokens that could be of the beginning or of the end: a neighbour may have
    got some of them.
    """
    pairs = [(was, number) for number, was in enumerate(replaces) if was is not None]
    intact = {-1, len(old.edges) - 1, *(was for was, _ in pairs)}  # old texts, and beyond their ends
    for place in longest_increasing([was for was, _ in pairs]):
        was, number = pairs[place]
        begin, end = old.edges[was], old.edges[was + 1]
        first, last = new.edges[number], new.edges[number + 1]
        shorter = min(end - begin, last - first)
        prefix = suffix = 0
        is_first, is_last = was - 1 in intact, was + 1 in intact
        while is_first and prefix < shorter and old.tokens[begin + prefix] == new.tokens[first + prefix]:
            prefix += 1
        while is_last and suffix < shorter and old.tokens[end - 1 - suffix] == new.tokens[last - 1 - suffix]:
            suffix += 1
        if prefix == end - begin == last - first:
            yield begin, first, prefix
            continue
        if 2 * (prefix + suffix) <= max(end - begin, last - first):
            continue
        in_doubt = max(prefix + suffix - shorter, 0)
        if prefix > in_doubt:
            yield begin, first, prefix - in_doubt
        if suffix > in_doubt:
            yield end - suffix + in_doubt, last - suffix + in_doubt, suffix - in_doubt


def _prefer_own(kept: list[int], old: TokenRow, new: TokenRow, replaces: Sequence[int | None]) -> None:
    """Let tokens of other texts give way to equal ones of the replaced text: the comparison takes any."""
    found = [at for at, was in enumerate(kept) if was >= 0]
    for step in (-1, 1):
        for place in range(len(found))[::step]:
            at = found[place]
            replaced = replaces[new.owners[at]]
            if replaced is None or old.owners[kept[at]] == replaced:
                continue
            before = kept[found[place - 1]] if place else -1
            after = kept[found[place + 1]] if place + 1 < len(found) else len(old)
            own = range(max(before + 1, old.edges[replaced]), min(after, old.edges[replaced + 1]))
            choices = own[::step][:_MOST_CHOICES]
            equal = (choice for choice in choices if old.tokens[choice] == new.tokens[at])
            kept[at] = next(equal, kept[at])


def _add_own(kept: list[int], old: TokenRow, new: TokenRow, replaces: Sequence[int | None]) -> None:
    """Compare tokens that were not found with those of the replaced text that nothing has kept."""
    limits = _next_kept(kept, len(old))
    last = -1  # the old token that was kept last
    for (first, end), was in zip(pairwise(new.edges), replaces, strict=True):
        at = first
        while at < end:
            if kept[at] >= 0:
                last = kept[at]
                at += 1
                continue
            stop = at
            while stop < end and kept[stop] < 0:
                stop += 1
            if was is not None:
                begin = max(old.edges[was], last + 1)
                own = old.tokens[begin : max(min(old.edges[was + 1], limits[stop]), begin)]
                if own:
                    found = kept_tokens(own, new.tokens[at:stop])
                    kept[at:stop] = (index + begin if index >= 0 else -1 for index in found)
            last = max(last, *kept[at:stop])
            at = stop


def _next_kept(kept: Sequence[int], after: int) -> list[int]:
    """For each place, and the end, the old token that is kept next; `after` if there is none."""
    limits = [after]
    for was in reversed(kept):
        limits.append(was if was >= 0 else limits[-1])
    return limits[::-1]
