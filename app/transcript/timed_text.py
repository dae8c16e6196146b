"""A segment as timed text: its units, each with the time in which it is spoken. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from app.transcript.break_points import Break, break_units, rate_breaks
from app.transcript.edited import is_timed_by_hand, speaker_of
from app.transcript.missed_speech import missed_speech
from app.transcript.retiming import retime
from app.transcript.scripts import strip_spaces
from app.transcript.speech_clock import SpeechClock
from app.transcript.width import width
from workers.messages import Segment, Span, Word


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


def timed_units(
    segment: Segment, speech: Sequence[Span], language: str, max_width: int
) -> tuple[TimedText, ...]:
    """The units of a segment in order, none overlapping the next. Joined, they are its text.

    The first begins and the last ends with the speech in the segment. Between them word times decide; in a
    segment without words, each unit's part of the text.
    """
    parts = _timed_parts(segment)
    texts = break_units("".join(part.text for part in parts).rstrip(), language, max_width)
    if not texts or not strip_spaces("".join(texts)):
        return ()
    clock = _clock(segment, speech, language)
    breaks = rate_breaks(texts, language)
    spoken = retime(_readings(texts, parts, clock), texts, breaks, clock)
    units: list[TimedText] = []
    hand_times = (segment.start, segment.end) if is_timed_by_hand(segment) else None
    speaker = speaker_of(segment)
    for text, (begins, ends), break_before in zip(texts, spoken, breaks, strict=True):
        start = clock.begins(begins)
        end = max(clock.ends(ends), start)
        units.append(TimedText(text, start, end, break_before, not units, hand_times, speaker))
    return tuple(units)


def _clock(segment: Segment, speech: Sequence[Span], language: str) -> SpeechClock:
    """The clock of the speech in the segment, and of short words that were not found as speech."""
    end = max(segment.end, segment.start + 1)
    clock = SpeechClock(segment.start, end, speech)
    missed = missed_speech(segment, clock, language)
    return SpeechClock(segment.start, end, speech, missed) if missed else clock


def _timed_parts(segment: Segment) -> Sequence[Segment | Word]:
    """The words of the segment, or the segment itself if they do not make up its text."""
    letters = "".join("".join(word.text for word in segment.words).split())
    if segment.words and letters == "".join(segment.text.split()):
        return segment.words
    return (segment,)


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
