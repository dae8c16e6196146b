"""Responses with transcripts, in the formats of OpenAI's API."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal

from starlette.responses import Response

from app.api.audio.speaker_labels import letters, with_labels
from app.api.schemas import (
    DiarizedSegment,
    DiarizedTranscription,
    Logprob,
    TokenUsage,
    TranscriptDone,
    Transcription,
    TranscriptionSegment,
    Usage,
    VerboseTranscription,
)
from app.common.languages import language_name
from app.common.options import Options
from app.jobs.document import FailedSpan
from app.transcript.edited import replacement_entries, speaker_of, word_entries
from app.transcript.formats import FORMATS
from app.transcript.packed import unpacked
from app.transcript.rendering import render_transcript
from app.transcript.timeline import Transcript
from workers.messages import LOWEST_LOGPROB, SAMPLE_RATE, Segment, seconds

Granularity = Literal["segment", "word"]
Included = Literal["logprobs"]
if TYPE_CHECKING:
    TranslationFormat = str
    ResponseFormat = str
else:
    TranslationFormat = Literal["json", "text", "srt", "verbose_json", "vtt", *FORMATS]
    ResponseFormat = Literal[TranslationFormat, "diarized_json"]

DIARIZED: ResponseFormat = "diarized_json"
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
TEXT_FILES = ("srt", "vtt")  # are text to OpenAI's clients
AUDIO_TOKENS_PER_S = 10  # as OpenAI counts audio
SEEK_FRAME_SAMPLES = SAMPLE_RATE // 100
UNKNOWN_SPEAKER = "unknown"  # OpenAI's format has no segment without a speaker


def transcript_response(
    transcript: Transcript,
    response_format: ResponseFormat,
    options: Options,
    granularities: Collection[Granularity],
    include: Collection[Included] = (),
    title: str = "",
) -> Response:
    """The response in the requested format. Uses CPU time on long recordings: let `Helper` call it.

    `title`: of the recording. `granularities`: what has times in verbose_json; empty: segments.
    `include`: what json has besides. Raises `UnsuitableFormat`.
    """
    if response_format in FORMATS and response_format != "json":
        file = render_transcript(transcript, options, response_format, title=title)
        kind = TEXT if response_format in TEXT_FILES else FORMATS[response_format].content_type
        return Response(file, headers={"content-type": kind})
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
    return brief_response(transcript, include)


def brief_response(transcript: Transcript, include: Collection[Included] = ()) -> Response:
    """`response_format=json`: only the text, and what a request includes."""
    logprobs = list(word_logprobs(transcript.segments)) if include else None
    brief = Transcription(text=transcript.text, logprobs=logprobs, usage=usage(transcript))
    return Response(brief.model_dump_json(exclude_none=True), media_type=JSON)


def word_logprobs(segments: Iterable[Segment]) -> Iterator[Logprob]:
    """Of each word. Together the words are the text, but for the space before it."""
    for segment in segments:
        for word in segment.words:
            logprob = round(math.log(word.probability), 4) if word.probability > 0 else LOWEST_LOGPROB
            yield Logprob(token=word.text, bytes=list(word.text.encode()), logprob=logprob)


def verbose_response(transcript: Transcript, *, segments: bool, words: bool, terms: bool = True) -> Response:
    """`response_format=verbose_json`. Uses CPU time on long recordings: let `Helper` call it.

    `terms`: with what they have replaced.
    """
    transcript = unpacked(transcript)
    entries = segment_entries(transcript, terms=terms)
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


def segment_entries(transcript: Transcript, *, terms: bool = True) -> list[TranscriptionSegment]:
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
            terms=(terms and replacement_entries(segment)) or None,
        )
        for number, segment in enumerate(transcript.segments)
    ]


def last_events(
    transcript: Transcript,
    text: str,
    tokens: int,
    response_format: ResponseFormat = "text",
    include: Collection[Included] = (),
) -> Sequence[str]:
    """The data of the last events of a stream, as JSON. `tokens`: how many `text` has.

    With `diarized_json`, an event for each segment comes first: only then all speakers are known. That and
    `include` use CPU time on long recordings: let `Helper` call it.
    """
    segments = _diarized_segments(transcript) if response_format == DIARIZED else None
    logprobs = list(word_logprobs(transcript.segments)) if include else None
    length_s = usage(transcript).seconds
    heard = AUDIO_TOKENS_PER_S * length_s
    spent = TokenUsage(
        input_tokens=heard, output_tokens=tokens, total_tokens=heard + tokens, seconds=length_s
    )
    warnings = transcript.warnings or None
    done = TranscriptDone(text=text, logprobs=logprobs, segments=segments, warnings=warnings, usage=spent)
    return [*map(DiarizedSegment.model_dump_json, segments or ()), done.model_dump_json(exclude_none=True)]


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
