"""Settle when each atom of a segment is spoken, where the word times cannot be believed as they are. Pure.

Word times come from cross-attention: it drifts over pauses, and can heap words onto one moment. Two things
are surer than it: people pause between sentences, and nobody speaks arbitrarily fast. All times here are
readings of the clock of speech, in samples of speech.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from app.transcript.break_points import ends_sentence
from app.transcript.lines import width
from app.transcript.speech_clock import SpeechClock
from workers.messages import SAMPLE_RATE, Span

FASTEST_SPEECH = SAMPLE_RATE // 30  # samples per column of text: some 30 characters per second

# How far from where the words put it the pause after a sentence is looked for: the 90th percentile of the
# error of word times, measured on the demo model, and a little more.
PAUSE_REACH = SAMPLE_RATE  # samples


def retime(spans: Sequence[Span], texts: Sequence[str], clock: SpeechClock) -> list[Span]:
    """The spans of the break_units `texts`, in order, without overlap, and together all of the clock's time.

    A sentence that ends near a pause ends at it. Within a sentence each atom keeps its time as far as the
    break_units around it still have the time that they need at the least; an atom may last no time at all.
    """
    settled: list[Span] = []
    for (first, begins), (last, ends) in pairwise(_sentence_edges(spans, texts, clock)):
        settled += _apart(spans[first:last], texts[first:last], begins, ends)
    return settled


def _sentence_edges(spans: Sequence[Span], texts: Sequence[str], clock: SpeechClock) -> list[tuple[int, int]]:
    """`(index of the first atom, reading)` of each sentence set off by a pause, and of the end of all."""
    edges = [(0, 0)]
    pauses = clock.pauses
    for index in range(1, len(texts)):
        if not pauses or not ends_sentence(texts[index - 1]):
            continue
        said = (spans[index - 1][1] + spans[index][0]) // 2
        in_reach = [
            (abs(reading - said) - min(samples, PAUSE_REACH), reading)
            for reading, samples in pauses
            if abs(reading - said) <= PAUSE_REACH and reading > edges[-1][1]
        ]
        if in_reach:
            edges.append((index, min(in_reach)[1]))
    return [*edges, (len(texts), clock.length)]


def _apart(spans: Sequence[Span], texts: Sequence[str], begins: int, ends: int) -> list[Span]:
    """The spans from `begins` to `ends`, none so early or late that the text around it has no time."""
    passed = list(accumulate(map(width, texts), initial=0))
    total = max(passed[-1], 1)
    at_fastest = min(FASTEST_SPEECH * total, ends - begins)  # samples of speech for all of the text

    def bounded(reading: int, column: int) -> int:
        needed = at_fastest * column // total
        return min(max(reading, begins + needed), ends - at_fastest + needed)

    starts = [bounded(start, column) for (start, _), column in zip(spans, passed[:-1], strict=True)]
    starts = [begins, *accumulate(starts[1:], max)]
    stops = [bounded(stop, column) for (_, stop), column in zip(spans, passed[1:], strict=True)]
    stops[-1] = ends
    limits = [*starts, ends][1:]
    return [
        (start, min(max(start, stop), limit))
        for start, stop, limit in zip(starts, stops, limits, strict=True)
    ]
