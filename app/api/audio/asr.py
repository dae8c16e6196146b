"""The endpoints of whisper-asr-webservice, for its clients: Bazarr, Speakr and others."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.audio.openai_responses import TEXT, TEXT_FILES, segment_entries
from app.api.audio.speaker_labels import speaker_00, with_labels
from app.api.http.forms import ELSEWHERE, QueryFields
from app.api.http.receiving import received
from app.api.http.unused import WARNING, note_without_effect
from app.api.operation.system import VERSION
from app.api.schemas import TranscriptionSegment
from app.common.errors import InvalidInput, UnsuitableFormat, WhisperfleetError
from app.common.languages import language_name
from app.common.options import MAX_WORDS_CHARS, Options, Text
from app.intake.limits import Admission
from app.intake.uploads import Upload
from app.jobs.term_lists import TermLists
from app.server.connections import run_unless_disconnected
from app.server.errors import documented_errors
from app.server.json_bodies import documented_body
from app.server.requests import client_of, warn
from app.server.sending import sendable
from app.telemetry import traces
from app.transcript.edited import word_entries
from app.transcript.formats import FORMATS
from app.transcript.rendering import render_transcript, rendering_s, with_word_times
from app.transcript.text.speaker_text import SpeakerPrefix
from app.transcript.timeline import Transcript
from workers.messages import Segment

if TYPE_CHECKING:
    from app.recording.service import TranscriptionService

FILE_FIELD = "audio_file"
ENGINE = "faster_whisper"  # the name by which clients know an engine with these models
_TEXTS = (*TEXT_FILES, "tsv", "json")  # are text to clients of this interface
_PREFIX = SpeakerPrefix("[{name}]: ", is_repeated=True)  # as whisperX writes it

Encode = Annotated[
    bool,
    Field(description="false: the file is raw 16-bit little-endian PCM, mono, 16 kHz, without a header."),
]

_FORM = {
    "title": "AsrForm",
    "type": "object",
    "properties": {FILE_FIELD: {"type": "string", "format": "binary"}},
    "required": [FILE_FIELD],
}
BODY = documented_body(_FORM, "multipart/form-data")


if TYPE_CHECKING:
    Output = str
else:
    Output = Literal["txt", "vtt", "srt", "tsv", "json", *FORMATS]


class AsrQuery(QueryFields):
    """The query of `/asr`. Blank values count as absent; unknown parameters are ignored."""

    prompt: Text = Field(
        None,
        alias="initial_prompt",
        max_length=MAX_WORDS_CHARS,
        description="Text that sets style and spelling; used for every clip.",
    )
    encode: Encode = True
    vad_filter: bool = Field(True, description="Ignored: speech detection is always on.")
    output: Annotated[Output, ELSEWHERE] = Field("txt", description="Format of the response.")
    model: str = Field("", max_length=256, description="A model of `/v1/models`; the default one if absent.")

    @property
    def options(self) -> Options:
        """The request's options, with word times if the response needs them."""
        return with_word_times(super().options, self.output)


class AsrStatus(BaseModel):
    version: str = Field(description="The program and its version.")


class DetectedLanguage(BaseModel):
    detected_language: str = Field(description="Its lower-case English name.")
    language_code: str = Field(description="Its ISO 639 code.")
    confidence: float = Field(description="Probability, 0 to 1; 0 without speech.")


