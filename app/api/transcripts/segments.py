"""The endpoint of a job's segments: its transcript as people read and correct it."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.jobs.lookup import check_done, find_job
from app.api.schemas import Segments
from app.api.transcripts.correction_steps import document
from app.api.transcripts.segment_documents import published_document
from app.api.transcripts.versions import (
    ETAG,
    IfNoneMatch,
    WantedRevision,
    is_known,
    not_modified,
    revision_etag,
    so_far_etag,
    wanted_number,
)
from app.intake.limits import Admission
from app.jobs.job import Job, Status
from app.jobs.service import JobService
from app.pool.helper import work_s
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors
from app.server.requests import client_of, is_by_link
from app.server.sending import json_response, sendable
from workers.messages import seconds


def segment_routes(service: TranscriptionService, jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.get(
        "/{job_id}/segments",
        summary="Get the segments that are transcribed so far",
        response_model=Segments,
        responses={
            200: {"headers": ETAG},
            304: {"description": "The segments have not changed", "headers": ETAG},
            **documented_errors(400, 401, 403, 404, 409, 429, 503),
        },
    )
    async def retrieve_segments(
        request: Request, job_id: str, revision: WantedRevision = None, if_none_match: IfNoneMatch = ""
    ) -> Response:
        """Without a gap from the start of the recording, also while the job runs. An empty list before it.

        A `revision` can be named once the job has succeeded.
        """
        job = await find_job(jobs, request, job_id)
        number = wanted_number(request, revision)
        if number is not None:
            check_done(job)
        response = await _segments_response(service, jobs, job, number, if_none_match, is_by_link(request))
        return await sendable(response, admission.sending.hold(client_of(request)))

    return router


async def _segments_response(
    service: TranscriptionService,
    jobs: JobService,
    job: Job,
    revision: int | None,
    if_none_match: str,
    for_link: bool,
) -> Response:
    """The segments of a revision, by default the newest, or a 304. Raises UnknownRevision."""
    if job.status is not Status.SUCCEEDED:
        version = await jobs.store.segments_version(job)  # before the clips, so it is never newer than they
        headers = {"ETag": so_far_etag(version)}
        if is_known(if_none_match, headers["ETag"]):
            return not_modified(headers)
        clips = await jobs.store.published_clips(job)
        if clips is not None:
            corrected = (clip.result for clip in clips if clip.is_corrected)
            length_s = work_s(seconds(clips[-1].span[1]) if clips else 0.0, *corrected)
            wanted = (clips, job.submission.options, await jobs.store.terms(job), for_link)
            plain = await service.helper.run(length_s, published_document, *wanted)
            return json_response(plain, headers)
        job = await jobs.store.get(job.id)  # it has succeeded meanwhile
    check_done(job)
    headers = {"ETag": revision_etag(job.revision)}
    if revision is None and is_known(if_none_match, headers["ETag"]):
        return not_modified(headers)
    async with service.helper.turn(job.duration):
        packed = (await jobs.store.transcript(job, revision))._replace(for_link=for_link)
        headers = {"ETag": revision_etag(packed.revision)}
        if is_known(if_none_match, headers["ETag"]):
            return not_modified(headers)
        length_s = work_s(job.duration, packed.content)
        body = await service.helper.run(length_s, document, packed)
    return json_response(body, headers)
