"""The format of transcripts in the database: lines of JSON, compressed.

Each segment is a line of its own: one large document would hold the GIL, and block the event loop, while it
is encoded.
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from app.jobs.passages import pack_passages
from app.jobs.search_terms import text_words
from app.transcript.edited import EditedSegment, TermedSegment, speakers_of, with_ids
from app.transcript.packed import LEVEL, check_scores, unpacked
from app.transcript.timeline import NO_LANGUAGE, Transcript
from workers.messages import MAX_LISTED_SPEAKERS, Segment, Span

EXCERPT_CHARS = 200
TITLE_CHARS = 60  # of one that is the beginning of a transcript

_HEAD_BYTES = 1 << 16
_TRANSCRIPT = TypeAdapter(Transcript)
_SEGMENT, _TERMED = TypeAdapter(Segment), TypeAdapter(TermedSegment)
_EDITED = TypeAdapter(EditedSegment)


class Summary(NamedTuple):
    """What finds a transcript, and what a list shows of it."""

    words: str  # by which the job is found, see `text_words`
    passages: bytes  # in which the search finds sentences, from `pack_passages`
    excerpt: str  # its beginning
    speakers: list[str]  # the first `MAX_LISTED_SPEAKERS` that are known, in the order in which they begin
    language: str | None  # that is spoken, ISO 639-1; None if nobody speaks
    languages: dict[str, float] | None  # if several are spoken, see `Transcript.languages`
    failed_spans: tuple[Span, ...]  # that could not be transcribed


class PackedTranscript(NamedTuple):
    """A revision of a transcript."""

    revision: int  # 0: the original
    content: bytes  # from `pack_transcript`
    for_link: bool = False  # what is shown of it says nothing of what terms have replaced


def pack_transcript(transcript: Transcript) -> bytes:
    """A transcript as bytes. Costs CPU time on long recordings: call it in a thread."""
    return zlib.compress(b"\n".join(_lines(transcript)), LEVEL)


def unpack_transcript(content: bytes) -> Transcript:
    """The reverse of `pack_transcript`. Call it in a thread, too."""
    head, *lines = zlib.decompress(content).split(b"\n")
    is_edited = bool(lines) and "id" in json.loads(lines[0])

    def segment_of(line: bytes) -> Segment:
        # In a text, a quotation mark has a backslash before it.
        plain: TypeAdapter[Any] = _TERMED if b'"replaced":' in line else _SEGMENT
        found: Segment = (_EDITED if is_edited else plain).validate_json(line)
        return found

    return replace(_TRANSCRIPT.validate_json(head), segments=tuple(map(segment_of, lines)))


def transcript_head(content: bytes) -> Transcript:
    """A transcript without its segments. Unpacks as much as that takes."""
    head, unpacked = b"", zlib.decompressobj()
    while b"\n" not in head and content:
        head += unpacked.decompress(content, _HEAD_BYTES)
        content = unpacked.unconsumed_tail
    return _TRANSCRIPT.validate_json(head.partition(b"\n")[0])


def identified(transcript: Transcript) -> tuple[EditedSegment, ...]:
    """The segments of an unpacked transcript. Those of an original get their ids, which are not stored."""
    edited = tuple(segment for segment in transcript.segments if isinstance(segment, EditedSegment))
    return edited or tuple(with_ids(transcript.segments, transcript.clips))


def pack_with_summary(transcript: Transcript) -> tuple[bytes, Summary]:
    """A packed transcript, and its summary. Call it as `pack_transcript`."""
    transcript = unpacked(transcript)
    return pack_transcript(transcript), summary(transcript)


def summary(transcript: Transcript) -> Summary:
    """The summary of a transcript."""
    text = transcript.text
    speakers = dict.fromkeys(speaker for each in transcript.segments for speaker in speakers_of(each))
    excerpt = " ".join(text[: 2 * EXCERPT_CHARS].split())
    passages = pack_passages(identified(transcript))
    return Summary(
        text_words(text),
        passages,
        excerpt[:EXCERPT_CHARS],
        list(speakers)[:MAX_LISTED_SPEAKERS],
        spoken_language(transcript),
        transcript.languages,
        transcript.failed_spans,
    )


def spoken_language(transcript: Transcript) -> str | None:
    """The language of a transcript, ISO 639-1; None if nobody speaks."""
    return None if transcript.language == NO_LANGUAGE else transcript.language


def packed_passages(content: bytes) -> bytes:
    """The passages of a packed transcript. Call it as `unpack_transcript`."""
    return pack_passages(identified(unpack_transcript(content)))


def first_words(excerpt: str) -> str:
    """A title for a transcript that begins so: its first words."""
    if len(excerpt) <= TITLE_CHARS:
        return excerpt
    words = excerpt[: TITLE_CHARS + 1].rpartition(" ")[0] or excerpt[:TITLE_CHARS]
    return words.rstrip(" ,;:.-–—、，。") + "…"


def _lines(transcript: Transcript) -> Iterator[bytes]:
    yield _TRANSCRIPT.dump_json(replace(transcript, segments=()))
    for segment in transcript.segments:
        check_scores(segment)
        if isinstance(segment, EditedSegment):
            yield _EDITED.dump_json(segment, exclude_defaults=True)
        else:
            kind: TypeAdapter[Any] = _TERMED if isinstance(segment, TermedSegment) else _SEGMENT
            yield kind.dump_json(segment)
