"""Crosstalk: words of one channel that are on another as well, much quieter. Each counts once. Pure.

Only words that coincide with words on a louder channel can be crosstalk.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby, pairwise
from statistics import median
from typing import Protocol

from app.transcript.edited import EditedSegment
from app.transcript.timeline import in_bounds
from workers.messages import SAMPLE_RATE, Word

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
# this: word times are rough where a voice is very quiet.
INAUDIBLE_DB = 20.0
TOLERANCE = 3 * SAMPLE_RATE // 10  # samples: the times of the same word on two channels differ by less
_SHORTEST = SAMPLE_RATE // 5  # samples for which a level is measured, at least


class Loudness(Protocol):
    """How loud a channel is."""

    def level(self, start: int, end: int) -> float:
        """The mean level between two samples, in dB relative to any constant."""


@dataclass(slots=True, eq=False)
class _Word:
    text: str  # without case and punctuation
    start: int
    end: int
    segment: int  # its index
    is_crosstalk: bool = False


class _Channel:
    """The words of a channel, in order, none overlapping the next."""

    def __init__(self, segments: Sequence[EditedSegment], loudness: Loudness) -> None:
        self.segments = segments
        self.words = [
            _Word(_normalised(text), start, end, index)
            for index, segment in enumerate(segments)
            for text, start, end in _spoken(segment)
        ]
        self._loudness = loudness
        self._starts = [word.start for word in self.words]
        self._ends = [word.end for word in self.words]

    def level(self, *words: _Word) -> float:
        """How loud this channel is while words of any channels are spoken."""
        start, end = min(word.start for word in words), max(word.end for word in words)
        more = max(0, _SHORTEST - (end - start)) // 2
        return self._loudness.level(max(0, start - more), end + more)

    def near(self, word: _Word) -> Sequence[_Word]:
        """The words at the time of another channel's word."""
        first = bisect_right(self._ends, word.start - TOLERANCE)
        return self.words[first : bisect_left(self._starts, word.end + TOLERANCE)]

    def without_crosstalk(self) -> Iterator[EditedSegment]:
        """The segments. Words that crosstalk separates become segments of their own."""
        for index, words in groupby(self.words, key=lambda word: word.segment):
            yield from _without_crosstalk(self.segments[index], list(words))


@dataclass(frozen=True, slots=True)
class _Shared:
    """A word at whose time another channel has words, too."""

    word: _Word
    level: float
    other: _Channel
    near: Sequence[_Word]  # of the other channel
    louder_by: float  # the other channel; negative if it is quieter

    @property
    def same(self) -> Iterator[_Word]:
        """The other channel's words that are the same."""
        return (word for word in self.near if _are_similar(self.word.text, word.text))


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
    shared = [
        _Shared(word, level, other, near, other.level(word) - level)
        for word in channel.words
        for level in [channel.level(word)]
        for other in others
        if (near := other.near(word))
    ]
    limits = {other: _mark_same_words(channel, other, shared) for other in others}
    louder_elsewhere = {each.word for each in shared if each.louder_by > 0}
    own = [channel.level(word) for word in channel.words if word not in louder_elsewhere]
    usual = median(own) if own else math.inf
    for each in shared:
        if each.level <= usual - QUIETER_DB and each.louder_by >= limits[each.other]:
            each.word.is_crosstalk = True
    if own:
        _mark_inaudible_words(channel, shared, usual - INAUDIBLE_DB)


def _mark_same_words(channel: _Channel, other: _Channel, shared: Sequence[_Shared]) -> float:
    """Mark the words that are on a louder channel as well.

    Returns how much louder that channel is, at least, during any crosstalk from it.
    """
    louder_by = []
    for each in shared:
        # The second comparison says the opposite for the other word of a pair: one of them stays.
        if (
            each.other is other
            and each.louder_by >= SAME_WORD_DB
            and any(other.level(each.word, same) > channel.level(each.word, same) for same in each.same)
        ):
            each.word.is_crosstalk = True
            louder_by.append(each.louder_by)
    return median(louder_by) - MARGIN_DB if len(louder_by) >= FEWEST_SAME_WORDS else OTHER_WORD_DB


def _mark_inaudible_words(channel: _Channel, shared: Sequence[_Shared], limit: float) -> None:
    """Mark words without sound that another channel has, or that are beside crosstalk."""
    beside = {
        word
        for pair in pairwise(channel.words)
        if pair[0].is_crosstalk != pair[1].is_crosstalk
        for word in pair
    }
    for each in shared:
        if each.level <= limit and (
            each.word in beside or any(each.other.level(same) > limit for same in each.same)
        ):
            each.word.is_crosstalk = True


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
    parts = [
        replace(
            segment,
            start=run[0].start,
            end=run[-1].end,
            text="".join(word.text for word in run),
            tokens=(),  # those of the model say all of it
            words=tuple(run),
            id=f"{segment.id}.{number}" if number else segment.id,
        )
        for number, run in enumerate(runs)
    ]
    yield from in_bounds(parts, (segment.start, segment.end)) if parts else ()


def _is_crosstalk(pair: tuple[_Word, Word]) -> bool:
    return pair[0].is_crosstalk


@lru_cache(4096)
def _are_similar(text: str, other: str) -> bool:
    return text == other or SequenceMatcher(None, text, other, autojunk=False).ratio() >= SIMILAR


def _normalised(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
