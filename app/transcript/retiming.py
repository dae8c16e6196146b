"""Correct the times of a segment's units where the word times are not credible. Pure.

Word times come from cross-attention: it drifts over pauses, and can heap words onto one moment. Two facts
are more reliable: people pause between sentences, and nobody speaks faster than a limit. All times here are
readings of the clock of speech, in samples of speech.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from app.transcript.break_points import ends_sentence
from app.transcript.lines import width
from app.transcript.speech_clock import SpeechClock
from workers.messages import SAMPLE_RATE, Span

FASTEST_SPEECH = SAMPLE_RATE // 30  # samples per column of text: some 30 characters per second

# The pause after a sentence is looked for within this distance of where the words put it: the 90th
# percentile of the error of word times, measured on the demo model, and a little more.
PAUSE_REACH = SAMPLE_RATE  # samples


def retime(spans: Sequence[Span], texts: Sequence[str], clock: SpeechClock) -> list[Span]:
    """The spans of the units `texts`, in order, without overlap, from the clock's start to its end.

    A sentence that ends near a pause ends at it. Within a sentence each unit keeps its time, unless
    that leaves the units around it less time than the fastest speech needs. A unit may last no time.
    """
    retimed: list[Span] = []
    for (first, begins), (last, ends) in pairwise(_sentence_edges(spans, texts, clock)):
        retimed += _limit_speech_rate(spans[first:last], texts[first:last], begins, ends)
    return retimed


def _sentence_edges(spans: Sequence[Span], texts: Sequence[str], clock: SpeechClock) -> list[tuple[int, int]]:
    """`(index of the first unit, reading)` of each sentence after a pause; then the number of units, the end.

    A pause near the end of a sentence is preferred by its distance and its length.
    """
    edges = [(0, 0)]
    for index in range(1, len(texts)):
        if not clock.pauses or not ends_sentence(texts[index - 1]):
            continue
        by_words = (spans[index - 1][1] + spans[index][0]) // 2
        in_reach = [
            (abs(reading - by_words) - min(samples, PAUSE_REACH), reading)
            for reading, samples in clock.pauses
            if abs(reading - by_words) <= PAUSE_REACH and reading > edges[-1][1]
        ]
        if in_reach:
            edges.append((index, min(in_reach)[1]))
    return [*edges, (len(texts), clock.length)]


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
