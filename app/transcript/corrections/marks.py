"""Where marks stand in corrected texts. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from app.transcript.corrections.matching import TokenRow, tokens_of
from app.transcript.edited import Mark, Marks


def placed_marks(text: str, wanted: Iterable[tuple[int, Mark]]) -> Marks:
    """The marks before words of a text, or before any character in scripts without spaces.

    `wanted`: the mark at each place, in characters, fewer than the text has; of two at a place, the last one
    counts. One at white space moves to the word after it, one inside a word to the beginning of this word.
    """
    starts = _letters_before(tokens_of(text))
    letters = list(accumulate((not char.isspace() for char in text), initial=0))
    found = {starts[bisect_right(starts, letters[at]) - 1]: mark for at, mark in wanted}
    return tuple(sorted(found.items()))


def kept_marks(marks: Sequence[Marks], before: TokenRow, after: TokenRow, kept: Sequence[int]) -> list[Marks]:
    """The marks of each new text, from those of the old ones; `kept`: the old token of each new one, or -1.

    A mark stays before its word. If that is gone, it follows the word before it.
    """
    found: list[dict[int, Mark]] = [{} for _ in after.edges[1:]]
    if any(marks):
        places = {-1: -1} | {was: at for at, was in enumerate(kept) if was >= 0}
        letters = _letters_before(after.tokens)
        for of_text, first in zip(marks, before.edges, strict=False):
            starts = _letters_before(before.tokens[first : first + of_text[-1][0] + 1] if of_text else ())
            for letter, mark in of_text:
                token = first + bisect_right(starts, letter) - 1
                at = places.get(token, places.get(token - 1, len(after)) + 1)
                if at < len(after):
                    new = after.owners[at]
                    found[new][letters[at] - letters[after.edges[new]]] = mark
    return [tuple(sorted(of_text.items())) for of_text in found]


def _letters_before(tokens: Iterable[str]) -> list[int]:
    """How many letters stand before each token, and in all."""
    return list(accumulate((len(token.strip()) for token in tokens), initial=0))
