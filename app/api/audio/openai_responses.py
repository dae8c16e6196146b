"""Responses with transcripts, in the formats of OpenAI's API."""

from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING, Literal

from starlette.responses import Response

from app.api.audio.speaker_labels import letters, with_labels
from app.api.schemas import (
    DiarizedSegment,
    DiarizedTranscription,
    TranscriptDone,
    Transcription,
    TranscriptionSegment,
    Usage,
    VerboseTranscription,
)
from app.common.languages import language_name
from app.common.options import Options
from app.jobs.document import FailedSpan
from app.transcript.edited import speaker_of, word_entries
from app.transcript.formats import DOCUMENT_FORMATS, FORMATS
from app.transcript.packed import unpacked
from app.transcript.rendering import CUE_FORMATS, render_transcript
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, seconds

Granularity = Literal["segment", "word"]
if TYPE_CHECKING:
    TranslationFormat = str
    ResponseFormat = str
else:
    TranslationFormat = Literal["json", "text", "srt", "verbose_json", "vtt", *DOCUMENT_FORMATS]
    ResponseFormat = Literal[TranslationFormat, "diarized_json"]

DIARIZED: ResponseFormat = "diarized_json"
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"  # also of subtitles: OpenAI's clients expect it
SEEK_FRAME_SAMPLES = SAMPLE_RATE // 100
UNKNOWN_SPEAKER = "unknown"  # OpenAI's format has no segment without a speaker


def transcript_response(
    transcript: Transcript,
    response_format: ResponseFormat,
    options: Options,
    granularities: Collection[Granularity],
    title: str = "",
) -> Response:
    """The response in the requested format. Uses CPU time on long recordings: let `Helper` call it.

    `title`: of the recording. `granularities`: what has times in verbose_json; empty: segments.
    """
    if response_format in CUE_FORMATS:
        return Response(render_transcript(transcript, options, response_format), media_type=TEXT)
    if response_format in DOCUMENT_FORMATS:
        file = render_transcript(transcript, options, response_format, title=title)
        return Response(file, headers={"content-type": FORMATS[response_format].content_type})
    if response_format == "text":
        return Response(f"{transcript.text}\n", media_type=TEXT)
    if response_format == "verbose_json":
        segments = not granularities or "segment" in granularities
        return verbose_response(transcript, segments=segments, words="word" in granularities)
    if response_format == DIARIZED:
        diarized = DiarizedTranscription(
            duration=seconds(transcript.samples),
            text=transcript.text,
            segments=_diarized_segments(transcript),
            usage=usage(transcript),
        )
        return Response(diarized.model_dump_json(), media_type=JSON)
    return brief_response(transcript)


def brief_response(transcript: Transcript) -> Response:
    """`response_format=json`: only the text."""
    brief = Transcription(text=transcript.text, usage=usage(transcript))
    return Response(brief.model_dump_json(), media_type=JSON)


def verbose_response(transcript: Transcript, *, segments: bool, words: bool) -> Response:
    """`response_format=verbose_json`. Uses CPU time on long recordings: let `Helper` call it."""
    transcript = unpacked(transcript)
    entries = segment_entries(transcript)
    verbose = VerboseTranscription.model_validate(
        {
            "task": transcript.task,
            "language": language_name(transcript.language),
            "languages": transcript.languages,
            "duration": seconds(transcript.samples),
            "text": transcript.text,
            "segments": entries if segments else None,
            # Objects are checked faster than models are made; the model leaves out the probabilities.
            "words": list(chain.from_iterable(map(word_entries, transcript.segments))) if words else None,
            "failed_spans": [
                FailedSpan(start=seconds(start), end=seconds(end)) for start, end in transcript.failed_spans
            ]
            or None,
            "warnings": transcript.warnings or None,
            "usage": usage(transcript),
        }
    )
    return Response(verbose.model_dump_json(exclude_none=True), media_type=JSON)


def segment_entries(transcript: Transcript) -> list[TranscriptionSegment]:
    """The segments in the format of openai-whisper and OpenAI's API, with languages if there are several."""
    language = transcript.language if transcript.languages else None
    return [
        TranscriptionSegment(
            id=number,
            seek=segment.start // SEEK_FRAME_SAMPLES,
            start=seconds(segment.start),
            end=seconds(segment.end),
            text=segment.text,
            tokens=list(segment.tokens),
            temperature=segment.temperature,
            avg_logprob=segment.avg_logprob,
            compression_ratio=segment.compression_ratio,
            no_speech_prob=segment.no_speech_prob,
            language=language and (segment.language or language),
            speaker=speaker_of(segment),
        )
        for number, segment in enumerate(transcript.segments)
    ]


def diarized_done(transcript: Transcript, text: str) -> str:
    """The data of the last event of a stream with `response_format=diarized_json`, as JSON.

    Uses CPU time on long recordings: let `Helper` call it.
    """
    return done_data(transcript, text, _diarized_segments(transcript))


def done_data(transcript: Transcript, text: str, segments: list[DiarizedSegment] | None = None) -> str:
    """The data of the last event of a stream, as JSON."""
    warnings = transcript.warnings or None
    done = TranscriptDone(text=text, segments=segments, warnings=warnings, usage=usage(transcript))
    return done.model_dump_json(exclude_none=True)


def _diarized_segments(transcript: Transcript) -> list[DiarizedSegment]:
    return [
        DiarizedSegment(
            id=f"seg_{number:03}",
            start=seconds(segment.start),
            end=seconds(segment.end),
            text=segment.text.strip(),
            speaker=speaker_of(segment) or UNKNOWN_SPEAKER,
        )
        for number, segment in enumerate(with_labels(transcript, letters).segments, start=1)
    ]


def usage(transcript: Transcript) -> Usage:
    """The duration that OpenAI would bill: full seconds of what was transcribed, rounded up."""
    return Usage(seconds=-(-(transcript.samples - transcript.start) // SAMPLE_RATE))
