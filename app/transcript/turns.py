"""Segments in which several people speak, split where another one begins. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from app.transcript.edited import EditedSegment, word_speakers
from workers.messages import Segment


def split_turns(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The segments, in order, each of one speaker. The parts of one that was timed by hand abut."""
    for segment in segments:
        if isinstance(segment, EditedSegment) and segment.turns:
            yield from _turns(segment)
        else:
            yield segment


def _turns(segment: EditedSegment) -> Iterator[EditedSegment]:
    words, speakers = segment.words, word_speakers(segment)
    begins = [0, *(at for at in range(1, len(words)) if speakers[at] != speakers[at - 1])]
    start = segment.start
    for first, last in pairwise([*begins, len(words)]):
        if last < len(words):
            next_start = min(max(words[last].start, start), segment.end)
            spoken = max(min(words[last - 1].end, next_start), start)
            end = next_start if segment.timed_by_hand else spoken
            text = "".join(word.text for word in words[first:last])
        else:
            next_start = end = segment.end
            text = segment.text if not first else "".join(word.text for word in words[first:])
        part = words[first:last]
        speaker = speakers[first] if speakers else segment.speaker
        yield replace(segment, start=start, end=end, text=text, words=part, speaker=speaker, turns=())
        start = next_start
