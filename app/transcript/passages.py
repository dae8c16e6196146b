"""Passages: stretches of speech that cues are made of, whatever the segments of the model. Pure.

Whisper's segments often end inside a sentence. A passage goes on across them until somebody pauses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.transcript.break_points import Break, break_between, ends_description, may_join
from app.transcript.timed_text import TimedText
from workers.messages import SAMPLE_RATE

# A passage ends at a pause; inside a sentence, the pause must be longer.
PAUSE = SAMPLE_RATE // 2  # samples
_PAUSE_IN_SENTENCE = 4 * SAMPLE_RATE // 5  # samples

# A longer passage ends at its best break, so that cues need little memory, and come soon.
_LONGEST = 30 * SAMPLE_RATE  # samples
_MOST_CHARS = 400

Passage = tuple[TimedText, ...]  # at least one unit


def passages(segments: Iterable[Sequence[TimedText]], language: str) -> Iterator[Passage]:
    """The units of the segments, in order, as passages."""
    passage: list[TimedText] = []
    chars = 0
    for units in segments:
        for unit in units:
            if passage:
                before = passage[-1]
                if unit.begins_segment:
                    unit = _continued(unit, passage, language)
                ends_sentence = unit.break_before is Break.SENTENCE
                if unit.start - before.end >= (PAUSE if ends_sentence else _PAUSE_IN_SENTENCE):
                    yield tuple(passage)
                    passage, chars = [], 0
            passage.append(unit)
            chars += len(unit.text)
            if chars > _MOST_CHARS or unit.end - passage[0].start > _LONGEST:
                end = _best_end(passage)
                yield tuple(passage[:end])
                passage = passage[end:]
                chars = sum(len(rest.text) for rest in passage)
    if passage:
        yield tuple(passage)


def _continued(unit: TimedText, passage: Sequence[TimedText], language: str) -> TimedText:
    """The first unit of a segment, as it continues the passage before it."""
    before = passage[-1]
    starts_sentence = len(passage) == 1 or before.break_before is Break.SENTENCE
    rating = break_between(before.text, unit.text, language, starts_sentence)
    if ends_description(before.text):
        rating = Break.SENTENCE
    text = unit.text if may_join(before.text, unit.text) else f" {unit.text}"
    return replace(unit, text=text, break_before=rating)


def _best_end(passage: Sequence[TimedText]) -> int:
    """Where a passage that is too long ends: at its last unit, or the latest of the best breaks."""
    return max(range(1, len(passage)), key=lambda at: (-passage[at].break_before, at), default=len(passage))
