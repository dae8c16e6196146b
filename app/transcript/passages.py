"""Passages: stretches of speech that cues are made of, whatever the segments of the model. Pure.

Whisper's segments often end inside a sentence. A passage goes on across them until somebody pauses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.transcript.break_points import Break, break_between, ends_description, may_join, split_dash
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
    """The units of the segments, in order, as passages. A segment timed by hand shares none with others."""
    passage: list[TimedText] = []
    chars = 0
    for units in segments:
        for unit in units:
            if passage and unit.begins_segment and (unit.hand_times or passage[-1].hand_times):
                yield tuple(passage)
                passage, chars = [], 0
            if passage:
                last, continued = passage[-1], unit
                if unit.begins_segment:
                    last, continued = _continued(passage, unit, language)
                ends_sentence = continued.break_before is Break.SENTENCE
                if unit.start - last.end >= (PAUSE if ends_sentence else _PAUSE_IN_SENTENCE):
                    yield tuple(passage)
                    passage, chars = [], 0
                else:
                    passage[-1], unit = last, continued
            passage.append(unit)
            chars += len(unit.text)
            if chars > _MOST_CHARS or unit.end - passage[0].start > _LONGEST:
                end = _best_end(passage)
                yield tuple(passage[:end])
                passage = passage[end:]
                chars = sum(len(rest.text) for rest in passage)
    if passage:
        yield tuple(passage)


def _continued(passage: Sequence[TimedText], unit: TimedText, language: str) -> tuple[TimedText, TimedText]:
    """The last unit of the passage and the first one of the next segment, as they continue each other.

    A dash between them belongs to the second one, as inside a segment.
    """
    last = passage[-1]
    starts_sentence = len(passage) == 1 or last.break_before is Break.SENTENCE
    word, dash = split_dash(last.text)
    text = unit.text if may_join(last.text, unit.text) else f" {unit.text}"
    rating = break_between(word, dash + text, language, starts_sentence)
    if ends_description(last.text):
        rating = Break.SENTENCE
    return replace(last, text=word), replace(unit, text=dash + text, break_before=rating)


def _best_end(passage: Sequence[TimedText]) -> int:
    """Where a passage that is too long ends: at its last unit, or the latest of the best breaks."""
    return max(range(1, len(passage)), key=lambda at: (-passage[at].break_before, at), default=len(passage))
