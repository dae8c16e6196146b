"""Times of speech without a transcript: the endpoint of speaches."""

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Literal, Self

from fastapi import APIRouter, Request
from pydantic import Field, field_validator, model_validator
from starlette.responses import Response

from app.api.http.forms import AudioFile, FormFields, check_present, parse, request_body
from app.api.http.receiving import received
from app.api.http.unused import WARNING, note_unknown_fields
from app.api.schemas import SpeechTimestamp
from app.common.errors import InvalidInput
from app.common.options import check_number, check_whole
from app.intake.limits import Admission
from app.recording.clip_search import FoundSpeech
from app.recording.speech import SAMPLES_PER_MS, VadParameters, divide
from app.server.connections import run_unless_disconnected
from app.server.errors import documented_errors
from app.server.requests import warn
from workers.messages import SAMPLE_RATE

if TYPE_CHECKING:
    from app.recording.service import TranscriptionService


class SpeechForm(FormFields):
    """The fields of speaches' endpoint, with its defaults. They differ from those of transcriptions."""

    file: AudioFile = Field(description="The recording, in any format that FFmpeg reads.")
    model: Literal["silero_vad_v5", "silero_vad_v6"] = Field(
        "silero_vad_v6", description="Both names mean the speech model of this service, silero-vad 6."
    )
    threshold: float = Field(0.75, ge=0, le=1, description="Speech probability at which speech begins.")
    neg_threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Speech probability below which speech may end, at most `threshold`; if absent, 0.15 "
        "below it.",
    )
    min_speech_duration_ms: int = Field(0, ge=0, description="Shorter stretches of speech are dropped (ms).")
    max_speech_duration_s: float | None = Field(
        None,
        ge=1,
        description="Longer stretches are divided where they are least likely speech (s); absent or `inf`: "
        "none are.",
    )
    min_silence_duration_ms: int = Field(1000, ge=0, description="Shorter pauses do not end speech (ms).")
    speech_pad_ms: int = Field(0, ge=0, description="Speech is extended by this on each side (ms).")

    _are_whole = field_validator(
        "min_speech_duration_ms", "min_silence_duration_ms", "speech_pad_ms", mode="before"
    )(check_whole)
    _are_numbers = field_validator("threshold", "neg_threshold", "max_speech_duration_s", mode="before")(
        check_number
    )

    @model_validator(mode="after")
    def _check_thresholds(self) -> Self:
        if self.neg_threshold is not None and self.neg_threshold > self.threshold:
            raise InvalidInput(
                f"`neg_threshold`: {self.neg_threshold:g} is above the threshold, {self.threshold:g}, so "
                "speech would end before it begins. Choose a lower one, or leave it out.",
                param="neg_threshold",
            )
        return self

    @property
    def parameters(self) -> VadParameters:
        return VadParameters(
            threshold=self.threshold,
            min_speech_ms=self.min_speech_duration_ms,
            min_silence_ms=self.min_silence_duration_ms,
            speech_pad_ms=self.speech_pad_ms,
            neg_threshold=self.neg_threshold,
        )


def speech_routes(service: "TranscriptionService", admission: Admission) -> APIRouter:
    router = APIRouter(tags=["audio"])
    check = partial(check_present, SpeechForm)

    @router.post(
        "/v1/audio/speech/timestamps",
        summary="Find where somebody speaks, without transcribing",
        openapi_extra=request_body(SpeechForm),
        responses={200: {"headers": WARNING}, **documented_errors(400, 401, 413, 415, 429, 500, 503, 507)},
        response_model=list[SpeechTimestamp],
    )
    async def create_speech_timestamps(request: Request) -> Response:
        async with received(service, admission, request, before_file=check) as upload:
            form = parse(SpeechForm, upload.fields, upload.file)
            note_unknown_fields(request, SpeechForm, upload.fields)
            work = service.media.find_speech(form.file, form.parameters)
            found = await run_unless_disconnected(request, work)
            warn(request, (warning.message for warning in found.warnings))
        limit_s = form.max_speech_duration_s or math.inf
        body = await service.helper.run(found.seconds, _timestamps, found, limit_s)
        return Response(body, media_type="application/json")

    return router


def _timestamps(found: FoundSpeech, max_s: float) -> bytes:
    """The spans, of `max_s` seconds at most, as JSON. Uses CPU time on long recordings."""
    spans = divide(found.spans, found.probabilities, max_s * SAMPLE_RATE)
    return json.dumps(
        [{"start": start // SAMPLES_PER_MS, "end": end // SAMPLES_PER_MS} for start, end in spans]
    ).encode()