def asr_routes(service: "TranscriptionService", admission: Admission, term_lists: TermLists) -> APIRouter:
    router = APIRouter(tags=["whisper-asr-webservice"])

    @router.post(
        "/asr",
        summary="Transcribe or translate a recording",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "headers": WARNING},
            **documented_errors(400, 401, 404, 413, 415, 429, 500, 503, 507),
        },
        openapi_extra=BODY,
    )
    async def asr(request: Request, query: Annotated[AsrQuery, Query()]) -> Response:
        model = _choose_model(service, query)
        note_without_effect(request, query, query.model_fields_set, query.output)
        if query.options.diarize:
            service.media.speaker_models.check()
        service.budgets.check(client_of(request).owner)
        async with _received(service, admission, request, raw_pcm=not query.encode) as upload:
            terms = query.terms_of(term_lists.all_of(client_of(request).owner))
            work = service.transcribe(upload, query.options_with(terms), model, terms=terms)
            transcript = await run_unless_disconnected(request, work)
            warn(request, (warning.message for warning in transcript.warnings))
        with traces.span("render", {"whisperfleet.format": query.output}):
            length_s = rendering_s(query.output, transcript.seconds)
            title = PurePath(upload.filename).stem
            try:
                body = await service.helper.run(length_s, _body, transcript, query, title)
            except UnsuitableFormat as error:
                error.param = "output"
                raise
        name = quote(upload.filename or FILE_FIELD)
        headers = {
            "Asr-Engine": ENGINE,
            "Content-Disposition": f'attachment; filename="{name}.{query.output}"',
            "Content-Type": TEXT if query.output in _TEXTS else FORMATS[query.output].content_type,
        }
        return await sendable(Response(body, headers=headers))

    @router.post(
        "/detect-language",
        summary="Detect the spoken language",
        responses=documented_errors(400, 401, 413, 415, 429, 500, 503, 507),
        openapi_extra=BODY,
    )
    async def detect_language(
        request: Request, encode: Annotated[Encode, Query()] = True
    ) -> DetectedLanguage:
        async with _received(service, admission, request, raw_pcm=not encode) as upload:
            code, probability = await run_unless_disconnected(request, service.detect_language(upload))
        return DetectedLanguage(
            detected_language=language_name(code), language_code=code, confidence=round(probability, 4)
        )

    # Servers of this interface have it beside the two endpoints.
    @router.get(
        "/status", summary="The version, for *Test Connection* in Bazarr", responses=documented_errors(401)
    )
    async def asr_status() -> AsrStatus:
        return AsrStatus(version=f"whisperfleet {VERSION}")

    return router


def _choose_model(service: "TranscriptionService", query: AsrQuery) -> str:
    """The requested model. Without one, the first that can do what is asked for; the default one comes first.

    Most clients of this interface cannot name a model. Raises UnknownModel and InvalidInput.
    """
    catalogue = service.fleet.catalogue
    model = catalogue.resolve(query.model.strip())
    errors = []
    for candidate in [model] if query.model.strip() else catalogue.states():
        try:
            catalogue.check(candidate, query.task, query.language)
        except InvalidInput as error:
            errors.append(error)
        else:
            return candidate
    if errors[0].param == "model":
        errors[0].param = "task"
    raise errors[0]


@asynccontextmanager
async def _received(
    service: "TranscriptionService", admission: Admission, request: Request, *, raw_pcm: bool
) -> AsyncIterator[Upload]:
    """The file of a request, as in `received`."""
    async with received(service, admission, request, file_field=FILE_FIELD) as form:
        if form.file is None:
            raise InvalidInput(f"`{FILE_FIELD}`: is required, and was not sent", param=FILE_FIELD)
        try:
            yield replace(form.file, raw_pcm=raw_pcm)
        except WhisperfleetError as error:
            # Errors of a recording do not know the name of the field here.
            if error.param == "file":
                error.param = FILE_FIELD
            raise


def _body(transcript: Transcript, query: AsrQuery, title: str) -> bytes:
    """The response in the requested format. Uses CPU time on long recordings: let `Helper` call it."""
    if query.diarize or query.channels == "separate":
        transcript = with_labels(transcript, speaker_00)
    if query.output == "json":
        return _json(transcript, words=query.word_timestamps)
    return render_transcript(transcript, query.options, query.output, _PREFIX, title)


def _json(transcript: Transcript, *, words: bool) -> bytes:
    """The transcript in the format of openai-whisper, with the speakers of whisperX."""
    document = {
        "text": transcript.text,
        "segments": [
            _segment(entry, segment, words=words)
            for entry, segment in zip(segment_entries(transcript), transcript.segments, strict=True)
        ],
        "language": transcript.language,
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def _segment(found: TranscriptionSegment, segment: Segment, *, words: bool) -> dict[str, Any]:
    entry = found.model_dump(exclude_none=True)
    if not words:
        return entry
    spoken = zip(word_entries(segment), segment.words, strict=True)
    # As openai-whisper has it, with the space before the word.
    return entry | {"words": [of_word | {"word": word.text} for of_word, word in spoken]}
