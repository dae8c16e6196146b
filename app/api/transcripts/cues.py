"""The endpoint of subtitles: those that a file of a job will have, also while its text is being edited."""

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
from app.api.transcripts.correction_bodies import RevisionNumber, correction_body
from app.api.transcripts.corrections import correction_s, receive_correction
from app.api.transcripts.cue_documents import cues_document
from app.api.transcripts.versions import (
    ETAG,
    WHICH_REVISION,
    IfNoneMatch,
    is_known,
    not_modified,
    wanted_number,
)
from app.common.errors import InvalidInput
from app.common.options import Options
from app.intake.limits import Admission
from app.jobs.job import Job
from app.jobs.service import JobService
from app.pool.helper import work_s
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


class RevisionCuesQuery(CuesQuery):
    revision: RevisionNumber | None = Field(None, description=WHICH_REVISION)


def cue_routes(service: TranscriptionService, jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.get(
        "/{job_id}/cues",
        summary="Get the subtitles as a file will have them",
        response_model=Cues,
        responses={
            200: {"headers": {**ETAG, **WARNING}},
            304: {"description": "The subtitles have not changed", "headers": ETAG},
            **documented_errors(400, 401, 403, 404, 409, 429, 503),
        },
    )
    async def retrieve_cues(
        request: Request,
        job_id: str,
        query: Annotated[RevisionCuesQuery, Query()],
        if_none_match: IfNoneMatch = "",
    ) -> Response:
        """With the places of their text in the segments, and the limits that they break.

        Absent options are those of the job.
        """
        job = await find_job(jobs, request, job_id)
        number = wanted_number(request, query.revision)
        options = _options(request, job, query)
        async with service.helper.turn(job.duration):
            packed = await jobs.store.transcript(job, number)
            etag = file_etag(packed.revision, job, query, query.start, query.end)
            if is_known(if_none_match, etag):
                return not_modified({"ETag": etag})
            arguments = (packed, None, options, query.format, query.start, query.end)
            body = await service.helper.run(work_s(job.duration, packed.content), cues_document, *arguments)
        return await sendable(json_response(body, {"ETag": etag}), admission.sending.hold(client_of(request)))

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
        """The body is that of a correction, with all segments; the newest revision is the one it corrects."""
        job = await find_job(jobs, request, job_id)
        options = _options(request, job, query)
        check_json(request)
        with admission.corrections.hold(client_of(request)):
            edits = await receive_correction(service, request, job)
            base = await jobs.store.transcript(job)
            arguments = (base, edits, options, query.format, query.start, query.end)
            body = await service.helper.run(correction_s(job, edits, base), cues_document, *arguments)
        return await sendable(json_response(body, {}), admission.sending.hold(client_of(request)))

    return router


def _options(request: Request, job: Job, query: CuesQuery) -> Options:
    """The options of the file. Raises JobNotDone and InvalidInput."""
    check_done(job)
    if query.end is not None and query.end <= (query.start or 0.0):
        raise InvalidInput(
            f"`end` is {query.end:g} s, and must be after `start`, {query.start or 0.0:g} s.", param="end"
        )
    note_without_effect(request, Options.model_construct(**query.changes), query.changes, query.format)
    return job.submission.options.model_copy(update=query.changes)
