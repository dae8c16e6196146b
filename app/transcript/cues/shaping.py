"""Segments to cues: what is shown, in which lines, from when to when. Pure.

Segments decide on time: the first and the last of their words begin and end with them, within the speech in
them. Sentences and pauses decide on text.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from app.transcript.cues.dialogue import cue_lines
from app.transcript.cues.lines import SHORTEST_CUE, CueStyle
from app.transcript.cues.passages import passages
from app.transcript.cues.timed_text import timed_units
from app.transcript.cues.timing import Cue, timed
from app.transcript.edited import is_timed_by_hand, speaker_of, split_turns
from app.transcript.text.speaker_text import SpeakerPrefix
from app.transcript.timeline import moved
from workers.messages import Segment, Span


@dataclass(slots=True, eq=False)
class _Group:
    """Segments that start at nearly the same time, and share it."""

    segments: list[Segment]
    end: int

    def competes_with(self, segment: Segment) -> bool:
        """Whether one of the two must give way where they overlap."""
        if self.end <= segment.start:
            return False
        is_one_speaker = speaker_of(self.segments[-1]) == speaker_of(segment)
        return is_one_speaker or is_timed_by_hand(segment) or is_timed_by_hand(self.segments[-1])

    def is_joined_by(self, segment: Segment) -> bool:
        return segment.start < self.segments[0].start + SHORTEST_CUE * len(self.segments)


def without_overlap(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The segments, ordered by their start. Only those of different speakers overlap, if nobody timed them.

    A segment ends when the next one starts. It stays to its end if someone chose that, and if the next one,
    which nobody timed by hand, can start later. Segments that start together share their time.
    """
    groups: list[_Group] = []  # segments of different speakers, whose ends are open
    done: list[Segment] = []  # segments that start after one whose end is open
    for segment in segments:
        rivals = [group for group in groups if group.competes_with(segment)]
        if not is_timed_by_hand(segment):
            ends = [group.end for group in rivals if is_timed_by_hand(group.segments[-1])]
            if ends and segment.end - max(ends) >= SHORTEST_CUE:
                segment = moved(segment, max(ends), segment.end)
                rivals = [group for group in rivals if group.competes_with(segment)]
        joined = [group for group in rivals if group.is_joined_by(segment)]
        others = [group for group in groups if group not in rivals and group.end > segment.start]
        for group in groups:
            if group not in joined and group not in others:
                done += _shared(group.segments, min(group.end, segment.start))
        together = [part for group in joined for part in group.segments]
        end = max([segment.end, *(group.end for group in joined)])
        groups = [*others, _Group([*together, segment], end)]
        if done:
            done.sort(key=attrgetter("start"))
            latest = min(group.segments[0].start for group in others) if others else math.inf
            while done and done[0].start <= latest:
                yield done.pop(0)
    for group in groups:
        done += _shared(group.segments, group.end)
    yield from sorted(done, key=attrgetter("start"))


def _shared(segments: Sequence[Segment], end: int) -> Iterator[Segment]:
    """The segments from the start of the first one to `end`: equal parts of this time for several."""
    if len(segments) <= 1 and all(segment.end <= end for segment in segments):
        yield from segments
        return
    start, count = segments[0].start, len(segments)
    edges = [start + (end - start) * index // count for index in range(count + 1)]
    for segment, first, last in zip(segments, edges, edges[1:], strict=False):
        yield moved(segment, first, last)


def shape_cues(
    segments: Iterable[Segment],
    speech: Sequence[Span],
    style: CueStyle,
    language: str,
    samples: int,
    prefix: SpeakerPrefix | None = None,
) -> Iterator[Cue]:
    """The cues of a recording, made one by one, in order, at least `style.min_gap` apart.

    `segments` as `timeline.place_segments` or `corrections.correct` gives them; `speech`: where the recording
    has speech, ordered, in samples; `language`: ISO 639-1 code of the text, where a segment names no other;
    `samples`: length of the recording. No cue stays after its end. Each word of the segments is in one cue,
    in order. No cue is longer than `style.max_samples`, and none has two languages. At most one passage of
    30 s of each speaker waits in memory.

    No line has words of two speakers, and no cue those of three. `prefix`: how the text says who speaks;
    without it, dashes begin the lines of two speakers in one cue, and `Cue.speakers` says the rest.

    A segment timed by hand has cues of its own: they start and end exactly with it, however long or short
    it is, and abutting ones have no gap.
    """
    apart = without_overlap(split_turns(segments))
    units = (
        timed_units(segment, speech, segment.language or language, style.of(segment.language).max_line_chars)
        for segment in apart
    )
    return timed(cue_lines(passages(units, language), style, language, prefix), style, samples)
