"""The words of corrected segments: old ones with their times, new ones with the time between them. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from app.transcript.corrections.marks import kept_marks
from app.transcript.corrections.matching import TokenRow, match
from app.transcript.edited import EditedSegment, Marks
from app.transcript.text.scripts import may_break_between, width
from workers.messages import SAMPLE_RATE, Span, Word

_BY_A_PERSON = 1.0  # the probability of a word that a person wrote

# A word that turns up in another segment, further from where it was, is not the same one.
_REACH = 5 * SAMPLE_RATE  # samples


@dataclass(frozen=True, slots=True)
class PlacedEdit:
    """A checked edit with its time in samples of the recording."""

    text: str  # without white space at its ends
    start: int
    end: int
    speaker: str | None
    base: int | None  # index of the segment that it replaces; None: it is new
    is_moved: bool  # its start or end is not that of the segment that it replaces
    marks: Marks | None = None  # None: as before


@dataclass(frozen=True, slots=True)
class NewWords:
    """The words of an edit. Joined, they are its text."""

    words: tuple[Word, ...]
    origin: int | None  # the old text that most of its tokens come from; None: they are new
    marks: Marks  # of the old texts, where they stand in this one


def new_words(old: Mapping[int, EditedSegment], new: Sequence[PlacedEdit]) -> Iterator[NewWords]:
    """The words of each edit, inside its time, in order, without overlap.

    `old`: segments before the correction, by their index in the base. Joined, the words of each are its text;
    it has none if they are not known. A word of theirs keeps its time and probability, clamped to the edit
    that has it now. Words between them share the time that is left there, in proportion to their width.
    """
    before = TokenRow(segment.text for segment in old.values())
    after = TokenRow(edit.text for edit in new)
    sources = [
        _Source(segment.words, before.spaced[first:end])
        for segment, (first, end) in zip(old.values(), pairwise(before.edges), strict=True)
    ]
    indices = list(old)
    numbers: dict[int | None, int] = {index: number for number, index in enumerate(indices)}

    def may_keep(token: int, number: int) -> bool:
        owner = before.owners[token]
        return sources[owner].is_near(token - before.edges[owner], new[number])

    kept = match(before, after, [numbers.get(edit.base) for edit in new], may_keep)
    marks = kept_marks([segment.marks for segment in old.values()], before, after, kept)
    for edit, (first, end), of_edit in zip(new, pairwise(after.edges), marks, strict=True):
        words: list[Word | str] = []
        owners: Counter[int] = Counter()
        for begin, stop in _runs(kept, before, first, end):
            was, tokens = kept[begin], after.spaced[begin:stop]
            owner = before.owners[was] if was >= 0 else -1
            if was >= 0:
                owners[owner] += stop - begin
            if was >= 0 and sources[owner].words:
                words += sources[owner].words_of(was - before.edges[owner], tokens)
            else:
                words += _written(tokens)
        origin = indices[max(owners, key=lambda owner: owners[owner])] if owners else None
        yield NewWords(_timed(words, edit.start, edit.end), origin, of_edit)


def _runs(kept: Sequence[int], before: TokenRow, first: int, end: int) -> Iterator[Span]:
    """The runs of new tokens from `first` to `end` that follow each other in one old text, or in none."""
    while first < end:
        stop, was = first + 1, kept[first]
        if was < 0:
            while stop < end and kept[stop] < 0:
                stop += 1
        else:
            limit = min(end, first + before.edges[before.owners[was] + 1] - was)
            while stop < limit and kept[stop] == was + stop - first:
                stop += 1
        yield first, stop
        first = stop


class _Source:
    """The words of an old text, found by its tokens."""

    def __init__(self, words: Sequence[Word], tokens: Sequence[str]) -> None:
        self.words = words
        self._tokens = tokens
        self._is_word_by_word = [word.text for word in words] == tokens
        # Where words begin, and tokens end, in characters.
        self._begins = [] if self._is_word_by_word else _edges(word.text for word in words)
        self._ends = [] if self._is_word_by_word else _edges(tokens)
        self._columns = -1, [0]  # of the word divided last: its index, and its characters' ends

    def is_near(self, token: int, edit: PlacedEdit) -> bool:
        """Whether the token is spoken near the time of an edit."""
        if not self.words:
            return False
        word = self.words[token if self._is_word_by_word else self._word_at(self._ends[token + 1] - 1)]
        return word.end >= edit.start - _REACH and word.start <= edit.end + _REACH

    def words_of(self, first: int, tokens: Sequence[str]) -> list[Word]:
        """These tokens, which follow each other in the old text from `first`, as words of the new text."""
        if self._is_word_by_word:
            words = self.words[first : first + len(tokens)]
            return [
                word if word.text == token else Word(token, word.start, word.end, word.probability)
                for word, token in zip(words, tokens, strict=True)
            ]
        # By word: its new text in parts, and its first and last character.
        parts: dict[int, tuple[list[str], int, int]] = {}
        for number, token in enumerate(tokens, start=first):
            end = self._ends[number + 1]
            zero, begin = end - len(token), end - len(token.lstrip())
            at, index = zero, self._word_at(begin)
            while begin < end:
                stop = min(self._begins[index + 1], end)
                texts, start, _ = parts.get(index, ([], begin, stop))
                texts.append(token[at - zero : stop - zero])
                parts[index] = texts, start, stop
                at, begin, index = stop, stop, index + 1
        return [self._part(index, "".join(texts), *span) for index, (texts, *span) in parts.items()]

    def _word_at(self, char: int) -> int:
        """The index of the word that has this character of the text."""
        return bisect_right(self._begins, char) - 1

    def _part(self, index: int, text: str, first: int, last: int) -> Word:
        """A part of a word, as `text`, with its part of the time. Spaces at the word's ends take none."""
        word = self.words[index]
        lead = len(word.text) - len(word.text.lstrip())
        bare = word.text.strip()
        begin, end = first - self._begins[index] - lead, last - self._begins[index] - lead
        if self._columns[0] != index:
            self._columns = index, list(accumulate(map(width, bare), initial=0))
        edges = self._columns[1]
        length, columns = word.end - word.start, max(edges[-1], 1)
        start = word.start + length * edges[min(max(begin, 0), len(bare))] // columns
        stop = word.start + length * edges[end] // columns if end < len(bare) else word.end
        return Word(text, start, stop, word.probability)


