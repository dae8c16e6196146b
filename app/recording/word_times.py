"""The times of the words of a clip. Pure.

Three sources disagree. The decoder's timestamps stand around sentences: exact in some models, in others on
whole seconds and in the next sentence. Cross-attention times every word: within tenths of a second in
Whisper's own models, but in some it drifts over pauses. Edges of speech are exact, but not each is that of a
sentence. So in each clip, that one of the first two counts which is nearer to edges of speech. And where
attention heaps the words of a sentence, their letters say more.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from app.transcript.cues.speech_clock import SpeechClock
from workers.messages import MIN_WORD_SAMPLES, SAMPLE_RATE, Segment, Span, Word

_REACH_SAMPLES = 4 * SAMPLE_RATE // 5  # a sentence by attention moves its edges so far, to edges of speech
_FAR_SAMPLES = SAMPLE_RATE  # edges of speech that are further away count as no farther
# An edge of a sentence tells which source is better if one of the two is so near to an edge of speech. Where
# nobody pauses, fewer than this share of them do, and timestamps are better.
_TELLING_SAMPLES = 3 * SAMPLE_RATE // 5
_LEAST_TELLING = 0.4
_CLEARLY_NEARER = 0.8  # timestamps count if their distance is below so much of that of attention
# Attention has heaped a sentence if so many of its words are shorter than anybody says one, and so many of
# the clip: in Whisper's own models, one of a hundred is. A word keeps its time then if that is so near to
# where its letters put it.
_HEAPED, _HEAPED_OF_ALL = 0.1, 0.06
_NEAR_SAMPLES = SAMPLE_RATE * 3 // 20


def place_words(segments: Iterable[Segment], speech: Sequence[Span]) -> list[Segment]:
    """The segments of a clip with their words in order, without overlaps, and in its speech if it has any.

    A segment with words starts with the first and ends with the last of them. All times are in samples from
    the same origin. A segment without a duration loses its words.
    """
    placed = [segment if segment.end > segment.start else replace(segment, words=()) for segment in segments]
    aligned = [segment for segment in placed if segment.words]
    timed = _by_timestamps if _timestamps_count(aligned, speech) else _by_attention
    in_order = _without_overlaps([span for segment in aligned for span in timed(segment, speech)])
    short = sum(end - start < MIN_WORD_SAMPLES for start, end in in_order)
    is_heaped = short >= _HEAPED_OF_ALL * len(in_order)
    following = iter(in_order)
    for place, segment in enumerate(placed):
        if segment.words:
            spans = [next(following) for _ in segment.words]
            if is_heaped:
                spans = _spread(spans, segment.words, speech)
            words = tuple(
                word if span == (word.start, word.end) else Word(word.text, *span, word.probability)
                for word, span in zip(segment.words, spans, strict=True)
            )
            placed[place] = replace(segment, start=words[0].start, end=words[-1].end, words=words)
    return placed


def _timestamps_count(segments: Sequence[Segment], speech: Sequence[Span]) -> bool:
    """Whether the timestamps of sentences are better than attention, by the edges of speech near them."""
    starts, ends = [start for start, _ in speech], [end for _, end in speech]
    distances = [
        [
            min((_FAR_SAMPLES, *(abs(position - edge) for edge in edges)))
            for position in (by_timestamp, by_words)
        ]
        for segment in segments
        for by_timestamp, by_words, edges in (
            (segment.start, segment.words[0].start, starts),
            (segment.end, segment.words[-1].end, ends),
        )
    ]
    telling = [pair for pair in distances if min(pair) < _TELLING_SAMPLES]
    if len(telling) < _LEAST_TELLING * len(distances):
        return True
    return sum(by for by, _ in telling) <= _CLEARLY_NEARER * sum(by for _, by in telling)


def _by_timestamps(segment: Segment, speech: Sequence[Span]) -> list[Span]:
    """The words in that part of the segment that is speech, all of which they span.

    Without what a timestamp cuts off from the sentence before or after, if no word of this one is in it.
    """
    spans = [(max(start, segment.start), min(end, segment.end)) for start, end in speech]
    spans = [(start, end) for start, end in spans if start < end] or [(segment.start, segment.end)]
    words = _into_speech(segment.words, spans)
    if spans[-1] not in speech and words[-1][1] < spans[-1][0]:
        spans = [span for span in spans if span[0] <= words[-1][1]] or spans[:1]
    if spans[0] not in speech and words[0][0] > spans[0][1]:
        spans = [span for span in spans if span[1] >= words[0][0]] or spans[-1:]
    words[0] = (spans[0][0], words[0][1])
    words[-1] = (words[-1][0], spans[-1][1])
    return words


def _by_attention(segment: Segment, speech: Sequence[Span]) -> list[Span]:
    """The words in speech; the first one starts and the last one ends at an edge of speech in reach."""
    words = _into_speech(segment.words, speech)
    start = _in_reach(words[0][0], [start for start, _ in speech])
    words[0] = (start, max(start, words[0][1]))
    end = _in_reach(words[-1][1], [end for _, end in speech])
    words[-1] = (min(words[-1][0], end), end)
    return words


def _in_reach(position: int, edges: Iterable[int]) -> int:
    """The nearest edge in reach, or else the position."""
    nearest = min(edges, key=lambda edge: abs(edge - position), default=position)
    return nearest if abs(nearest - position) <= _REACH_SAMPLES else position


def _into_speech(words: Iterable[Word], spans: Sequence[Span]) -> list[Span]:
    """The part of each word inside the span with the largest overlap, or else the nearest edge of a span."""
    starts = [start for start, _ in spans]
    placed = []
    for word in words:
        start, end = word.start, word.end
        at = bisect_right(starts, start) - 1
        if at < 0 or not start <= end <= spans[at][1]:
            # Below 0, the overlap is the distance between word and span.
            overlaps = [min(end, last) - max(start, first) for first, last in spans]
            first, last = spans[overlaps.index(max(overlaps))]
            start = min(max(start, first), last)
            end = max(start, min(end, last))
        placed.append((start, end))
    return placed


def _without_overlaps(words: Sequence[Span]) -> list[Span]:
    """The words in order of time: each ends where the next one starts, at the latest."""
    placed = []
    earliest = 0
    limits = [*(start for start, _ in words[1:]), *(end for _, end in words[-1:])]
    for (start, end), limit in zip(words, limits, strict=True):
        # Compared, not by `max` and `min`: these lines run for each word.
        if start < earliest:
            start = earliest
        if end > limit:
            end = limit
        earliest = end if end > start else start
        placed.append((start, earliest))
    return placed


def _spread(spans: list[Span], words: Sequence[Word], speech: Sequence[Span]) -> list[Span]:
    """The spans of a sentence's words; if they are heaped, those far from where their letters put them move.

    These share the speech between the others in proportion to their letters, and none goes on over a pause.
    """
    is_short = [end - start < MIN_WORD_SAMPLES for start, end in spans]
    if len(words) == 1 or sum(is_short) < _HEAPED * len(words):
        return spans
    clock = SpeechClock(spans[0][0], spans[-1][1], speech)
    letters = [*accumulate((max(1, letter_count(word.text)) for word in words), initial=0)]
    starts = [*(clock.reading(start) for start, _ in spans), clock.length]
    known = [
        at
        for at, (start, before) in enumerate(zip(starts, letters, strict=True))
        if at in (0, len(words))
        or (not is_short[at] and abs(start - clock.length * before // letters[-1]) <= _NEAR_SAMPLES)
    ]
    between = np.interp(letters, [letters[at] for at in known], [starts[at] for at in known])
    edges = list(map(round, between.tolist()))  # numpy's own numbers are slow to round
    for pause, _ in clock.pauses:
        after = min(max(bisect_right(edges, pause), 1), len(words) - 1)
        before = max(after - 1, 1)
        edges[before if pause - edges[before] < edges[after] - pause else after] = pause
    placed = [(clock.begins(start), clock.ends(end)) for start, end in pairwise(edges)]
    return [(start, max(start, end)) for start, end in placed]


def letter_count(text: str) -> int:
    """How many letters and digits a text has."""
    text = text.strip()
    return len(text) if text.isalnum() else sum(map(str.isalnum, text))
