"""The endpoints of whisper-asr-webservice, for the programs that speak to it: Bazarr, Speakr and others."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse, Response

from app.api.answers import segment_entry
from app.api.disconnect import run_unless_disconnected
from app.api.errors import documented
from app.api.forms import QueryFields
from app.api.receiving import receive
from app.engines.model_files import can_translate
from app.errors import InvalidInput, WhisperfleetError
from app.languages import language_name
from app.media.uploads import Upload
from app.options import Options, Text
from app.transcript.rendering import render_transcript, with_word_times
from app.transcript.timeline import Transcript
from workers.messages import Segment, Word, seconds

if TYPE_CHECKING:
    from app.transcription.service import TranscriptionService

FILE_FIELD = "audio_file"
ENGINE = "faster_whisper"  # of the engines that clients know, the one whose models run here

Encode = Annotated[
    bool,
    Field(description="false: the file is bare 16-bit little-endian PCM, mono, 16 kHz, to be used as it is."),
]

BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {FILE_FIELD: {"type": "string", "format": "binary"}},
                    "required": [FILE_FIELD],
                }
            }
        },
    }
}


class AsrQuery(QueryFields):
    """The query of `/asr`: blank values are absent, and names that are not here or in Options are ignored."""

    prompt: Text = Field(
        None,
        alias="initial_prompt",
        max_length=4000,
        description="Text that sets style and spelling; given with every clip.",
    )
    encode: Encode = True
    vad_filter: bool = Field(True, description="Speech is always looked for first, whatever is asked.")
    output: Literal["txt", "vtt", "srt", "tsv", "json"] = Field(
        "txt", description="What the answer looks like."
    )
    model: str = Field("", max_length=256, description="A model of `/v1/models`; the default one if absent.")

    @property
    def options(self) -> Options:
        """The request's options; word times are switched on where the answer needs them."""
        return with_word_times(super().options, self.output)


class DetectedLanguage(BaseModel):
    detected_language: str = Field(description="Its lower-case English name.")
    language_code: str = Field(description="Its ISO 639 code.")
    confidence: float = Field(description="Probability, 0 to 1; 0 where nothing is spoken.")


def asr_routes(service: "TranscriptionService") -> APIRouter:
    router = APIRouter(tags=["whisper-asr-webservice"])

    @router.post(
        "/asr",
        summary="Transcribe or translate a recording",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
            **documented(400, 401, 404, 413, 415, 429, 500, 503, 507),
        },
        openapi_extra=BODY,
    )
    async def asr(request: Request, asked: Annotated[AsrQuery, Query()]) -> Response:
        model = _model(service, asked)
        async with _received(service, request, raw_pcm=not asked.encode) as upload:
            work = service.transcribe(upload, asked.options, model)
            transcript = await run_unless_disconnected(request, work)
        body = await asyncio.to_thread(_body, transcript, asked)
        return PlainTextResponse(body, headers=_headers(upload, asked.output))

    @router.post(
        "/detect-language",
        summary="Detect the language spoken",
        responses=documented(400, 401, 413, 415, 429, 500, 503, 507),
        openapi_extra=BODY,
    )
    async def detect_language(
        request: Request, encode: Annotated[Encode, Query()] = True
    ) -> DetectedLanguage:
        async with _received(service, request, raw_pcm=not encode) as upload:
            code, probability = await run_unless_disconnected(request, service.detect_language(upload))
        return DetectedLanguage(
            detected_language=language_name(code), language_code=code, confidence=round(probability, 4)
        )

    return router


def _model(service: "TranscriptionService", asked: AsrQuery) -> str:
    """The model to use: the one named, else the default one or, where that cannot translate, one that can.

    Clients of this interface cannot name a model, as a rule. Raises UnknownModel and InvalidInput.
    """
    named = asked.model.strip()
    model = service.catalogue.resolve(named)
    if asked.task == "transcribe":
        return model
    for candidate in [model] if named else service.catalogue.states():
        if can_translate(candidate):
            return candidate
    raise InvalidInput(
        f"The model {model!r} cannot translate. Start the service with one that can beside it, such as "
        "WHISPER_MODELS=large-v3.",
        param="task",
    )


@asynccontextmanager
async def _received(
    service: "TranscriptionService", request: Request, *, raw_pcm: bool
) -> AsyncIterator[Upload]:
    """The file of a request, which is removed in the end. Raises what `receive` raises."""
    form = await receive(service, request, file_field=FILE_FIELD, raw_pcm=raw_pcm)
    if form.file is None:
        raise InvalidInput(f"`{FILE_FIELD}`: is required, and was not sent", param=FILE_FIELD)
    try:
        yield form.file
    except WhisperfleetError as error:
        # What is wrong with a recording is said without knowing what the field is called here.
        if error.param == "file":
            error.param = FILE_FIELD
        raise
    finally:
        await asyncio.to_thread(form.remove)


def _headers(upload: Upload, output: str) -> dict[str, str]:
    name = quote(upload.filename or FILE_FIELD)
    return {"Asr-Engine": ENGINE, "Content-Disposition": f'attachment; filename="{name}.{output}"'}


def _body(transcript: Transcript, asked: AsrQuery) -> bytes:
    """The answer in the form asked for. Costs CPU time on long recordings: call it in a thread."""
    if asked.output == "json":
        return _json(transcript, words=asked.word_timestamps)
    return render_transcript(transcript, asked.options, asked.output)


def _json(transcript: Transcript, *, words: bool) -> bytes:
    """The transcript as openai-whisper words it."""
    document = {
        "text": transcript.text,
        "segments": [
            _segment(number, segment, words=words) for number, segment in enumerate(transcript.segments)
        ],
        "language": transcript.language,
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _segment(number: int, segment: Segment, *, words: bool) -> dict[str, Any]:
    entry = segment_entry(number, segment).model_dump()
    return entry | {"words": [_word(word) for word in segment.words]} if words else entry


def _word(word: Word) -> dict[str, Any]:
    return {
        "word": word.text,
        "start": seconds(word.start),
        "end": seconds(word.end),
        "probability": round(word.probability, 4),
    }
