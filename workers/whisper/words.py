"""Where words belong: inside their segment, and where somebody speaks. Pure.

Word times come from cross-attention, which drifts over pauses; segment times and speech spans are better.
"""

from collections.abc import Sequence
from dataclasses import replace

from workers.messages import Segment, Span, Word


def place_words(segment: Segment, speech: Sequence[Span]) -> Segment:
    """`segment` with its words in order, none overlapping another, each inside the segment and in speech.

    The first word begins and the last one ends with the segment where the segment's edge lies in speech.
    All times in samples from the same origin; a segment without words stays as it is.
    """
    if not segment.words or segment.end <= segment.start:
        return replace(segment, words=())
    spans = [(max(a, segment.start), min(b, segment.end)) for a, b in speech]
    spans = [(a, b) for a, b in spans if a < b] or [(segment.start, segment.end)]
    words = [_into_speech(word, spans) for word in segment.words]
    words[0] = replace(words[0], start=spans[0][0])
    words[-1] = replace(words[-1], end=spans[-1][1])
    return replace(segment, words=tuple(_in_order(words, segment)))


def _into_speech(word: Word, spans: Sequence[Span]) -> Word:
    """The part of a word in the span that it shares most with, or else the edge of the nearest span."""
    best = max(spans, key=lambda span: (_shared(word, span), -_distance(word, span)))
    start = min(max(word.start, best[0]), best[1])
    return replace(word, start=start, end=max(start, min(word.end, best[1])))


def _shared(word: Word, span: Span) -> int:
    return max(0, min(word.end, span[1]) - max(word.start, span[0]))


def _distance(word: Word, span: Span) -> int:
    return max(span[0] - word.end, word.start - span[1], 0)


def _in_order(words: Sequence[Word], segment: Segment) -> list[Word]:
    """The words with times that never go back, nor out of the segment."""
    placed = []
    earliest = segment.start
    for word in words:
        start = min(max(word.start, earliest), segment.end)
        earliest = min(max(word.end, start), segment.end)
        placed.append(replace(word, start=start, end=earliest))
    return placed
