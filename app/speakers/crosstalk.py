"""Crosstalk: words of one channel that are heard, much quieter, on another. Each counts once. Pure.

Only words that coincide with words on a louder channel can be crosstalk.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from statistics import median
from typing import Protocol

from app.transcript.edited import EditedSegment
from workers.messages import SAMPLE_RATE, Span, Word

# A word that is on a louder channel as well is crosstalk if its sound there is so much louder.
SAME_WORD_DB = 6.0
# Recognition differs with the level: spellings with this similarity (see `difflib`) are of the same word.
SIMILAR = 0.7
# So many such words show by how much one channel is quieter on the other. What else coincides with words
# there is crosstalk too if its sound is that much quieter, or nearly, and quieter than usual on its channel.
FEWEST_SAME_WORDS = 3
MARGIN_DB = 4.0
QUIETER_DB = 3.0
# If there are fewer, the channels are well separated, and only what is so much quieter is crosstalk.
OTHER_WORD_DB = 20.0
# A word that is so much quieter than usual has no sound of its own. Some words beside crosstalk are like
# this: word times are rough where a voice is hardly heard.
INAUDIBLE_DB = 20.0
TOLERANCE = 3 * SAMPLE_RATE // 10  # samples: the times of the same word on two channels differ by less
_SHORTEST = SAMPLE_RATE // 5  # samples for which a level is measured, at least


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
    is_crosstalk: bool = False

    @property
    def measured(self) -> Span:
        """The samples that say how loud it is."""
        more = max(0, _SHORTEST - (self.end - self.start)) // 2
        return max(0, self.start - more), self.end + more


class _Channel:
    """The words of a channel, in order, none overlapping the next."""

    def __init__(self, segments: Sequence[EditedSegment], loudness: Loudness) -> None:
        self.segments = segments
        self.words = [
            _Word(_normalised(text), start, end, index, 0.0)
            for index, segment in enumerate(segments)
            for text, start, end in _spoken(segment)
        ]
        self._loudness = loudness
        self._starts = [word.start for word in self.words]
        self._ends = [word.end for word in self.words]
        for word in self.words:
            word.level = self.level(word)

    def level(self, word: _Word) -> float:
        """How loud this channel is during a word of any channel."""
        return self._loudness.level(*word.measured)

    def near(self, word: _Word) -> Sequence[_Word]:
        """The words at the time of another channel's word."""
        first = bisect_right(self._ends, word.start - TOLERANCE)
        return self.words[first : bisect_left(self._starts, word.end + TOLERANCE)]

    def without_crosstalk(self) -> Iterator[EditedSegment]:
        """The segments. Words that crosstalk separates become segments of their own."""
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
    return [list(part.without_crosstalk()) for part in parts]


def _mark(channel: _Channel, others: Sequence[_Channel]) -> None:
    """Mark the words of a channel that are crosstalk from the others."""
    # Each word at the time of words on other channels, with these and how much louder they are.
    shared = [
        (
            word,
            [(other, near, other.level(word) - word.level) for other in others if (near := other.near(word))],
        )
        for word in channel.words
    ]
    louder: dict[_Channel, list[float]] = {other: [] for other in others}  # by how much, with the same word
    for word, found in shared:
        for other, near, by in found:
            if by >= SAME_WORD_DB and _is_one_of(word, near):
                word.is_crosstalk = True
                louder[other].append(by)
    own = [word.level for word, found in shared if not any(by > 0 for _, _, by in found)]
    usual = median(own) if own else math.inf
    for word, found in shared:
        if word.level <= usual - QUIETER_DB and any(by >= _limit(louder[other]) for other, _, by in found):
            word.is_crosstalk = True
    is_beside = {id(word) for pair in pairwise(channel.words) if _one_is_crosstalk(pair) for word in pair}
    for word, found in shared:
        if found and word.level <= usual - INAUDIBLE_DB:
            is_same = any(_is_one_of(word, near) for _, near, _ in found)
            word.is_crosstalk |= is_same or id(word) in is_beside


def _limit(louder: Sequence[float]) -> float:
    """How much louder another channel is during crosstalk from it, at least."""
    return median(louder) - MARGIN_DB if len(louder) >= FEWEST_SAME_WORDS else OTHER_WORD_DB


def _one_is_crosstalk(pair: tuple[_Word, _Word]) -> bool:
    return pair[0].is_crosstalk != pair[1].is_crosstalk


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


def _is_one_of(word: _Word, others: Sequence[_Word]) -> bool:
    return any(
        word.text == other.text
        or SequenceMatcher(None, word.text, other.text, autojunk=False).ratio() >= SIMILAR
        for other in others
    )


def _normalised(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
