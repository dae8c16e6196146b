"""A segment as timed text: its units, each with the time in which it is spoken. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.transcript.break_points import break_units, strip_spaces
from app.transcript.lines import width
from app.transcript.retiming import retime
from app.transcript.speech_clock import SpeechClock
from workers.messages import Segment, Span, Word


@dataclass(frozen=True, slots=True)
class TimedText:
    """A unit of text, with the space before it, and its time in samples of the recording."""

    text: str
    start: int
    end: int
    inside_word: bool = False  # begins within one of Whisper's words


def timed_units(segment: Segment, speech: Sequence[Span]) -> tuple[TimedText, ...]:
    """The units of a segment in order, none overlapping the next. Joined, they are its text.

    The first begins and the last ends with the speech in the segment. Between them word times decide; in a
    segment without words, each unit's part of the text.
    """
    parts = _timed_parts(segment)
    texts = break_units("".join(part.text for part in parts).rstrip())
    if not texts or not strip_spaces("".join(texts)):
        return ()
    clock = SpeechClock(segment.start, max(segment.end, segment.start + 1), speech)
    spoken = retime(_readings(texts, parts, clock), texts, clock)
    part_starts = set(accumulate((len(part.text) for part in parts), initial=0))
    positions = accumulate(map(len, texts[:-1]), initial=0)
    units: list[TimedText] = []
    for text, (begins, ends), position in zip(texts, spoken, positions, strict=True):
        start = clock.begins(begins)
        inside_word = len(parts) > 1 and position not in part_starts
        units.append(TimedText(text, start, max(clock.ends(ends), start), inside_word))
    return tuple(units)


def _timed_parts(segment: Segment) -> Sequence[Segment | Word]:
    """The words of the segment, or the segment itself if they do not make up its text."""
    letters = "".join("".join(word.text for word in segment.words).split())
    if segment.words and letters == "".join(segment.text.split()):
        return segment.words
    return (segment,)


def _readings(texts: Sequence[str], parts: Sequence[Segment | Word], clock: SpeechClock) -> list[Span]:
    """When each unit begins and ends on the clock of speech, by the times of the words."""
    part_ends = list(accumulate(width(part.text) for part in parts))
    spans = []
    begin = 0
    for text in texts:
        end = begin + width(text)
        spans.append((_reading(begin, parts, part_ends, clock), _reading(end, parts, part_ends, clock, True)))
        begin = end
    return spans


def _reading(
    column: int,
    parts: Sequence[Segment | Word],
    part_ends: Sequence[int],
    clock: SpeechClock,
    is_end: bool = False,
) -> int:
    """The clock at a column of the text: within a part, in proportion to its width."""
    index = min(bisect_right(part_ends, column - is_end), len(parts) - 1)
    part = parts[index]
    part_width = width(part.text)
    columns = max(part_width, 1)
    into = min(column - part_ends[index] + part_width, columns)
    begins, ends = clock.reading(part.start), clock.reading(part.end)
    return begins + (ends - begins) * into // columns
