"""The endpoint of waveforms: the extremes of parts of a recording, and how loud they are."""

import asyncio
import hashlib
from typing import Annotated

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.api.jobs.lookup import find_job
from app.api.schemas import Peaks as PeaksSchema
from app.api.transcripts.versions import ETAG, IfNoneMatch, is_known, not_modified
from app.common.options import WHOLE
from app.intake.limits import Admission
from app.jobs.service import JobService
from app.media.peaks import Peaks
from app.server.connections import run_unless_disconnected
from app.server.errors import documented_errors
from app.server.requests import client_of
from app.server.sending import sendable
from workers.messages import seconds

MAX_POINTS = 100_000
_DIGITS = 4  # after the point


def peak_routes(jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.get(
        "/{job_id}/peaks",
        summary="Get the waveform",
        response_model=PeaksSchema,
        responses={
            200: {"headers": ETAG},
            304: {"description": "The waveform has not changed", "headers": ETAG},
            **documented_errors(400, 401, 404, 409, 413, 429, 503, 507),
        },
    )
    async def retrieve_peaks(
        request: Request,
        job_id: str,
        points: Annotated[
            int,
            Query(ge=1, le=MAX_POINTS, description="How many equal shares the recording is divided into."),
            WHOLE,
        ] = 1000,
        if_none_match: IfNoneMatch = "",
    ) -> Response:
        """The lowest and the highest sample of each share, and how loud it is: what a player draws.

        They are there as soon as the recording is decoded, and stay with the job. If they are missing, they
        are made from the recording.
        """
        job = await find_job(jobs, request, job_id)
        packed = await jobs.recordings.stored_peaks(job)
        if packed is None:
            with admission.requests.hold(client_of(request)):
                packed = await run_unless_disconnected(request, jobs.recordings.peaks(job))
        body = await asyncio.to_thread(_json, packed, points)
        # The job may be deleted at any time, so caches ask each time.
        headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"', "Cache-Control": "private, no-cache"}
        if is_known(if_none_match, headers["ETag"]):
            return not_modified(headers)
        response = Response(body, media_type="application/json", headers=headers)
        return await sendable(response, admission.sending.hold(client_of(request)))

    return router


def _json(packed: bytes, points: int) -> bytes:
    """The body of a response. Uses CPU time: call it in a thread."""
    peaks = Peaks.unpack(packed)
    shares = peaks.resample(points)
    values = {"min": shares.lowest, "max": shares.highest, "rms": peaks.loudness(points)}
    lists = "".join(f',"{name}":[{_numbers(peaks, value)}]' for name, value in values.items())
    return f'{{"duration":{seconds(peaks.samples)},"points":{points}{lists}}}'.encode()


def _numbers(peaks: Peaks, values: npt.NDArray[np.int8]) -> str:
    """Numbers in JSON. There are only 255 different ones, and formatting all points would hold the GIL."""
    # Adding 0 turns -0.0 into 0.0.
    texts = {value: repr(round(peaks.level(value), _DIGITS) + 0.0) for value in range(-127, 128)}
    return ",".join(map(texts.__getitem__, values.tolist()))
