"""Moves words into their segment and into speech. Pure.

Word times come from cross-attention, which drifts over pauses. Segment times and speech spans are more exact.
"""

from collections.abc import Sequence
from dataclasses import replace

from workers.messages import Segment, Span, Word


def place_words(segment: Segment, speech: Sequence[Span]) -> Segment:
    """`segment` with its words in order, without overlaps, each inside the segment and in speech.

    If an edge of the segment is in speech, the first word starts or the last word ends at that edge.
    All times are in samples from the same origin. A segment without a duration loses its words.
    """
    if not segment.words or segment.end <= segment.start:
        return replace(segment, words=())
    spans = [(max(a, segment.start), min(b, segment.end)) for a, b in speech]
    spans = [(a, b) for a, b in spans if a < b] or [(segment.start, segment.end)]
    words = [_move_into_speech(word, spans) for word in segment.words]
    words[0] = replace(words[0], start=spans[0][0])
    words[-1] = replace(words[-1], end=spans[-1][1])
    placed = []
    earliest = segment.start
    for word in words:
        start = min(max(word.start, earliest), segment.end)
        earliest = min(max(word.end, start), segment.end)
        placed.append(replace(word, start=start, end=earliest))
    return replace(segment, words=tuple(placed))


def _move_into_speech(word: Word, spans: Sequence[Span]) -> Word:
    """The part of a word inside the span with the largest overlap, or else the nearest edge of a span."""
    # Below 0, the overlap is the distance between word and span.
    start, end = max(spans, key=lambda span: min(word.end, span[1]) - max(word.start, span[0]))
    word_start = min(max(word.start, start), end)
    return replace(word, start=word_start, end=max(word_start, min(word.end, end)))
