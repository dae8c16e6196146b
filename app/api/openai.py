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
from app.api.schemas import Transcription, VerboseTranscription
from app.audio.uploads import Fields, Form, receive_form
from app.errors import InvalidInput

if TYPE_CHECKING:
    from app.service import Service

BYTES_PER_MB = 10**6
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **documented(400, 401, 404, 413, 415, 429, 500, 503, 507),
}


def openai_routes(service: "Service") -> APIRouter:
    router = APIRouter(tags=["audio"])
    shared: dict[str, Any] = {
        "response_model": Transcription | VerboseTranscription,
        "responses": RESPONSES,
    }

    @router.post(
        "/v1/audio/transcriptions",
        summary="Transcribe a recording",
        openapi_extra=request_body(TranscriptionForm),
        **shared,
    )
    async def create_transcription(request: Request) -> Response:
        return await _answer(service, request, TranscriptionForm)

    @router.post(
        "/v1/audio/translations",
        summary="Translate a recording into English",
        openapi_extra=request_body(TranslationForm),
        **shared,
    )
    async def create_translation(request: Request) -> Response:
        return await _answer(service, request, TranslationForm)

    return router


async def _answer(service: "Service", request: Request, form_type: type[AudioForm]) -> Response:
    form = await _receive(service, request, form_type)
    try:
        asked = parse(form_type, form.fields, form.file)
        model = _model(service, asked)
        work = service.transcribe(asked.file, asked.options, model)
        transcript = await run_unless_disconnected(request, work)
    finally:
        # The service removes what it was given, but it is not given everything.
        await asyncio.to_thread(form.remove)
    return await asyncio.to_thread(transcript_response, transcript, asked)


async def _receive(service: "Service", request: Request, form_type: type[AudioForm]) -> Form:
    declared = request.headers.get("content-length", "")
    return await receive_form(
        request.stream(),
        request.headers.get("content-type", ""),
        service.settings.uploads_dir,
        service.settings.max_upload_mb * BYTES_PER_MB,
        content_length=int(declared) if declared.isdecimal() else None,
        before_file=partial(_check_early, service, form_type),
    )


def _check_early(service: "Service", form_type: type[AudioForm], fields: Fields) -> None:
    check_early(form_type, fields)
    names = [name for name in fields.get("model", []) if name.strip()]
    if names:
        service.resolve_model(names[-1].strip())


def _model(service: "Service", asked: AudioForm) -> str:
    model = service.resolve_model(asked.model.strip())
    if asked.task == "translate" and not service.can_translate(model):
        raise InvalidInput(
            f"The model {model!r} cannot translate. Name one that can, such as large-v3: the service offers "
            "it when it is started with WHISPER_MODELS=large-v3.",
            param="model",
        )
    return model
