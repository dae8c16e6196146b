"""The responses with a copy of a job's recording that browsers play, or with a span of it."""

import asyncio
import math
from contextlib import AsyncExitStack, nullcontext
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.api.jobs.results import AudioFileResponse
from app.common.errors import NOT_KEPT, AudioNotKept, InvalidInput, JobNotDone
from app.common.options import MAX_POSITION_S, NUMBER
from app.intake.limits import Admission
from app.jobs.job import Job, Stage
from app.media.sound_encoder import check_within
from app.recording.service import TranscriptionService
from app.server.connections import run_unless_disconnected
from app.server.requests import client_of

SoundFormat = Literal["flac", "ogg"]
SpanTime = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_POSITION_S,
        allow_inf_nan=False,
        description="Of a span of the recording, in s from its start.",
    ),
    NUMBER,
]


async def sound_response(
    service: TranscriptionService,
    admission: Admission,
    request: Request,
    job: Job,
    form: SoundFormat,
    start_s: float | None,
    end_s: float | None,
) -> Response:
    """The copy of a recording in a format, or the span from `start_s` to `end_s` of it. Sends ranges.

    Holds a place until it is sent; a copy also one of the requests until it is made. `check_sound_query` has
    checked the span. Raises AudioNotKept, JobNotDone while the recording is being downloaded, and as
    `Limiter.hold` and `SoundCopies.hold` do.
    """
    is_span = bool(start_s) or end_s is not None
    span = (start_s or 0.0, math.inf if end_s is None else end_s)
    recording = await _recording(service, job)
    file = service.media.copies.hold(recording, form, job.submission.options.selection.track, span)
    async with AsyncExitStack() as held:
        held.enter_context((admission.sending if is_span else admission.recordings).hold(client_of(request)))
        with nullcontext() if is_span else admission.requests.hold(client_of(request)):
            path = await run_unless_disconnected(request, held.enter_async_context(file))
        response = AudioFileResponse(path, f"audio/{form}", f"{job.file_stem}.{form}")
        response.is_kept, response.not_kept = not is_span, AudioNotKept(NOT_KEPT)
        response.held = held.pop_all()
        return response


def check_sound_query(job: Job, form: SoundFormat | None, start_s: float | None, end_s: float | None) -> None:
    """Raise InvalidInput if a span has no format, or is not one of the recording."""
    if form is None:
        if start_s is None and end_s is None:
            return
        raise InvalidInput(
            "`format` is missing: a span is made in a format, `flac` or `ogg`.", param="format"
        )
    start_s, end_s = start_s or 0.0, math.inf if end_s is None else end_s
    if end_s <= start_s:
        raise InvalidInput(f"`end` is {end_s:g} s, and must be after `start`, {start_s:g} s.", param="end")
    # Else the encoder finds it out.
    if job.duration is not None and job.submission.options.end is None:
        check_within("start", start_s, job.duration)
        if not math.isinf(end_s):
            check_within("end", end_s, job.duration)


async def _recording(service: TranscriptionService, job: Job) -> str:
    """The name of a recording's file."""
    name = job.submission.file or ""
    if await asyncio.to_thread((service.media.folder.uploads / name).is_file):
        return name
    if job.submission.url is not None and job.progress.stage in (Stage.QUEUED, Stage.DOWNLOADING):
        raise JobNotDone(
            "The recording is not downloaded yet; ask again when the job has left the stage `downloading`.",
            code="audio_not_downloaded",
        )
    raise AudioNotKept(NOT_KEPT)
