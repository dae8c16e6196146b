"""Correct the times of a segment's units where the word times are not credible. Pure.

Word times come from cross-attention: it drifts over pauses, and can heap words onto one moment. Two facts
are more reliable: people pause between sentences, and nobody speaks faster than a limit. All times here are
readings of the clock of speech, in samples of speech.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from app.transcript.break_points import Break
from app.transcript.speech_clock import SpeechClock
from app.transcript.width import width
from workers.messages import SAMPLE_RATE, Span

FASTEST_SPEECH = SAMPLE_RATE // 30  # samples per column of text: some 30 characters per second

# The pause after a sentence is looked for within this distance of where the words put it: the 90th
# percentile of the error of word times, measured on the demo model, and a little more.
PAUSE_REACH = SAMPLE_RATE  # samples


# A word this many times as long as the others of its width, and longer than this, has taken their time.
_TOO_LONG = 2
_LONG = SAMPLE_RATE // 2  # samples


def retime(
    spans: Sequence[Span], texts: Sequence[str], breaks: Sequence[Break], clock: SpeechClock
) -> list[Span]:
    """The spans of the units `texts`, in order, without overlap, from the clock's start to its end.

    `breaks`: how good the break before each unit is.
    A sentence that ends near a pause ends at it. Within a sentence each unit keeps its time, unless
    that leaves the units around it less time than the fastest speech needs. A unit may last no time.
    """
    spans = _spread_heaps(spans, texts, clock.length)
    retimed: list[Span] = []
    for (first, begins), (last, ends) in pairwise(_sentence_edges(spans, breaks, clock)):
        retimed += _limit_speech_rate(spans[first:last], texts[first:last], begins, ends)
    return retimed


def _spread_heaps(spans: Sequence[Span], texts: Sequence[str], length: int) -> Sequence[Span]:
    """The spans, those that are too short to be true spread over the time around them.

    Each run of them shares the time between its neighbours, in proportion to the width of the text. A
    neighbour that is far too long takes part in it.
    """
    widths = list(map(width, texts))
    average = length // max(sum(widths), 1)  # samples per column
    credible = [
        end - start >= FASTEST_SPEECH * columns or not columns
        for (start, end), columns in zip(spans, widths, strict=True)
    ]
    if all(credible):
        return spans
    is_long = [
        end - start > max(_TOO_LONG * average * columns, _LONG)
        for (start, end), columns in zip(spans, widths, strict=True)
    ]
    spread = list(spans)
    at = 0
    while at < len(spans):
        if credible[at]:
            at += 1
            continue
        first = at - (at > 0 and is_long[at - 1])
        while at < len(spans) and not credible[at]:
            at += 1
        last = at + (at < len(spans) and is_long[at])
        begins = spread[first - 1][1] if first else 0
        ends = spread[last][0] if last < len(spans) else length
        columns = list(accumulate(widths[first:last], initial=0))
        times = [begins + max(ends - begins, 0) * column // max(columns[-1], 1) for column in columns]
        spread[first:last] = pairwise(times)
        at = last
    return spread


def _sentence_edges(
    spans: Sequence[Span], breaks: Sequence[Break], clock: SpeechClock
) -> list[tuple[int, int]]:
    """`(index of the first unit, reading)` of each sentence after a pause; then the number of units, the end.

    A pause near the end of a sentence is preferred by its distance and, half as much, by its length.
    """
    edges = [(0, 0)]
    for index in range(1, len(breaks)):
        if not clock.pauses or breaks[index] is not Break.SENTENCE:
            continue
        by_words = (spans[index - 1][1] + spans[index][0]) // 2
        earliest = max(by_words - PAUSE_REACH, edges[-1][1] + 1)
        first = bisect_left(clock.pauses, (earliest, 0))
        last = bisect_right(clock.pauses, by_words + PAUSE_REACH, key=lambda pause: pause[0])
        in_reach = [
            (2 * abs(reading - by_words) - min(samples, PAUSE_REACH), reading)
            for reading, samples in clock.pauses[first:last]
        ]
        if in_reach:
            edges.append((index, min(in_reach)[1]))
    return [*edges, (len(breaks), clock.length)]


def _limit_speech_rate(spans: Sequence[Span], texts: Sequence[str], begins: int, ends: int) -> list[Span]:
    """The spans from `begins` to `ends`, with time for the text before and after each at the fastest rate."""
    columns = list(accumulate(map(width, texts), initial=0))
    total = max(columns[-1], 1)
    at_fastest = min(FASTEST_SPEECH * total, ends - begins)  # samples of speech for all of the text

    def bounded(reading: int, column: int) -> int:
        needed = at_fastest * column // total
        return min(max(reading, begins + needed), ends - at_fastest + needed)

    starts = [bounded(start, column) for (start, _), column in zip(spans, columns[:-1], strict=True)]
    starts = [begins, *accumulate(starts[1:], max)]
    stops = [bounded(stop, column) for (_, stop), column in zip(spans, columns[1:], strict=True)]
    stops[-1] = ends
    limits = [*starts, ends][1:]
    return [
        (start, min(max(start, stop), limit))
        for start, stop, limit in zip(starts, stops, limits, strict=True)
    ]
