"""The words of a transcript, found in its text. Pure.

Words of some tools lack spaces, punctuation or letters of the text. The text always wins: words only say
when its parts are spoken. Joined, the words returned here are the text, character by character.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate, groupby, pairwise

from app.transcript.reading.words import MaybeSpan, ReadWord, fill_times
from app.transcript.text.breaks import break_units
from app.transcript.text.scripts import OPENING
from workers.messages import SAMPLE_RATE, Span

# Words that share fewer units with the text belong to another text.
_LEAST_EQUAL = 0.5

_SPACES = re.compile(r"\s*")


def align(text: str, words: Sequence[ReadWord]) -> list[ReadWord]:
    """The text as words with the times of `words`; times may be missing. Empty if they do not fit."""
    if "".join(word.text for word in words) == text:
        return list(words)
    return _found_as_written(text, words) or _found_by_letters(text, words) or _matched_units(text, words)


def letters(text: str) -> str:
    """The letters and digits, in one case and without ligatures and other variants of form."""
    return "".join(map(_letters, text))


@lru_cache(maxsize=8192)
def _letters(char: str) -> str:
    parts = unicodedata.normalize("NFKD", char.casefold()).casefold()
    return "".join(part for part in parts if unicodedata.category(part)[0] in "LMN")


def _found_as_written(text: str, words: Sequence[ReadWord]) -> list[ReadWord]:
    """The words with the spaces that they lack; empty if they lack more. Spaces belong to the next word."""
    begins: list[int] = []
    end = 0
    for word in words:
        begins.append(end)
        bare = word.text.strip()
        position = _skip_spaces(text, end)
        if not text.startswith(bare, position):
            return []
        end = position + len(bare)
    return _cut(text, words, begins) if _skip_spaces(text, end) == len(text) else []


def _skip_spaces(text: str, position: int) -> int:
    found = _SPACES.match(text, position)
    return found.end() if found else position


def _found_by_letters(text: str, words: Sequence[ReadWord]) -> list[ReadWord]:
    """The words with the punctuation that they lack; empty if their letters are not those of the text."""
    chars = [(letter, position) for position, char in enumerate(text) for letter in _letters(char)]
    spelled = [(word, spelling) for word in words if (spelling := letters(word.text))]
    if "".join(letter for letter, _ in chars) != "".join(spelling for _, spelling in spelled):
        return []
    begins: list[int] = []
    done = end = 0  # letters; characters of the text
    for _, spelling in spelled:
        begins.append(_border(text, end, chars[done][1]) if begins else 0)
        done += len(spelling)
        end = chars[done - 1][1] + 1
    return _cut(text, [word for word, _ in spelled], begins)


def _border(text: str, end: int, begin: int) -> int:
    """Where the text between two words is cut: punctuation belongs to the word that it stands at."""
    for position in range(end, begin):
        if text[position].isspace() or text[position] in OPENING:
            return position
    return max(end, begin)


def _cut(text: str, words: Sequence[ReadWord], begins: Sequence[int]) -> list[ReadWord]:
    """The text as words that begin at these characters. The first begins at 0."""
    borders = pairwise([*begins, len(text)])
    cut = [replace(word, text=text[begin:end]) for word, (begin, end) in zip(words, borders, strict=True)]
    return [word for word in cut if word.text]


def _matched_units(text: str, words: Sequence[ReadWord]) -> list[ReadWord]:
    """The units of the text as words, where most of them are in `words`; empty otherwise.

    Different units between equal ones get the time of the words between them, or none.
    """
    units = break_units(text)
    spoken = list(_spoken_units(words))
    matcher = SequenceMatcher(
        lambda spelling: not spelling,
        [letters(unit) for unit in units],
        [letters(unit.text) for _, unit in spoken],
    )
    equal = 0
    found: list[tuple[int, ReadWord]] = []  # `(number of the word, unit)`; negative: part of no word
    for kind, begin, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            equal += end - begin
            pairs = zip(units[begin:end], spoken[first:last], strict=True)
            found += [(number, replace(unit, text=text)) for text, (number, unit) in pairs]
            continue
        fresh = [ReadWord(unit, None, None) for unit in units[begin:end]]
        if fresh and kind == "replace":
            fresh[0] = replace(fresh[0], start=spoken[first][1].start)
            fresh[-1] = replace(fresh[-1], end=spoken[last - 1][1].end)
        found += [(-1 - begin - index, unit) for index, unit in enumerate(fresh)]
    return _joined_units(found) if equal >= _LEAST_EQUAL * len(units) else []


def _spoken_units(words: Sequence[ReadWord]) -> Iterator[tuple[int, ReadWord]]:
    """`(number of the word, unit)` for each unit of the words, with its part of the word's time."""
    for number, word in enumerate(words):
        texts = break_units(word.text)
        spans: list[MaybeSpan] = [(None, None)] * len(texts)
        if word.start is not None and word.end is not None:
            spans = [*fill_times(spans, [len(text) for text in texts], word.start, word.end)]
        for text, (start, end) in zip(texts, spans, strict=True):
            yield number, ReadWord(text, start, end, word.probability, word.speaker)


def _joined_units(found: Sequence[tuple[int, ReadWord]]) -> list[ReadWord]:
    """Neighbouring units of the same word as one word."""
    groups = [[unit for _, unit in group] for _, group in groupby(found, key=lambda entry: entry[0])]
    return [
        replace(group[0], text="".join(unit.text for unit in group), end=group[-1].end) for group in groups
    ]


# Words of a segment may lie outside its times by so much.
_MARGIN = SAMPLE_RATE  # samples

# Where the words of one segment are not those of its text, those of the next one may begin so much earlier
# or later than their times say.
_OFFSETS = (0, 1, -1, 2, -2, 3, -3)


def words_of_segments(
    segments: Iterable[tuple[str, Span]], words: Sequence[ReadWord]
) -> Iterator[Sequence[ReadWord]]:
    """For each `(text, span)`, its words: those with the letters of its text, or those at its time.

    `words`: in order, all with times. Words at a segment's time may belong to its neighbours: `align` finds
    those of its text.
    """
    starts = list(accumulate((word.start or 0 for word in words), max))
    spellings = [
        (spell, [spell(word.text) for word in words])
        for spell in (lambda text: "".join(text.split()), letters)
    ]
    position = 0
    for text, (start, end) in segments:
        span = _find_text(text, spellings, position)
        if span:
            position = span[1]
            yield words[slice(*span)]
        else:
            position = bisect_left(starts, end)
            yield words[bisect_right(starts, start - _MARGIN) : bisect_right(starts, end + _MARGIN)]


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
