"""Crosstalk: words of one channel that are heard, much quieter, on another. Each counts once. Pure.

Only words that coincide with words on a louder channel can be crosstalk.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby
from statistics import median
from typing import Protocol

from app.transcript.edited import EditedSegment
from workers.messages import SAMPLE_RATE, Word

# A word that a louder channel has as well is dropped if its sound there is so much louder.
SAME_WORD_DB = 6.0
# Any other word, at the time of words on a louder channel, is dropped if its sound there is so much louder,
# and if it is so much quieter than what else is said on its own channel.
OTHER_WORD_DB = 10.0
QUIETER_DB = 6.0
# The times of the same word on two channels differ by so much at most.
TOLERANCE = 3 * SAMPLE_RATE // 10
# Recognition differs with the level: spellings with this similarity (see `difflib`) are of the same word.
SIMILAR = 0.7


class Loudness(Protocol):
    """How loud a channel is."""

    def level(self, start: int, end: int) -> float:
        """The mean level between two samples, in dB relative to any constant."""


@dataclass(slots=True)
class _Word:
    text: str
    start: int
    end: int
    segment: int  # its index
    level: float
    normalised: str
    is_crosstalk: bool = False


class _Channel:
    """The words of a channel, in order, none overlapping the next."""

    def __init__(self, segments: Sequence[EditedSegment], loudness: Loudness) -> None:
        self.segments = segments
        self.loudness = loudness
        self.words = [
            _Word(text, start, end, index, loudness.level(start, end), _normalised(text))
            for index, segment in enumerate(segments)
            for text, start, end in _spoken(segment)
        ]
        self._starts = [word.start for word in self.words]
        self._ends = [word.end for word in self.words]

    def near(self, word: _Word, tolerance: int) -> list[_Word]:
        """The words whose time overlaps that of another channel's word."""
        first = bisect_right(self._ends, word.start - tolerance)
        return self.words[first : bisect_left(self._starts, word.end + tolerance)]

    def kept(self) -> Iterator[EditedSegment]:
        """The segments without crosstalk. Words that it separates become segments of their own."""
        for index, words in groupby(self.words, key=lambda word: word.segment):
            yield from _without_crosstalk(self.segments[index], list(words))


def without_crosstalk(
    channels: Sequence[Sequence[EditedSegment]], loudness: Sequence[Loudness]
) -> list[list[EditedSegment]]:
    """The segments of each channel, without words that are crosstalk from another one.

    The segments of a channel are in order and do not overlap. A segment without words counts as one word.
    """
    parts = [_Channel(*of_channel) for of_channel in zip(channels, loudness, strict=True)]
    for part in parts:
        _mark(part, [other for other in parts if other is not part])
    return [list(part.kept()) for part in parts]


def _mark(channel: _Channel, others: Sequence[_Channel]) -> None:
    """Mark the words of a channel that are crosstalk."""
    usual: list[float] = []  # levels of words at whose time no other channel is louder
    doubtful: list[_Word] = []
    for word in channel.words:
        louder_by = {other: other.loudness.level(word.start, word.end) - word.level for other in others}
        word.is_crosstalk = any(
            by >= SAME_WORD_DB and any(_are_similar(word, same) for same in other.near(word, TOLERANCE))
            for other, by in louder_by.items()
        )
        if not word.is_crosstalk and any(
            by >= OTHER_WORD_DB and _covers_half(other.near(word, 0), word) for other, by in louder_by.items()
        ):
            doubtful.append(word)
        if all(by < 0 for by in louder_by.values()):
            usual.append(word.level)
    limit = median(usual) - QUIETER_DB if usual else float("inf")
    for word in doubtful:
        word.is_crosstalk = word.level <= limit


def _spoken(segment: EditedSegment) -> Iterator[tuple[str, int, int]]:
    """Text, start and end of each word of a segment; of all of it if it has no words."""
    for word in segment.words:
        yield word.text, word.start, word.end
    if not segment.words:
        yield segment.text, segment.start, segment.end


def _without_crosstalk(segment: EditedSegment, words: Sequence[_Word]) -> Iterator[EditedSegment]:
    if not any(word.is_crosstalk for word in words):
        yield segment
        return
    if not segment.words:
        return
    pairs = zip(words, segment.words, strict=True)
    runs = [
        [word for _, word in run] for is_crosstalk, run in groupby(pairs, _is_crosstalk) if not is_crosstalk
    ]
    for number, run in enumerate(runs):
        yield replace(
            segment,
            start=run[0].start,
            end=max(run[-1].end, run[0].start + 1),
            text="".join(word.text for word in run),
            tokens=(),
            words=tuple(run),
            id=f"{segment.id}.{number}" if number else segment.id,
        )


def _is_crosstalk(pair: tuple[_Word, Word]) -> bool:
    return pair[0].is_crosstalk


def _covers_half(words: Sequence[_Word], word: _Word) -> bool:
    """Whether other words last for at least half of a word's time."""
    covered = sum(min(other.end, word.end) - max(other.start, word.start) for other in words)
    return 2 * covered >= word.end - word.start


def _are_similar(word: _Word, other: _Word) -> bool:
    first, second = word.normalised, other.normalised
    return first == second or SequenceMatcher(None, first, second, autojunk=False).ratio() >= SIMILAR


def _normalised(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
