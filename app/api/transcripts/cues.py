"""The endpoint of subtitles: those that a file of a job will have, also while its text is being edited."""

import math
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from app.api.http.receiving import check_json
from app.api.http.unused import WARNING, note_without_effect
from app.api.jobs.lookup import check_done, find_job
from app.api.jobs.results import FileQuery, file_etag
from app.api.jobs.sound import SpanTime
from app.api.schemas import Cues
from app.api.transcripts import versions
from app.api.transcripts.correction_bodies import RevisionNumber, correction_body
from app.api.transcripts.corrections import correction_s, receive_correction
from app.api.transcripts.cue_documents import cues_document
from app.common.errors import InvalidInput
from app.common.options import Options
from app.intake.limits import Admission
from app.jobs.job import Job
from app.jobs.serialization import PackedTranscript
from app.jobs.service import JobService
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors
from app.server.requests import client_of
from app.server.sending import json_response, sendable
from app.transcript.rendering import CUE_FORMATS

if TYPE_CHECKING:
    CueFormat = str
else:
    CueFormat = Literal[*sorted(CUE_FORMATS)]


class CuesQuery(FileQuery):
    """Which file, and which of its subtitles: those that overlap a span."""

    format: CueFormat = "srt"
    start: SpanTime | None = None
    end: SpanTime | None = None

    @property
    def span_s(self) -> tuple[float, float]:
        return self.start or 0.0, math.inf if self.end is None else self.end


class RevisionCuesQuery(CuesQuery):
    revision: RevisionNumber | None = Field(None, description=versions.WHICH_REVISION)


def cue_routes(service: TranscriptionService, jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    async def find_done(request: Request, job_id: str, query: CuesQuery) -> Job:
        """The job with an id, whose subtitles the query may ask for."""
        job = await find_job(jobs, request, job_id)
        check_done(job)
        start, end = query.span_s
        if end <= start:
            raise InvalidInput(f"`end` is {end:g} s, and must be after `start`, {start:g} s.", param="end")
        note_without_effect(request, Options.model_construct(**query.changes), query.changes, query.format)
        return job

    async def respond(
        request: Request,
        job: Job,
        query: CuesQuery,
        base: PackedTranscript,
        body: bytes | None,
        **headers: str,
    ) -> Response:
        options = job.submission.options.model_copy(update=query.changes)
        arguments = (base, body, options, query.format, query.span_s)
        document = await service.helper.run(correction_s(job, body or b"", base), cues_document, *arguments)
        return await sendable(json_response(document, headers), admission.sending.hold(client_of(request)))

    @router.get(
        "/{job_id}/cues",
        summary="Get the subtitles as a file will have them",
        response_model=Cues,
        responses={
            200: {"headers": {**versions.ETAG, **WARNING}},
            304: {"description": "The subtitles have not changed", "headers": versions.ETAG},
            **documented_errors(400, 401, 403, 404, 409, 429, 503),
        },
    )
    async def retrieve_cues(
        request: Request,
        job_id: str,
        query: Annotated[RevisionCuesQuery, Query()],
        if_none_match: versions.IfNoneMatch = "",
    ) -> Response:
        """With the places of their text in the segments, and the limits that they break.

        Absent options are those of the job.
        """
        job = await find_done(request, job_id, query)
        number = versions.wanted_number(request, query.revision)
        async with service.helper.turn(job.duration):
            base = await jobs.store.transcript(job, number)
            etag = file_etag(base.revision, job, query, "cues", query.start, query.end)
            if versions.is_known(if_none_match, etag):
                return versions.not_modified({"ETag": etag})
            return await respond(request, job, query, base, None, ETag=etag)

    @router.post(
        "/{job_id}/cues",
        summary="Get the subtitles of a corrected transcript, which is not stored",
        response_model=Cues,
        responses={
            200: {"headers": WARNING},
            **documented_errors(400, 401, 403, 404, 409, 413, 415, 429, 503),
        },
        openapi_extra=correction_body(restores=False),
    )
    async def preview_cues(request: Request, job_id: str, query: Annotated[CuesQuery, Query()]) -> Response:
        """The body is that of a correction of the newest revision, with all segments."""
        job = await find_done(request, job_id, query)
        check_json(request)
        with admission.corrections.hold(client_of(request)):
            body = await receive_correction(service, request, job)
            return await respond(request, job, query, await jobs.store.transcript(job), body)

    return router
