"""The endpoint of a job's segments: its transcript as people read and correct it."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header
from starlette.responses import Response

from app.api.errors import documented_errors
from app.api.job_lookup import find_job
from app.api.schemas import Segments
from app.api.segment_documents import segments_document, transcript_document
from app.jobs.job import Job, Status

if TYPE_CHECKING:
    from app.jobs.service import JobService
    from app.transcription.service import TranscriptionService

ETAG = {"ETag": {"schema": {"type": "string"}, "description": "Changes with the segments."}}

IfNoneMatch = Annotated[
    str, Header(description="ETags that the client has. If one of them is current, the answer is 304.")
]


def segment_routes(service: "TranscriptionService", jobs: "JobService") -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.get(
        "/{job_id}/segments",
        summary="Get the segments that are transcribed so far",
        response_model=Segments,
        responses={
            200: {"headers": ETAG},
            304: {"description": "The segments have not changed", "headers": ETAG},
            **documented_errors(401, 404, 503),
        },
    )
    async def retrieve_segments(job_id: str, if_none_match: IfNoneMatch = "") -> Response:
        """Without a gap from the start of the recording, also while the job runs. An empty list before it."""
        return await _segments_response(service, jobs, await find_job(jobs, job_id), if_none_match)

    return router


async def _segments_response(
    service: "TranscriptionService", jobs: "JobService", job: Job, if_none_match: str
) -> Response:
    """The segments of a job, or a 304."""
    complete = job.status is Status.SUCCEEDED
    headers = {"ETag": etag(job.revision)}
    if complete and matches(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    if complete:
        packed = await jobs.store.transcript(job)
        body = await service.helper.run(job.duration or 0.0, transcript_document, packed)
    else:
        body = segments_document(job.revision, complete, ())
    return Response(body, media_type="application/json", headers=headers)


def etag(revision: int) -> str:
    """The ETag of the segments of a revision."""
    return f'"{revision}"'


def matches(condition: str, etag: str) -> bool:
    """Whether an `If-None-Match` or `If-Match` header has an ETag."""
    tags = [tag.strip().removeprefix("W/") for tag in condition.split(",")]
    return etag in tags or condition.strip() == "*"
