"""Corrections of packed transcripts. Costs CPU time on long ones: let `Helper` call these functions.

Its process starts anew after a pause, while a client waits: this module imports little.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from app.jobs.serialization import PackedTranscript, identified, pack_transcript, unpack_transcript
from app.transcript.corrections import SegmentEdit, correct
from app.transcript.edited import EditedSegment

Segments = tuple[EditedSegment, ...]


class PackedCorrection(NamedTuple):
    """A corrected transcript."""

    transcript: PackedTranscript
    changed: int  # segments that differ from those of the base


def apply_edits(
    base: PackedTranscript, edits: Sequence[SegmentEdit]
) -> tuple[PackedCorrection | None, Segments]:
    """The correction, None if it changes nothing, and all segments after it. Raises as `correct` does."""
    transcript = unpack_transcript(base.content)
    segments = identified(transcript)
    revision = base.revision + 1
    correction = correct(segments, edits, revision, transcript.samples, transcript.clips)
    if not correction.changed:
        return None, segments
    content = pack_transcript(replace(transcript, segments=correction.segments))
    packed = PackedTranscript(revision, content)
    return PackedCorrection(packed, correction.changed), correction.segments


def restore(base: PackedTranscript, earlier: PackedTranscript) -> tuple[PackedCorrection | None, Segments]:
    """The correction that brings back an earlier revision, None if the base is the same, and its segments."""
    before, after = (identified(unpack_transcript(packed.content)) for packed in (base, earlier))
    if before == after:
        return None, after
    restored = PackedTranscript(base.revision + 1, earlier.content)
    return PackedCorrection(restored, _differing(before, after)), after


def _differing(before: Segments, after: Segments) -> int:
    """How many segments are new, differ, or are gone."""
    old, new = ({segment.id: segment for segment in segments} for segments in (before, after))
    return sum(old.get(id) != new.get(id) for id in old.keys() | new.keys())
