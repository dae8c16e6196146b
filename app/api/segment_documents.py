"""Segments as JSON: the document of a transcript, and the data of the events that announce its parts."""

import json
from collections.abc import Iterable, Iterator

from app.jobs.revisions import PackedTranscript
from app.jobs.serialization import identified, unpack_transcript
from app.transcript.edited import EditedSegment
from workers.messages import seconds


def segments_document(revision: int, complete: bool, segments: Iterable[EditedSegment]) -> bytes:
    """The document of a transcript (`schemas.Segments`). Uses CPU time on long ones: let `Helper` call it."""
    head = f'{{"revision":{revision},"complete":{json.dumps(complete)},'
    return head.encode() + b'"segments":[' + b",".join(_entries(segments)) + b"]}"


def transcript_document(packed: PackedTranscript) -> bytes:
    """The document of a revision. Uses CPU time on long transcripts: let `Helper` call it."""
    return segments_document(packed.revision, True, identified(unpack_transcript(packed.content)))


def _entries(segments: Iterable[EditedSegment]) -> Iterator[bytes]:
    """Each segment on its own: one large document would hold the GIL while it is encoded."""
    for segment in segments:
        entry = {
            "id": segment.id,
            "start": seconds(segment.start),
            "end": seconds(segment.end),
            "text": segment.text.strip(),
            "speaker": segment.speaker,
            "words": [
                {
                    "word": word.text.strip(),
                    "start": seconds(word.start),
                    "end": seconds(word.end),
                    "probability": word.probability,
                }
                for word in segment.words
            ],
        }
        yield json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
