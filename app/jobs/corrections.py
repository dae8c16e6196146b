"""Corrections of packed transcripts. Costs CPU time on long ones: let `Helper` call these functions.

Its process starts anew after a pause, while a client waits: this module imports little.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from app.jobs.serialization import (
    PackedTranscript,
    Summary,
    identified,
    pack_with_summary,
    summary,
    unpack_transcript,
)
from app.transcript.again import ALL_TIME, merge_again, subtract_spans, touched_spans
from app.transcript.corrections import SegmentEdit, correct
from app.transcript.edited import EditedSegment, speakers_of
from app.transcript.timeline import Transcript, joined_spans
from workers.messages import Span

if TYPE_CHECKING:
    from app.transcript.speakers.relabelling import SpeakerCorrection

Segments = tuple[EditedSegment, ...]


class Reason(StrEnum):
    """Why a revision was made."""

    CORRECTED = "corrected"
    SPEAKERS = "speakers"  # named, chosen or found again: all else stays
    RESTORED = "restored"
    TRANSCRIBED_AGAIN = "transcribed_again"


class PackedCorrection(NamedTuple):
    """A corrected transcript."""

    transcript: PackedTranscript
    summary: Summary
    changed: int  # segments that differ from those of the base
    by_people: bool = True  # not a mere comparison of the voices
    reason: Reason = Reason.CORRECTED
    restored: int | None = None  # the revision that comes back


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
    content, changed = pack_with_summary(_changed(transcript, segments, correction.segments))
    packed = PackedTranscript(revision, content)
    is_of_speakers = _without_speakers(segments) == _without_speakers(correction.segments)
    reason = Reason.SPEAKERS if is_of_speakers else Reason.CORRECTED
    return PackedCorrection(packed, changed, correction.changed, reason=reason), correction.segments


def restore(base: PackedTranscript, earlier: PackedTranscript) -> tuple[PackedCorrection | None, Segments]:
    """The correction that brings back an earlier revision, None if the base is the same, and its segments."""
    transcript = unpack_transcript(earlier.content)
    before, after = identified(unpack_transcript(base.content)), identified(transcript)
    if before == after:
        return None, after
    packed = PackedTranscript(base.revision + 1, earlier.content)
    changed = _differing(before, after)
    return PackedCorrection(
        packed, summary(transcript), changed, reason=Reason.RESTORED, restored=earlier.revision
    ), after


def relabel(
    base: PackedTranscript, voices: Sequence[bytes], wanted: "SpeakerCorrection"
) -> tuple[PackedCorrection | None, Segments]:
    """The transcript with other speakers, None if none differs, and all segments after it.

    `voices`: of the job, as `Store.voices` has them; only needed if `wanted.needs_voices`. Raises as
    `relabelled` and `renamed` do.
    """
    from app.transcript.speakers import labelling  # numpy and more: no other needs it

    transcript = unpack_transcript(base.content)
    before = after = identified(transcript)
    if wanted.needs_voices:
        count = wanted.count or labelling.SpeakerCount()
        after = labelling.relabelled(after, voices, count, wanted.same, wanted.different)
    if wanted.names:
        after = labelling.renamed(after, wanted.names)
    if after == before:
        return None, before
    content, changed = pack_with_summary(_changed(transcript, before, after))
    packed = PackedTranscript(base.revision + 1, content)
    by_people = bool(wanted.names or wanted.same or wanted.different)
    return PackedCorrection(packed, changed, _differing(before, after), by_people, Reason.SPEAKERS), after


def apply_again(
    base: PackedTranscript,
    original: PackedTranscript,
    again: Transcript,
    part: Span | None,
    *,
    keep_corrections: bool,
    speakers: Callable[[Segments, Segments], Segments] | None,
) -> PackedCorrection | None:
    """The transcript with new text from `again`; None if nothing differs. See `merge_again`.

    `original`: of the same job. `part`: what was transcribed again; None: all. `keep_corrections`: what
    people changed there stays. `speakers`: `named_as` or `spoken_as`, if speakers are those of before.
    """
    transcript = unpack_transcript(base.content)
    before = identified(transcript)
    touched: Sequence[Span] | None = transcript.touched
    if touched is None:
        touched = touched_spans(identified(unpack_transcript(original.content)), before)
    if not keep_corrections:
        touched = subtract_spans(touched, [part or ALL_TIME])
    after = identified(again)
    if speakers is not None:
        after = speakers(before, after)
    revision = base.revision + 1
    transcript = replace(transcript, segments=before)
    merged = merge_again(transcript, replace(again, segments=after), part, touched, revision)
    if merged.segments == before and merged.failed_spans == transcript.failed_spans:
        return None
    content, summary = pack_with_summary(merged)
    changed = _differing(before, identified(merged))
    packed = PackedTranscript(revision, content)
    return PackedCorrection(packed, summary, changed, by_people=False, reason=Reason.TRANSCRIBED_AGAIN)


def keep_corrected(live: bytes, original: bytes) -> PackedCorrection:
    """The first revision of the transcript of a live job: what people have corrected in its text stays.

    `live`: that text, packed, with the corrections; `original`: all of the job, transcribed at its end. Who
    speaks at a time there has the name that somebody has in the text then.
    """
    so_far, transcript = unpack_transcript(live), unpack_transcript(original)
    # Other ids than those of the original, which stay.
    before = tuple(replace(segment, id=f"{segment.id}-r1") for segment in identified(so_far))
    plain = after = identified(transcript)
    if any(map(speakers_of, after)):
        from app.transcript.speakers import labelling

        after = labelling.named_as(before, after)
        before = labelling.spoken_in(after, before)
    so_far, transcript = replace(so_far, segments=before), replace(transcript, segments=after)
    merged = merge_again(so_far, transcript, None, so_far.touched or (), 1, keeps_ids=True)
    content, summary = pack_with_summary(merged)
    return PackedCorrection(PackedTranscript(1, content), summary, _differing(plain, identified(merged)))


def windows_by_clip(base: PackedTranscript) -> dict[Span, tuple[Span, ...]]:
    """The windows whose voices are compared, for each clip of a transcript that has some."""
    from app.transcript.speakers.voices import voice_windows  # numpy: nothing else here needs it

    transcript = unpack_transcript(base.content)
    found = {}
    for start, end in transcript.clips or ((0, transcript.samples),):
        inside = ((max(start, first), min(end, last)) for first, last in transcript.speech)
        if windows := voice_windows((first, last) for first, last in inside if first < last):
            found[start, end] = windows
    return found


def _changed(transcript: Transcript, before: Segments, after: Segments) -> Transcript:
    """The transcript with other segments, which remembers where people changed it."""
    touched = transcript.touched
    if touched is not None:
        touched = tuple(joined_spans(sorted([*touched, *touched_spans(before, after)])))
    return replace(transcript, segments=after, touched=touched)


def _without_speakers(segments: Segments) -> list[EditedSegment]:
    return [replace(segment, speaker=None, speaker_by_hand=False, turns=()) for segment in segments]


def _differing(before: Segments, after: Segments) -> int:
    """How many segments are new, differ, or are gone."""
    old, new = ({segment.id: segment for segment in segments} for segments in (before, after))
    return sum(old.get(id) != new.get(id) for id in old.keys() | new.keys())
