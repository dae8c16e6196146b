"""A segment as timed text: its units, each with the time in which it is spoken. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from app.transcript.cues.speech_clock import SpeechClock, missed_speech
from app.transcript.edited import EditedSegment, Mark, count_letters, is_timed_by_hand, speaker_of
from app.transcript.text.breaks import Break, break_units, rate_breaks
from app.transcript.text.scripts import SPACES, width
from workers.messages import SAMPLE_RATE, Segment, Span, Word


@dataclass(frozen=True, slots=True)
class TimedText:
    """A unit of text, with the space before it, and its time in samples of the recording."""

    text: str
    start: int
    end: int
    break_before: Break = Break.PLAIN  # how good a break before it is
    begins_segment: bool = False
    hand_times: Span | None = None  # start and end of its segment, if someone chose them
    speaker: str | None = None  # None: not known
    language: str | None = None  # ISO 639-1 code of the text; None: that of all text
    segment: str = ""  # its id
    letters: Span = (0, 0)  # of the segment's text: its first one, and the one after its last
    mark: Mark | None = None  # that somebody set before it

    @property
    def cue_break(self) -> Break:
        """How good it is to begin a cue with it inside a passage."""
        return Break.POOR if self.mark == "join" else self.break_before


def timed_units(
    segment: Segment, speech: Sequence[Span], language: str, max_width: int
) -> tuple[TimedText, ...]:
    """The units of a segment in order, none overlapping the next. Joined, they are its text.

    The first begins and the last ends with the speech in the segment. Between them word times decide; in a
    segment without words, each unit's part of the text.
    """
    letters = "".join("".join(word.text for word in segment.words).split())
    is_of_words = segment.words and letters == "".join(segment.text.split())
    parts: Sequence[Segment | Word] = segment.words if is_of_words else (segment,)
    texts = break_units("".join(part.text for part in parts).rstrip(), language, max_width)
    if not texts or not "".join(texts).strip(SPACES):
        return ()
    segment_id, last, marks = "", 0, dict[int, Mark]()
    if isinstance(segment, EditedSegment):
        segment_id, last, marks = segment.id, segment.letters_before, dict(segment.marks)
    if marks:
        texts = list(_divided(texts, last, marks))
    end = max(segment.end, segment.start + 1)
    clock = SpeechClock(segment.start, end, speech)
    if missed := missed_speech(segment, clock, language):
        clock = SpeechClock(segment.start, end, speech, missed)
    breaks = rate_breaks(texts, language)
    spoken = retime(_readings(texts, parts, clock), texts, breaks, clock)
    units: list[TimedText] = []
    hand_times = (segment.start, segment.end) if is_timed_by_hand(segment) else None
    speaker = speaker_of(segment)
    for text, (begins, ends), break_before in zip(texts, spoken, breaks, strict=True):
        start = clock.begins(begins)
        end = max(clock.ends(ends), start)
        of_segment = (not units, hand_times, speaker, segment.language, segment_id)
        first, last = last, last + count_letters(text)
        units.append(TimedText(text, start, end, break_before, *of_segment, (first, last), marks.get(first)))
    return tuple(units)


def _divided(texts: Sequence[str], letters: int, marks: Mapping[int, Mark]) -> Iterator[str]:
    """The texts, divided before each mark `break` inside one. `letters`: those before the first."""
    for text in texts:
        begin, first = 0, letters
        for at, char in enumerate(text):
            if not char.isspace():
                if letters > first and marks.get(letters) == "break":
                    yield text[begin:at]
                    begin = at
                letters += 1
        yield text[begin:]


def _readings(texts: Sequence[str], parts: Sequence[Segment | Word], clock: SpeechClock) -> list[Span]:
    """When each unit begins and ends on the clock of speech, by the times of the words."""
    edges = list(accumulate((width(part.text) for part in parts), initial=0))  # columns
    times = [(clock.reading(part.start), clock.reading(part.end)) for part in parts]

    def reading(column: int, is_end: bool) -> int:
        """The clock at a column of the text: within a part, in proportion to its width."""
        index = min(max(bisect_right(edges, column - is_end) - 1, 0), len(parts) - 1)
        first, last = edges[index], edges[index + 1]
        begins, ends = times[index]
        return begins + (ends - begins) * min(column - first, last - first) // max(last - first, 1)

    columns = accumulate(map(width, texts), initial=0)
    return [(reading(first, False), reading(last, True)) for first, last in pairwise(columns)]


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

    edges = [begins + at_fastest * column // total for column in columns]  # at the fastest from the beginning
    slack = ends - begins - at_fastest
    starts = [min(max(start, edge), edge + slack) for (start, _), edge in zip(spans, edges, strict=False)]
    starts = [begins, *accumulate(starts[1:], max)]
    stops = [min(max(stop, edge), edge + slack) for (_, stop), edge in zip(spans, edges[1:], strict=True)]
    stops[-1] = ends
    limits = [*starts, ends][1:]
    return [
        (start, min(max(start, stop), limit))
        for start, stop, limit in zip(starts, stops, limits, strict=True)
    ]
