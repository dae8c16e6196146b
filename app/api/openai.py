"""OpenAI's audio endpoints."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.answers import transcript_response
from app.api.disconnect import run_unless_disconnected
from app.api.errors import documented
from app.api.forms import AudioForm, TranscriptionForm, TranslationForm, check_early, parse, request_body
from app.api.receiving import receive
from app.api.schemas import Transcription, VerboseTranscription
from app.api.streaming import stream_response
from app.media.uploads import Fields

if TYPE_CHECKING:
    from app.transcription.service import TranscriptionService

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **documented(400, 401, 404, 413, 415, 429, 500, 503, 507),
}


def openai_routes(service: "TranscriptionService") -> APIRouter:
    router = APIRouter(tags=["audio"])
    # Of the two models the one that asks for more goes first: generated clients try them in order.
    shared: dict[str, Any] = {"response_model": VerboseTranscription | Transcription}
    text: dict[str, Any] = RESPONSES[200]["content"]

    @router.post(
        "/v1/audio/transcriptions",
        summary="Transcribe a recording",
        openapi_extra=request_body(TranscriptionForm),
        responses=RESPONSES | {200: {"content": text | {"text/event-stream": {}}}},
        **shared,
    )
    async def create_transcription(request: Request) -> Response:
        return await _answer(service, request, TranscriptionForm)

    @router.post(
        "/v1/audio/translations",
        summary="Translate a recording into English",
        openapi_extra=request_body(TranslationForm),
        responses=RESPONSES,
        **shared,
    )
    async def create_translation(request: Request) -> Response:
        return await _answer(service, request, TranslationForm)

    return router


async def _answer(service: "TranscriptionService", request: Request, form_type: type[AudioForm]) -> Response:
    form = await receive(service, request, before_file=partial(_check_early, service, form_type))
    streaming = False
    try:
        asked = parse(form_type, form.fields, form.file)
        transcribe = partial(service.transcribe, asked.file, asked.options, _model(service, asked))
        if asked.streamed:
            streaming = True  # and the stream cleans up after itself
            return await stream_response(request, lambda tell: transcribe(on_segments=tell), form.remove)
        transcript = await run_unless_disconnected(request, transcribe())
    finally:
        if not streaming:
            await asyncio.to_thread(form.remove)
    return await asyncio.to_thread(transcript_response, transcript, asked)


def _check_early(service: "TranscriptionService", form_type: type[AudioForm], fields: Fields) -> None:
    check_early(form_type, fields)
    names = [name for name in fields.get("model", []) if name.strip()]
    if names:
        service.catalogue.resolve(names[-1].strip())


def _model(service: "TranscriptionService", asked: AudioForm) -> str:
    return service.catalogue.resolve(asked.model.strip(), asked.task)
