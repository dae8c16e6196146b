"""A transcript from a JSON document: the keys that the tools use at its top. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from app.common.languages import known_code
from app.transcript.edited import speaker_of
from app.transcript.reading.fields import (
    Object,
    as_object,
    entries,
    not_a_transcript,
    parse_json,
    samples_field,
    text_field,
)
from app.transcript.reading.segments import listed_segments, segments_of_text, segments_of_words
from app.transcript.reading.words import has_times, joined_words, read_words
from app.transcript.timeline import Transcript, joined_spans, place_segments
from workers.messages import SAMPLE_RATE, Segment, Span

# Times of words are inaccurate: a longer gap between them is silence.
_LONGEST_GAP = SAMPLE_RATE  # samples
_FASTEST_SPEECH = SAMPLE_RATE // 25  # samples per character


def read_speech(document: Object) -> tuple[Span, ...] | None:
    """The spans under `speech`, in order and without overlap; None if the document does not say.

    Spans without a length are left out.
    """
    listed = entries(document, "speech")
    if listed is None:
        return None
    spans: list[Span] = []
    for index, entry in enumerate(listed):
        place = f"speech[{index}]"
        span = as_object(entry, place)
        start, end = samples_field(span, "start", f"{place}."), samples_field(span, "end", f"{place}.")
        if start is not None and end is not None and start < end:
            spans.append((start, end))
    return tuple(joined_spans(sorted(spans), gap=-1))


def speech_of_segments(segments: Iterable[Segment]) -> tuple[Span, ...]:
    """The segments without the silence that their words leave.

    Whisper often lets a segment begin with the music or the silence before its first word.
    """
    return tuple(chain.from_iterable(map(_speech_of_segment, segments)))


def _speech_of_segment(segment: Segment) -> Sequence[Span]:
    whole = (segment.start, segment.end)
    if not segment.words:
        return [whole]
    words = [(word.start, word.end) for word in segment.words]
    edges = [(segment.start, segment.start), *words, (segment.end, segment.end)]
    spans = [span for span in joined_spans(edges, _LONGEST_GAP) if span[0] < span[1]]
    # Words heaped onto one moment say nothing about silence.
    is_credible = sum(end - start for start, end in spans) >= len(segment.text) * _FASTEST_SPEECH
    return spans if is_credible else [whole]


_KEYS = frozenset({"segments", "words", "word_segments", "text"})
_NO_TIMES = (
    "the transcript has no times, so its text is spread evenly over the recording. "
    "Ask for response_format=verbose_json instead of json"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A transcript that was read from a file."""

    transcript: Transcript
    note: str | None = None  # what the file lacks, and what to do


def read_transcript(content: bytes, language: str | None = None, task: str = "transcribe") -> Reading:
    """The transcript in a JSON document.

    `language` (ISO 639-1) overrides the document's; `task` counts where the document names none. Untidy
    times are corrected as `timeline.place_segments` does, and missing ones come from the neighbours. The text
    of the segments stays as it is; words only say when its parts are spoken. Raises `InvalidInput` for a
    document that is no transcript, with the place of the error.
    """
    document = _unwrapped(parse_json(content))
    details = document["info"] if isinstance(document.get("info"), dict) else {}  # faster-whisper's
    duration = _duration(document, details)
    segments, note = _read_segments(document, duration)
    samples = max([duration or 0, *(max(segment.start, segment.end) for segment in segments)])
    if segments and not samples:
        raise not_a_transcript("the transcript has no times")
    code = language or _language(document) or _language(details)
    speech = read_speech(document)
    merged = _merged(segments, samples)
    transcript = Transcript(
        task=text_field(document, "task") or task,
        model=text_field(document, "model"),
        language=code,
        samples=samples,
        speech=speech_of_segments(merged) if speech is None else speech,
        segments=merged,
    )
    return Reading(transcript, note)


def _merged(segments: Sequence[Segment], samples: int) -> tuple[Segment, ...]:
    """The segments in order, with tidy times. Those of different speakers may overlap: they speak at once."""
    by_speaker: dict[str | None, list[Segment]] = {}
    for segment in segments:
        by_speaker.setdefault(speaker_of(segment), []).append(segment)
    merged = chain.from_iterable(place_segments(spoken, (0, samples)) for spoken in by_speaker.values())
    return tuple(sorted(merged, key=lambda segment: segment.start))


def _unwrapped(parsed: Any) -> Object:
    """The object that holds the transcript. Some programs store only the list of segments."""
    document: Object = {"segments": parsed} if isinstance(parsed, list) else as_object(parsed, "this JSON")
    if isinstance(document.get("error"), dict):
        message = " ".join(str(document["error"].get("message")).split())
        raise not_a_transcript(f"this is an error message ({message[:200]})")
    if _KEYS.isdisjoint(document) and isinstance(document.get("result"), dict):
        document = document["result"]
    if _KEYS.isdisjoint(document):
        raise not_a_transcript("this JSON has neither `segments` nor `words` nor `text`")
    return document


def _duration(document: Object, details: Object) -> int | None:
    """The length of the recording. OpenAI's `json` has only the full seconds that are billed."""
    usage = document["usage"] if isinstance(document.get("usage"), dict) else {}
    return (
        samples_field(document, "duration")
        or samples_field(details, "duration", "info.")
        or samples_field(usage, "seconds", "usage.")
    )


def _language(document: Object) -> str:
    """ISO 639-1 code; empty if the document names no language that Whisper knows."""
    return known_code(text_field(document, "language")) or ""


def _read_segments(document: Object, duration: int | None) -> tuple[list[Segment], str | None]:
    """The segments in any order, and what the document lacks."""
    listed = entries(document, "segments")
    words = read_words(document, "words") or read_words(document, "word_segments")
    text = text_field(document, "text")
    if listed:
        return list(listed_segments(listed, text, words, duration)), None
    text = text if text.strip() else joined_words(words)
    if has_times(words):
        return segments_of_words(text, words), None
    if text.strip():
        return segments_of_text(text, 0, duration or 0), _NO_TIMES
    return [], None