def _edges(texts: Iterable[str]) -> list[int]:
    return list(accumulate(map(len, texts), initial=0))


def _written(tokens: Sequence[str]) -> list[str]:
    """New tokens as words. Characters that no line may separate are one word."""
    begins = [
        at
        for at, token in enumerate(tokens)
        if not at or token[0].isspace() or may_break_between(tokens[at - 1][-1], token[0])
    ]
    return ["".join(tokens[first:last]) for first, last in pairwise([*begins, len(tokens)])]


def _timed(words: Sequence[Word | str], start: int, end: int) -> tuple[Word, ...]:
    """The words in order from `start` to `end`, with times for those without. A word may last no time."""
    starts = []  # of the words with times
    at = start
    for word in words:
        if not isinstance(word, str):
            at = min(max(word.start, at), end)
            starts.append(at)
    limits = iter([*starts, end])
    limit = next(limits)
    timed: list[Word] = []
    written: list[str] = []
    at = start
    for word in words:
        if isinstance(word, str):
            written.append(word)
            continue
        if written:
            timed += _spread(written, at, limit)
            written = []
        begin, limit = limit, next(limits)
        at = min(max(word.end, begin), limit)
        is_same = begin == word.start and at == word.end
        timed.append(word if is_same else Word(word.text, begin, at, word.probability))
    if written:
        timed += _spread(written, at, end)
    return tuple(timed)


def _spread(texts: Sequence[str], start: int, end: int) -> Iterator[Word]:
    """The texts as words that share the time from `start` to `end`, in proportion to their width."""
    edges = list(accumulate((width(text.strip()) for text in texts), initial=0))
    columns = max(edges[-1], 1)
    for text, (first, last) in zip(texts, pairwise(edges), strict=True):
        begins, ends = start + (end - start) * first // columns, start + (end - start) * last // columns
        yield Word(text, begins, ends, _BY_A_PERSON)
