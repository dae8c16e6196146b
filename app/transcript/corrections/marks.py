"""Where marks stand in corrected texts. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from app.transcript.corrections.matching import TokenRow, tokens_of
from app.transcript.edited import Mark, Marks


def placed_marks(text: str, wanted: Iterable[tuple[int, Mark]]) -> Marks:
    """The marks before words of a text, or before any character in scripts without spaces.

    `wanted`: the mark at each place, in characters, fewer than the text has; of two at a place, the last one
    counts. One at white space moves to the word after it, one inside a word to the beginning of this word.
    """
    starts = _letter_edges(tokens_of(text))
    letters = [0, *accumulate(not char.isspace() for char in text)]
    found = {starts[bisect_right(starts, letters[at]) - 1]: mark for at, mark in wanted}
    return tuple(sorted(found.items()))


def kept_marks(
    marks: Sequence[Marks], before: TokenRow, after: TokenRow, kept: Sequence[int], owns: Mapping[int, int]
) -> list[Marks]:
    """The marks of each new text, from those of the old ones.

    `kept`: the old token that each new one is, or -1; `owns`: the new text that replaces an old one. A mark
    stays before its word. If that is gone, it follows the word before it, or stays at the start of the text.
    """
    found: list[dict[int, Mark]] = [{} for _ in after.edges[1:]]
    if not any(marks):
        return [() for _ in found]
    places = {was: at for at, was in enumerate(kept) if was >= 0}
    letters = _letter_edges(after.tokens)
    for old, of_text in enumerate(marks):
        first, end = before.edges[old], before.edges[old + 1]
        starts = _letter_edges(before.tokens[first:end])
        for letter, mark in of_text:
            token = first + bisect_right(starts, letter) - 1
            at = places.get(token, -1)
            if at < 0 and token > first:
                at = places.get(token - 1, -2) + 1
                if not 0 < at < len(after) or after.owners[at] != after.owners[at - 1]:
                    continue
            elif at < 0 and old in owns:
                at = after.edges[owns[old]]
            if at >= 0:
                new = after.owners[at]
                found[new][letters[at] - letters[after.edges[new]]] = mark
    return [tuple(sorted(of_text.items())) for of_text in found]


def _letter_edges(tokens: Iterable[str]) -> list[int]:
    """How many letters stand before each token, and in all."""
    return list(accumulate((len(token.strip()) for token in tokens), initial=0))
