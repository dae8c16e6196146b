"""A segment as timed tokens: what may not be broken, with the time in which it is spoken. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.transcript.break_points import break_units, strip_spaces
from app.transcript.lines import width
from app.transcript.retiming import retime
from app.transcript.speech_clock import SpeechClock
from workers.messages import Segment, Span


@dataclass(frozen=True, slots=True)
class TimedText:
    """An atom of text, with the space before it, and its time in samples of the recording."""

    text: str
    start: int
    end: int
    inside_word: bool = False  # begins within what Whisper takes for one word


def tokens(segment: Segment, speech: Sequence[Span]) -> tuple[TimedText, ...]:
    """The tokens of a segment in order, none overlapping the next; joined, they are its text.

    The first begins and the last ends with the segment, as far as that lies in speech; between them the
    times of its words count, or, in a segment without words, the share of text that has been spoken.
    """
    timed = _timed_text(segment)
    texts = break_units("".join(text for text, _, _ in timed).rstrip())
    if not texts or not strip_spaces("".join(texts)):
        return ()
    clock = SpeechClock(segment.start, max(segment.end, segment.start + 1), speech)
    spoken = retime(_readings(texts, timed, clock), texts, clock)
    inside = _inside_words(texts, timed)
    return tuple(
        TimedText(text, *_sample_span(clock, *readings), inside_word)
        for text, readings, inside_word in zip(texts, spoken, inside, strict=True)
    )


_Timed = tuple[str, int, int]  # text, start and end in samples of the recording


def _timed_text(segment: Segment) -> list[_Timed]:
    """The words of a segment; the segment as one stretch if it has none, or not all of its text in them."""
    words = [(word.text, word.start, word.end) for word in segment.words]
    if words and _letters(text for text, _, _ in words) == _letters([segment.text]):
        return words
    return [(segment.text, segment.start, segment.end)]


def _letters(texts: Iterable[str]) -> str:
    return "".join("".join(texts).split())


def _readings(texts: Sequence[str], timed: Sequence[_Timed], clock: SpeechClock) -> list[Span]:
    """When each atom begins and ends on the clock of speech, as far as the words' times can be believed."""
    word_ends = list(accumulate(width(text) for text, _, _ in timed))
    spans = []
    begin = 0
    for text in texts:
        end = begin + width(text)
        spans.append((_reading(begin, timed, word_ends, clock), _reading(end, timed, word_ends, clock, True)))
        begin = end
    return spans


def _reading(
    column: int, timed: Sequence[_Timed], word_ends: Sequence[int], clock: SpeechClock, is_end: bool = False
) -> int:
    """The clock at a column of the text: within a word, in proportion to its width."""
    index = min(bisect_right(word_ends, column - is_end), len(timed) - 1)
    text, start, end = timed[index]
    columns = max(width(text), 1)
    into = min(column - word_ends[index] + width(text), columns)
    begins, ends = clock.reading(start), clock.reading(end)
    return begins + (ends - begins) * into // columns


def _sample_span(clock: SpeechClock, begins: int, ends: int) -> Span:
    start = clock.begins(begins)
    return start, max(clock.ends(ends), start)


def _inside_words(texts: Sequence[str], timed: Sequence[_Timed]) -> Iterator[bool]:
    """For each atom, whether it begins within a word."""
    word_starts = set(accumulate((len(text) for text, _, _ in timed), initial=0))
    begin = 0
    for text in texts:
        yield len(timed) > 1 and begin not in word_starts
        begin += len(text)
