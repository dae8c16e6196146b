"""OpenAI's audio endpoints."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Self

from fastapi import APIRouter, Request
from pydantic import BeforeValidator, Field, TypeAdapter, model_validator
from starlette.responses import Response

from app.api.audio.openai_responses import (
    DIARIZED,
    Granularity,
    Included,
    ResponseFormat,
    TranslationFormat,
    last_events,
    transcript_response,
)
from app.api.audio.streaming import Deltas, stream_response
from app.api.http.forms import (
    ELSEWHERE,
    GRANULARITIES,
    INCLUDE,
    KEYWORDS,
    LARGE_FIELDS,
    AudioFile,
    KnownSpeakerFields,
    RequestFields,
    check_early,
    known_speakers,
    parse,
    request_body,
)
from app.api.http.receiving import receive
from app.api.http.unused import WARNING, note_unknown_fields, note_without_effect
from app.api.schemas import DiarizedTranscription, Transcription, VerboseTranscription
from app.common.errors import InvalidInput, UnsuitableFormat
from app.common.options import MAX_WORDS_CHARS
from app.intake.limits import Admission
from app.intake.uploads import Fields
from app.jobs.term_lists import TermLists
from app.recording.service import TranscriptionService
from app.server.connections import run_unless_disconnected
from app.server.errors import documented_errors
from app.server.requests import client_of, warn
from app.server.sending import compressed
from app.telemetry import traces
from app.transcript.rendering import rendering_s, with_word_times
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.timeline import Transcript

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "headers": WARNING},
    **documented_errors(400, 401, 404, 413, 415, 429, 500, 503, 507),
}


def _separated(values: list[str]) -> list[str]:
    """The values of a repeated field, each of which commas may separate."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


class AudioForm(RequestFields):
    """The fields of both OpenAI endpoints."""

    file: AudioFile = Field(description="The recording, in any format that FFmpeg reads.")
    model: str = Field(max_length=256, description="A model of `/v1/models`; `whisper-1` is the default one.")
    response_format: ResponseFormat = Field(
        "json", description="Format of the response. `diarized_json` says who speaks."
    )


class TranscriptionForm(AudioForm, KnownSpeakerFields):
    implying_formats: ClassVar[Collection[str]] = (DIARIZED,)

    chunking_strategy: str | None = Field(
        None,
        max_length=1000,
        pattern=r'^\s*(auto|\{[\s\S]*"server_vad"[\s\S]*\})\s*$',
        description="Ignored: a recording is always cut where nobody speaks. `auto`, or a JSON object of the "
        "type `server_vad`.",
    )
    timestamp_granularities: Annotated[
        list[Granularity], BeforeValidator(_separated), Field(alias=GRANULARITIES)
    ] = Field(
        default_factory=list,
        description="Times in verbose_json: of segments if empty; only of words if `word` is the only value.",
    )
    include: Annotated[list[Included], BeforeValidator(_separated), Field(alias=INCLUDE)] = Field(
        default_factory=list,
        description="`logprobs`: how sure the model is of each word, in `json` and in streams without "
        "`diarized_json`.",
    )
    keywords: Annotated[list[str], Field(alias=KEYWORDS)] = Field(
        default_factory=list,
        description=f"Words or phrases to expect, after those of `hotwords`: {MAX_WORDS_CHARS} characters "
        "together.",
    )
    stream: bool = Field(
        False,
        description="Respond with server-sent events as clips finish. Of the formats, only `diarized_json` "
        "matters then: its segments follow the text, with the speakers.",
    )

    @model_validator(mode="before")
    @classmethod
    def _add_keywords(cls, fields: dict[str, Any]) -> dict[str, Any]:
        words = filter(None, (fields.get("hotwords"), *fields.get(KEYWORDS, ())))
        return {**fields, "hotwords": ", ".join(words)} if KEYWORDS in fields else fields

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        if self.include and self.response_format not in (("json", "text") if self.stream else ("json",)):
            raise InvalidInput(
                f"Log-probabilities have no place in response_format={self.response_format}; ask for "
                "response_format=json. verbose_json has `avg_logprob` of each segment, and "
                "`GET /v1/jobs/{id}/segments` the probability of each word.",
                param=INCLUDE,
            )
        if "word" in self.timestamp_granularities and self.response_format in ("json", "text", DIARIZED):
            raise InvalidInput(
                f"Word times have no place in response_format={self.response_format}; "
                "ask for response_format=verbose_json.",
                param=GRANULARITIES,
            )
        if self.response_format != DIARIZED:
            return self
        if self.task == "translate":
            raise InvalidInput(
                f"response_format={DIARIZED} is for the language that is spoken. Ask for a translation as "
                "verbose_json with `diarize`.",
                param="response_format",
            )
        if not self.diarize and self.channels == "mix":
            raise InvalidInput(
                f"response_format={DIARIZED} says who speaks. Leave out diarize=false, or ask for another "
                "format.",
                param="diarize",
            )
        return self


