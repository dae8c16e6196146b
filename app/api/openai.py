"""OpenAI's audio endpoints."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from app.api.admission import Admission
from app.api.disconnect import run_unless_disconnected
from app.api.errors import documented_errors
from app.api.forms import (
    DIARIZED,
    AudioForm,
    TranscriptionForm,
    TranslationForm,
    check_early,
    parse,
    request_body,
)
from app.api.openai_responses import diarized_done, transcript_response
from app.api.receiving import receive
from app.api.schemas import DiarizedTranscription, Transcription, VerboseTranscription
from app.api.speaker_fields import LARGE_FIELDS, KnownSpeakerFields, known_speakers
from app.api.streaming import done_event, stream_response
from app.media.uploads import Fields
from app.speakers.labelling import KnownSpeaker
from app.telemetry import traces
from app.transcript.timeline import Transcript

if TYPE_CHECKING:
    from app.transcription.service import TranscriptionService

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **documented_errors(400, 401, 404, 413, 415, 429, 500, 503, 507),
}


def openai_routes(service: "TranscriptionService", admission: Admission) -> APIRouter:
    router = APIRouter(tags=["audio"])
    text: dict[str, Any] = RESPONSES[200]["content"]

    @router.post(
        "/v1/audio/transcriptions",
        summary="Transcribe a recording",
        openapi_extra=request_body(TranscriptionForm),
        responses=RESPONSES | {200: {"content": text | {"text/event-stream": {}}}},
        # Models with more required fields come first: generated clients try them in order.
        response_model=VerboseTranscription | DiarizedTranscription | Transcription,
    )
    async def create_transcription(request: Request) -> Response:
        return await _respond(service, admission, request, TranscriptionForm)

    @router.post(
        "/v1/audio/translations",
        summary="Translate a recording into English",
        openapi_extra=request_body(TranslationForm),
        responses=RESPONSES,
        response_model=VerboseTranscription | Transcription,
    )
    async def create_translation(request: Request) -> Response:
        return await _respond(service, admission, request, TranslationForm)

    return router


async def _respond(
    service: "TranscriptionService", admission: Admission, request: Request, form_type: type[AudioForm]
) -> Response:
    def check(fields: Fields) -> None:
        check_early(form_type, service, fields)
        if form_type is TranscriptionForm and _asks_for_events(fields):
            admission.streams.check(request)

    with ExitStack() as places:
        places.enter_context(admission.requests.hold(request))
        upload = await receive(
            service, request, admission.uploads, before_file=check, large_fields=LARGE_FIELDS
        )
        streaming = False
        try:
            form = parse(form_type, upload.fields, upload.file)
            model = service.fleet.catalogue.resolve(form.model.strip(), form.task)
            if form.options.diarize:
                service.media.speaker_models.check()
            known: Sequence[KnownSpeaker] = ()
            if isinstance(form, KnownSpeakerFields) and form.known_speaker_names:
                known = await run_unless_disconnected(request, known_speakers(service, form))
                form = form.model_copy(update={"known_speaker_references": []})  # they may be large
                upload.fields.clear()
            transcribe = partial(service.transcribe, form.file, form.options, model, known=known)
            if isinstance(form, TranscriptionForm) and form.stream:
                places.enter_context(admission.streams.hold(request))
                streaming = True  # the stream removes the file at its end
                last = partial(_last_event, service) if form.response_format == DIARIZED else done_event
                response = await stream_response(request, transcribe, last, upload.remove)
                response.places = places.pop_all()
                return response
            transcript = await run_unless_disconnected(request, transcribe())
        finally:
            if not streaming:
                await asyncio.to_thread(upload.remove)
        with traces.span("render", {"whisperfleet.format": form.response_format}):
            return await service.helper.run(transcript.seconds, transcript_response, transcript, form)


async def _last_event(service: "TranscriptionService", transcript: Transcript, text: str) -> str:
    """The data of the last event of a stream, with the speakers."""
    return await service.helper.run(transcript.seconds, diarized_done, transcript, text)


def _asks_for_events(fields: Fields) -> bool:
    """Whether the field `stream`, which has a valid value, is true."""
    values = [value for value in fields.get("stream", []) if value.strip()]
    return bool(values) and TypeAdapter(bool).validate_python(values[-1])
