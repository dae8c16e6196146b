"""The name that a mistyped one may stand for."""

from collections.abc import Collection
from difflib import get_close_matches

MAX_COMPARED_CHARS = 100
_SIMILARITY = 0.7  # as difflib measures it
_MIN_INNER_CHARS = 4  # of a name that is a part of another


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The name in `known` that is most similar to `name`, or else one that it contains or is a part of.

    Of several such ones, that of the most similar length. Case does not matter.
    """
    folded = {one.lower(): one for one in known}
    wanted = name[:MAX_COMPARED_CHARS].lower()
    near = get_close_matches(wanted, folded, 1, _SIMILARITY)
    shared = [
        one
        for one in folded
        if min(len(one), len(wanted)) >= _MIN_INNER_CHARS and (one in wanted or wanted in one)
    ]
    if near:
        return folded[near[0]]
    return folded[min(shared, key=lambda one: abs(len(one) - len(wanted)))] if shared else None