class TranslationForm(AudioForm):
    """Always detects the language: OpenAI's endpoint has no field for it."""

    fixed: ClassVar[Mapping[str, object]] = {"task": "translate", "language": None}

    response_format: Annotated[TranslationFormat, ELSEWHERE] = Field(
        "json", description="Format of the response."
    )


def openai_routes(service: TranscriptionService, admission: Admission, terms: TermLists) -> APIRouter:
    router = APIRouter(tags=["audio"])
    text: dict[str, Any] = RESPONSES[200]["content"]

    @router.post(
        "/v1/audio/transcriptions",
        summary="Transcribe a recording",
        openapi_extra=request_body(TranscriptionForm),
        responses=RESPONSES | {200: RESPONSES[200] | {"content": text | {"text/event-stream": {}}}},
        # Models with more required fields come first: generated clients try them in order.
        response_model=VerboseTranscription | DiarizedTranscription | Transcription,
    )
    async def create_transcription(request: Request) -> Response:
        return await _respond(service, admission, terms, request, TranscriptionForm)

    @router.post(
        "/v1/audio/translations",
        summary="Translate a recording into English",
        openapi_extra=request_body(TranslationForm),
        responses=RESPONSES,
        response_model=VerboseTranscription | Transcription,
    )
    async def create_translation(request: Request) -> Response:
        return await _respond(service, admission, terms, request, TranslationForm)

    return router


async def _respond(
    service: TranscriptionService,
    admission: Admission,
    term_lists: TermLists,
    request: Request,
    form_type: type[AudioForm],
) -> Response:
    def check(fields: Fields) -> None:
        check_early(form_type, service, fields)
        if "stream" in fields and form_type is TranscriptionForm and _asks_for_events(fields):
            admission.streams.check(client_of(request))

    service.budgets.check(client_of(request).owner)
    with ExitStack() as admitted:
        admitted.enter_context(admission.requests.hold(client_of(request)))
        upload = await receive(
            service, request, admission.uploads, before_file=check, large_fields=LARGE_FIELDS
        )
        streaming = False
        try:
            form = parse(form_type, upload.fields, upload.file)
            streams = isinstance(form, TranscriptionForm) and form.stream
            note_unknown_fields(request, form_type, upload.fields)
            note_without_effect(
                request, form, form.model_fields_set, "text" if streams else form.response_format
            )
            model = service.fleet.catalogue.resolve(form.model.strip(), form.task, form.language)
            granularities = form.timestamp_granularities if isinstance(form, TranscriptionForm) else []
            include = form.include if isinstance(form, TranscriptionForm) else []
            terms = form.terms_of(term_lists.all_of(client_of(request).owner))
            options = with_word_times(form.options_with(terms), form.response_format)
            if include or "word" in granularities:
                options = options.model_copy(update={"word_timestamps": True})
            if options.diarize:
                service.media.speaker_models.check()
            known: Sequence[KnownSpeaker] = ()
            if isinstance(form, KnownSpeakerFields) and form.known_speaker_names:
                known = await run_unless_disconnected(request, known_speakers(service, form))
                form = form.model_copy(update={"known_speaker_references": []})  # they may be large
                upload.fields.clear()
            transcribe = partial(service.transcribe, form.file, options, model, known=known, terms=terms)
            if streams:
                admitted.enter_context(admission.streams.hold(client_of(request)))
                streaming = True  # the stream removes the file at its end
                last = partial(_last_events, service, form.response_format, include)
                deltas = Deltas(with_logprobs=bool(include))
                response = await stream_response(request, transcribe, deltas, last, upload.remove)
                response.admitted = admitted.pop_all()
                return response
            transcript = await run_unless_disconnected(request, transcribe())
            warn(request, (warning.message for warning in transcript.warnings))
        finally:
            if not streaming:
                await asyncio.to_thread(upload.remove)
        with traces.span("render", {"whisperfleet.format": form.response_format}):
            title = PurePath(form.file.filename).stem
            wanted = (form.response_format, options, granularities, include, title)
            length_s = rendering_s(form.response_format, transcript.seconds)
            try:
                return await service.helper.run(
                    length_s, compressed, transcript_response, transcript, *wanted
                )
            except UnsuitableFormat as error:
                error.param = "response_format"
                raise


async def _last_events(
    service: TranscriptionService,
    response_format: ResponseFormat,
    include: Collection[Included],
    transcript: Transcript,
    deltas: Deltas,
) -> Sequence[str]:
    """The data of the last events of a stream."""
    wanted = (transcript, deltas.text, deltas.tokens, response_format, include)
    if response_format != DIARIZED and not include:
        return last_events(*wanted)
    return await service.helper.run(transcript.seconds, last_events, *wanted)


def _asks_for_events(fields: Fields) -> bool:
    """Whether the field `stream`, which has a valid value, is true."""
    values = [value for value in fields.get("stream", []) if value.strip()]
    return bool(values) and TypeAdapter(bool).validate_python(values[-1])
