"""Passages: stretches of speech that cues are made of, whatever the segments of the model. Pure.

Whisper's segments often end inside a sentence. A passage goes on across them until the speaker pauses, or
somebody else takes over.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.transcript.cues.timed_text import TimedText
from app.transcript.text.breaks import Break, break_between, ends_description, may_join, split_dash
from workers.messages import SAMPLE_RATE

# A passage ends at a pause; inside a sentence, the pause must be longer.
PAUSE = SAMPLE_RATE // 2  # samples
_PAUSE_IN_SENTENCE = 4 * SAMPLE_RATE // 5  # samples

# A longer passage ends at its best break, so that cues need little memory, and come soon.
_LONGEST = 30 * SAMPLE_RATE  # samples
_MOST_CHARS = 400

Passage = tuple[TimedText, ...]  # at least one unit


def passages(segments: Iterable[Sequence[TimedText]], language: str) -> Iterator[Passage]:
    """The units of the segments as passages, ordered by their start; each of one speaker.

    `segments`: ordered by their start, each of one speaker, who has no other one at the same time. A passage
    also ends when the language changes, and when somebody else speaks who goes on after it; it does not when
    others only interject. A segment timed by hand shares none with others. A mark `break` ends one; before a
    mark `join`, no pause does.
    """
    growing: dict[str | None, _Growing] = {}  # by speaker
    done: list[Passage] = []  # passages that start after one that grows
    for units in segments:
        if not units:
            continue
        speaker, end = units[0].speaker, units[-1].end
        if len(growing) > (speaker in growing):
            for other in [key for key in growing if key != speaker]:
                if growing[other].units[-1].end <= end:
                    done.append(growing.pop(other).finish())
        passage = growing.setdefault(speaker, _Growing(language))
        finished = list(passage.add(units))
        if not passage.units:
            del growing[speaker]
        if not done and len(growing) <= 1:
            yield from finished
            continue
        done = _in_order([*done, *finished])
        latest = min((passage.units[0].start for passage in growing.values()), default=math.inf)
        while done and done[0][0].start <= latest:
            yield done.pop(0)
    yield from _in_order([*done, *(passage.finish() for passage in growing.values())])


def _in_order(passages: Iterable[Passage]) -> list[Passage]:
    return sorted(passages, key=lambda passage: passage[0].start)


@dataclass(slots=True)
class _Growing:
    """The passage that somebody speaks, as far as it is known."""

    language: str
    units: list[TimedText] = field(default_factory=list)
    chars: int = 0

    def finish(self) -> Passage:
        passage = tuple(self.units)
        self.units, self.chars = [], 0
        return passage

    def add(self, units: Sequence[TimedText]) -> Iterator[Passage]:
        """The passages that end before or with the units of the next segment."""
        for unit in units:
            if unit.mark == "break" and self.units:
                yield self.finish()
            if self.units and unit.begins_segment:
                before = self.units[-1]
                languages = {unit.language or self.language, before.language or self.language}
                if unit.hand_times or before.hand_times or len(languages) > 1:
                    yield self.finish()
            if self.units:
                last, continued = self.units[-1], unit
                if unit.begins_segment:
                    last, continued = _continued(self.units, unit, unit.language or self.language)
                ends_sentence = continued.break_before is Break.SENTENCE
                longest = PAUSE if ends_sentence else _PAUSE_IN_SENTENCE
                if unit.start - last.end >= longest and unit.mark != "join":
                    yield self.finish()
                else:
                    self.units[-1], unit = last, continued
            self.units.append(unit)
            self.chars += len(unit.text)
            if self.chars > _MOST_CHARS or unit.end - self.units[0].start > _LONGEST:
                end = _best_end(self.units)
                rest = self.units[end:]
                del self.units[end:]
                yield self.finish()
                self.units, self.chars = rest, sum(len(unit.text) for unit in rest)


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
    return max(range(1, len(passage)), key=lambda at: (-passage[at].cue_break, at), default=len(passage))
