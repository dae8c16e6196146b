"""Segments as JSON: the document of a transcript, and the data of the events that announce its parts.

These functions use CPU time on long recordings: let `Helper` call them.
"""

import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from pydantic_core import to_json

from app.common.options import Options
from app.jobs.serialization import PackedTranscript, identified, unpack_transcript
from app.transcript.edited import (
    EditedSegment,
    listed_marks,
    mark_entries,
    replacement_entries,
    with_ids,
    word_entries,
)
from app.transcript.packed import unpack_result
from app.transcript.rendering import clip_segments
from app.transcript.speakers.channels import channel_name, in_order
from app.transcript.terms import Term
from app.transcript.timeline import NO_LANGUAGE, Transcript
from workers.messages import Span, seconds

if TYPE_CHECKING:
    from app.jobs.storage.published_clips import PackedClip

_LEVEL = 1  # the data of events is kept only until it is sent


def segments_document(
    revision: int, complete: bool, segments: Iterable[EditedSegment], for_link: bool = False
) -> bytes:
    """The document of a transcript, see `schemas.Segments`. `for_link`: without what terms have replaced."""
    return _with_segments({"revision": revision, "complete": complete}, _entries(segments, for_link))


def transcript_document(packed: PackedTranscript) -> bytes:
    """The document of a revision."""
    segments = identified(unpack_transcript(packed.content))
    return segments_document(packed.revision, True, segments, packed.for_link)


def published_document(
    clips: Sequence["PackedClip"], options: Options, terms: tuple[Term, ...] = (), for_link: bool = False
) -> bytes:
    """The document of a transcript so far."""
    return segments_document(0, False, _published_segments(clips, options, terms), for_link)


def live_transcript(clips: Sequence["PackedClip"], options: Options, terms: tuple[Term, ...]) -> Transcript:
    """The text of a live job so far, as people correct it."""
    corrected, others = _divided(clips)
    spans = tuple(clip.span for clip in others)
    return Transcript(
        options.task,
        "",
        options.language or NO_LANGUAGE,
        max(end for _, end in spans),
        speech=(),
        segments=tuple(_published_segments(clips, options, terms)),
        clips=spans,
        touched=corrected.touched if corrected else (),
    )


def published_event(
    span: Span,
    clips: Sequence["PackedClip"],
    options: Options,
    terms: tuple[Term, ...] = (),
    for_link: bool = False,
) -> bytes:
    """The data of an event about a span, see `schemas.NewSegments`, while the job has clips."""
    new = [
        segment
        for segment in _published_segments(clips, options, terms)
        if seconds(segment.start) >= seconds(span[0]) and segment.start < span[1]
    ]
    return _event(span, _entries(new, for_link))


def transcript_events(packed: bytes, spans: Mapping[int, Span], for_link: bool = False) -> dict[int, bytes]:
    """The same for all events of a job, by their numbers, from its packed transcript. Compressed by zlib."""
    segments = identified(unpack_transcript(packed))
    entries = list(_entries(segments, for_link))
    starts = [segment.start for segment in segments]
    shown = [seconds(start) for start in starts]

    def data(span: Span) -> bytes:
        return _event(span, entries[bisect_left(shown, seconds(span[0])) : bisect_left(starts, span[1])])

    return {number: zlib.compress(data(span), _LEVEL) for number, span in spans.items()}


def _published_segments(
    clips: Sequence["PackedClip"], options: Options, terms: tuple[Term, ...]
) -> Sequence[EditedSegment]:
    corrected, others = _divided(clips)
    if corrected is not None:
        others = [clip for clip in others if clip.span not in corrected.clips]
        further = _published_segments(others, options, terms)
        return sorted([*identified(corrected), *further], key=attrgetter("start"))
    by_channel = sorted(others, key=lambda clip: clip.channel)
    return in_order(
        segment
        for channel, of_channel in groupby(by_channel, lambda clip: clip.channel)
        for segment in _channel_segments(channel, list(of_channel), options, terms)
    )


def _divided(clips: Sequence["PackedClip"]) -> tuple[Transcript | None, Sequence["PackedClip"]]:
    """What people have corrected of a live job, and its clips."""
    if not clips or not clips[0].is_corrected:
        return None, clips
    return unpack_transcript(clips[0].result), clips[1:]


def _channel_segments(
    channel: int, clips: Sequence["PackedClip"], options: Options, terms: tuple[Term, ...]
) -> Iterator[EditedSegment]:
    """The segments of one channel. Who speaks is known if that depends on the channel alone."""
    speaker = channel_name(channel, options.names_of_speakers) if options.channels == "separate" else None
    until = clips[0].until
    segments = (
        segment
        for clip in clips
        for segment in clip_segments(clip.span, unpack_result(clip.result), options, terms)
    )
    for segment in with_ids(segments, [clip.span for clip in clips], max(channel, 0)):  # live: one alone
        if until is None or segment.start < until:
            yield replace(segment, speaker=speaker) if speaker else segment


def _event(span: Span, entries: Iterable[bytes]) -> bytes:
    # A client drops what starts at `from` or later. It sees rounded times, so the segments are selected by
    # these: one that starts just before `from`, at the same millisecond, is dropped and comes again.
    return _with_segments({"from": seconds(span[0]), "to": seconds(span[1])}, entries)


def _with_segments(fields: Mapping[str, object], entries: Iterable[bytes]) -> bytes:
    return _json(fields)[:-1] + b',"segments":[' + b",".join(entries) + b"]}"


def _entries(segments: Iterable[EditedSegment], for_link: bool) -> Iterator[bytes]:
    """Each segment on its own: one large document would hold the GIL while it is encoded."""
    for segment in segments:
        language = {"language": segment.language} if segment.language is not None else {}
        marks = {"marks": mark_entries(listed_marks(segment))} if segment.marks else {}
        terms = {"terms": replacement_entries(segment)} if segment.replaced and not for_link else {}
        yield _json(
            {
                "id": segment.id,
                "start": seconds(segment.start),
                "end": seconds(segment.end),
                "text": segment.text.strip(),
                **language,
                "speaker": segment.speaker,
                **marks,
                **terms,
                "words": [word for word in word_entries(segment) if word["word"]],
            }
        )


def _json(value: object) -> bytes:
    return to_json(value)  # several times as fast as the standard library's
