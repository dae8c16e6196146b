"""Corrections of packed transcripts. Costs CPU time on long ones: let `Helper` call these functions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from app.jobs.revisions import PackedTranscript
from app.jobs.serialization import identified, pack_transcript, unpack_transcript
from app.transcript.corrections import SegmentEdit, correct
from app.transcript.edited import EditedSegment


class PackedCorrection(NamedTuple):
    """A corrected transcript."""

    transcript: PackedTranscript
    changed: int  # segments that differ from those of the base


def apply_edits(base: PackedTranscript, edits: Sequence[SegmentEdit]) -> PackedCorrection | None:
    """The transcript with these segments; None if that changes nothing. Raises as `correct` does."""
    transcript = unpack_transcript(base.content)
    segments = identified(transcript)
    revision = base.revision + 1
    correction = correct(segments, edits, revision, transcript.samples, transcript.clips)
    if not correction.changed:
        return None
    corrected = replace(transcript, segments=correction.segments)
    return PackedCorrection(PackedTranscript(revision, pack_transcript(corrected)), correction.changed)


def restore(base: PackedTranscript, earlier: PackedTranscript) -> PackedCorrection | None:
    """The transcript of an earlier revision; None if the base is the same."""
    before, after = (identified(unpack_transcript(packed.content)) for packed in (base, earlier))
    if before == after:
        return None
    restored = PackedTranscript(base.revision + 1, earlier.content)
    return PackedCorrection(restored, _differing(before, after))


def _differing(before: Sequence[EditedSegment], after: Sequence[EditedSegment]) -> int:
    """How many segments are new, differ, or are gone."""
    old, new = ({segment.id: segment for segment in segments} for segments in (before, after))
    return sum(old.get(id) != new.get(id) for id in old.keys() | new.keys())
