"""Words that a file lists on their own, assigned to its segments. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from app.transcript.reading.alignment import letters
from app.transcript.reading.words import ReadWord
from workers.messages import SAMPLE_RATE, Span

# Words of a segment may lie outside its times by so much.
_MARGIN = SAMPLE_RATE  # samples

# Where the words of one segment are not those of its text, those of the next one may begin so much earlier
# or later than their times say.
_OFFSETS = (0, 1, -1, 2, -2, 3, -3)


def assign_words(
    segments: Iterable[tuple[str, Span]], words: Sequence[ReadWord]
) -> Iterator[Sequence[ReadWord]]:
    """For each `(text, span)`, its words: those with the letters of its text, or those at its time.

    `words`: in order, all with times. Words at a segment's time may belong to its neighbours: `align` finds
    those of its text.
    """
    starts = list(accumulate((word.start or 0 for word in words), max))
    spellings = [(spell, [spell(word.text) for word in words]) for spell in (_without_spaces, letters)]
    position = 0
    for text, (start, end) in segments:
        span = _find_text(text, spellings, position)
        if span:
            position = span[1]
            yield words[slice(*span)]
        else:
            position = bisect_left(starts, end)
            yield words[bisect_right(starts, start - _MARGIN) : bisect_right(starts, end + _MARGIN)]


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _find_text(
    text: str, spellings: Sequence[tuple[Callable[[str], str], Sequence[str]]], position: int
) -> tuple[int, int] | None:
    """Which words near `position` make up the text, as written or by their letters: `(first, end)`."""
    wanted = [(spell(text), spelled) for spell, spelled in spellings]
    for offset in _OFFSETS:
        begin = max(position + offset, 0)
        for spelling, spelled in wanted:
            end = _end_of_text(spelling, spelled, begin)
            if end is not None:
                return begin, end
    return None


def _end_of_text(wanted: str, spelled: Sequence[str], begin: int) -> int | None:
    """Up to which word, not included, the words from `begin` make up `wanted`; None if they do not."""
    found = 0
    for index in range(begin, len(spelled)):
        if found == len(wanted):
            return index
        if not wanted.startswith(spelled[index], found):
            return None
        found += len(spelled[index])
    return len(spelled) if found == len(wanted) else None
