"""The steps of a correction that cost CPU time. `Helper` calls them.

Its process starts anew after a pause, while a client waits: this module imports little.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.api.transcripts.correction_bodies import parse_correction
from app.api.transcripts.segment_documents import (
    live_transcript,
    segments_document,
    transcript_document,
)
from app.common.errors import InvalidInput
from app.common.options import Options
from app.jobs.corrections import PackedCorrection, Segments, apply_edits, relabel, restore
from app.jobs.serialization import PackedTranscript, identified, pack_transcript
from app.server.large_bodies import Compressed, compress
from app.transcript.corrections import unchanged
from app.transcript.terms import Term

if TYPE_CHECKING:
    from app.jobs.storage.published_clips import PackedClip
    from app.transcript.speakers.relabelling import SpeakerCorrection

# The correction, None if it changes nothing, and the document of the segments after it.
Outcome = tuple[PackedCorrection | None, bytes | Compressed]


def document(base: PackedTranscript) -> bytes | Compressed:
    """The document of a revision.

    It is made here, and not in `segment_documents`, so that the process has loaded what its correction needs.
    """
    return compress(transcript_document(base))


def corrected(base: PackedTranscript, body: bytes) -> Outcome | int:
    """What the body of a request makes of a revision; the number of a revision if it restores that.

    Raises InvalidInput and TooLarge.
    """
    edits = parse_correction(body)
    return edits if isinstance(edits, int) else _outcome(base, *apply_edits(base, edits))


def restored(base: PackedTranscript, earlier: PackedTranscript) -> Outcome:
    """The same for an earlier revision."""
    return _outcome(base, *restore(base, earlier))


def relabelled(base: PackedTranscript, voices: Sequence[bytes], wanted: "SpeakerCorrection") -> Outcome:
    """The same for other speakers. Raises as `relabel` does."""
    return _outcome(base, *relabel(base, voices, wanted))


def live_corrected(
    clips: Sequence["PackedClip"],
    options: Options,
    terms: tuple[Term, ...],
    version: int,
    until: int,
    wanted: "bytes | SpeakerCorrection",
    for_link: bool,
) -> tuple[PackedCorrection | None, int, bytes | Compressed]:
    """What the body of a request, or other names of speakers, make of this version of a live job's text.

    The client knows the segments that start before the sample `until`: the others stay. Returns also the
    sample from which on the text differs, and its document. Raises InvalidInput and TooLarge.
    """
    transcript = live_transcript(clips, options, terms)
    before, base = identified(transcript), PackedTranscript(version, pack_transcript(transcript))
    if isinstance(wanted, bytes):
        edits = parse_correction(wanted)
        if isinstance(edits, int):
            raise InvalidInput("The job has no revisions before it succeeds.", param="revision")
        later = (unchanged(segment) for segment in before if segment.start >= until)
        correction, segments = apply_edits(base, [*edits, *later])
    else:
        correction, segments = relabel(base, (), wanted)
    since = min((segment.start for segment in {*before} ^ {*segments}), default=0)
    return correction, since, compress(segments_document(0, False, segments, for_link))


def _outcome(base: PackedTranscript, correction: PackedCorrection | None, segments: Segments) -> Outcome:
    revision = correction.transcript.revision if correction else base.revision
    return correction, compress(segments_document(revision, True, segments, base.for_link))
