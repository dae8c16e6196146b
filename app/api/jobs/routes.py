"""The endpoints of jobs: clients submit a recording, and get the result later."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, cast

from fastapi import APIRouter, Header, Query, Request
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from app.api.http.event_streams import documented_events
from app.api.http.forms import JobFields
from app.api.http.receiving import check_json, receive_document
from app.api.http.unused import WARNING, note_without_effect
from app.api.jobs.details import (
    MAX_TAGS,
    MERGE_PATCH,
    PATCH_BODY,
    check_details,
    detail_changes,
    details_etag,
    split_tags,
)
from app.api.jobs.events import events_response
from app.api.jobs.lookup import distinct_ids, find_job, seen_by, without_file_name
from app.api.jobs.results import ResultQuery, audio_response, result_response
from app.api.jobs.sound import SoundFormat, SpanTime, check_sound_query, sound_response
from app.api.jobs.submissions import BINARY, IdempotencyKey, submission_body, submit_job
from app.api.schemas import JobList, JobWebhook, ListedJob, Match, NewSegments
from app.api.transcripts.versions import ETAG, IfNoneMatch, if_match_of, wanted_number
from app.common.concurrency import run_shielded
from app.common.errors import NotAllowed
from app.common.ids import ID
from app.common.options import WHOLE, Options
from app.common.owners import Client
from app.intake.limits import Admission
from app.jobs.document import SHARED_FIELDS, Job
from app.jobs.events import SEGMENTS
from app.jobs.job import Job as StoredJob
from app.jobs.job import Status
from app.jobs.passages import Sentence
from app.jobs.service import JobService
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors
from app.server.requests import client_of, is_by_link
from app.server.sending import sendable
from app.transcript.formats import FORMATS
from workers.messages import seconds

MAX_EVENT_NUMBER = 2**31 - 1
MAX_QUERY_CHARS = 200
MAX_LISTED = 100  # jobs in one answer


def _new_segments() -> dict[str, object]:
    """The schema of the data of `job.segments`."""
    schema = NewSegments.model_json_schema(ref_template="#/components/schemas/{model}")
    del schema["$defs"]  # the document has them, for `GET /v1/jobs/{id}/segments`
    return schema


_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Counts from 1, without gaps."},
        "event": {
            "type": "string",
            "enum": ["job.progress", SEGMENTS, *(f"job.{status}" for status in Status)],
        },
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"oneOf": [{"$ref": "#/components/schemas/Job"}, _new_segments()]},
            "description": "The job at that time; with `job.segments`, the segments that are new.",
        },
    },
    "required": ["id", "event", "data"],
}


class _IdConvertor(StringConvertor):
    """The id of a job in a path. A fixed path beside the jobs is none, whatever the method."""

    regex = r"(?!archive$)[^/]+"


register_url_convertor("job_id", _IdConvertor())


def _listed(job: Job, found: Sequence[Sentence]) -> ListedJob:
    matches = [Match(text=text, start=seconds(start), segment=segment) for segment, start, text in found]
    return ListedJob(**dict(job), matches=matches)


def _list_response(
    client: Client, page: Sequence[StoredJob], has_more: bool, matches: Mapping[int, Sequence[Sentence]]
) -> Response:
    """A `JobList`. Call it in a thread. Jobs are encoded one by one: JSON holds the GIL until it is made."""
    now = time.time()
    listed = (_listed(seen_by(client, job, now), matches.get(job.number, ())) for job in page)
    head, tail = JobList(data=[], has_more=has_more).model_dump_json().split("[]")
    data = ",".join(job.model_dump_json() for job in listed)
    return Response(f"{head}[{data}]{tail}", media_type="application/json")


def job_webhooks() -> APIRouter:
    """For OpenAPI alone: what the service sends to the `webhook_url` of a job."""
    router = APIRouter(tags=["jobs"])

    @router.post(
        "job",
        operation_id="job_changed",
        summary="A job has ended, or was corrected",
        status_code=204,
        responses={"default": {"description": "Any status but 2xx: it is sent again later."}},
    )
    async def job_changed(
        body: JobWebhook,
        webhook_id: Annotated[str, Header(description="The same for each attempt to deliver it.")],
        webhook_timestamp: Annotated[int, Header(description="Unix time of the attempt (s).")],
        webhook_signature: Annotated[str, Header(description="According to Standard Webhooks: `v1,…`.")],
    ) -> None:
        """Answer with any status of 2xx, within seconds."""

    return router


def job_routes(service: TranscriptionService, jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    async def job_response(request: Request, job: StoredJob) -> Response:
        client = client_of(request)
        fields = set(SHARED_FIELDS) if client.link else None
        content = seen_by(client, job, time.time()).model_dump(mode="json", include=fields)
        response = JSONResponse(content, headers={"ETag": details_etag(job)})
        return await sendable(response, admission.sending.hold(client_of(request)))

    @router.post(
        "",
        summary="Submit a job",
        status_code=202,
        response_model=Job,
        responses={
            202: {"headers": WARNING},
            **documented_errors(400, 401, 404, 409, 410, 413, 415, 423, 429, 500, 503, 507),
        },
        openapi_extra=submission_body(),
    )
    async def create_job(
        request: Request, query: Annotated[JobFields, Query()], idempotency_key: IdempotencyKey = ""
    ) -> Response:
        """The body is a form with a file, the recording itself, or a JSON object with its URL or its upload.

        Options are fields of the form or the JSON object, or else parameters of the query.
        """
        return await submit_job(service, jobs, admission, request, query, idempotency_key or None)

    @router.get(
        "",
        summary="List or find jobs, newest first",
        response_model=JobList,
        responses=documented_errors(400, 401, 403, 404, 429, 503),
    )
    async def list_jobs(
        request: Request,
        status: Status | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_LISTED), WHOLE] = 20,
        after: Annotated[str, Query(description="The id of the last job of the previous page.")] = "",
        q: Annotated[
            str,
            Query(
                max_length=MAX_QUERY_CHARS,
                description="Words. Each of them must be in the job's transcript, title, notes, tags or file "
                "name, or begin a word there. Case, accents and punctuation do not matter. Blank: no search.",
            ),
        ] = "",
        tag: Annotated[
            list[Annotated[str, Query(max_length=MAX_QUERY_CHARS)]] | None,
            Query(max_length=MAX_TAGS, description="Only jobs with all of these tags; commas separate them."),
        ] = None,
        ids: Annotated[
            list[Annotated[str, Query(pattern=r"[^,\s]")]] | None,
            Query(
                min_length=1,
                description=f"Only these jobs, separated by commas: {MAX_LISTED} at most. Those that do not "
                "exist are left out. Other parameters do not apply then.",
            ),
        ] = None,
        owner: Annotated[
            str | None,
            Query(
                max_length=64, description="Only the jobs of this owner: of others, operators alone see any."
            ),
        ] = None,
        parent: Annotated[
            str,
            Query(
                description="The id of a job: those that transcribe it again, which are left out otherwise."
            ),
        ] = "",
        trash: Annotated[bool, Query(description="The jobs in the trash, instead of all others.")] = False,
    ) -> Response:
        client = client_of(request)
        whose = client.visible_owner if owner is None else owner
        if client.visible_owner not in (None, whose):
            raise NotAllowed(
                f"Only operators see the jobs of others; leave `owner` out, or give {client.owner}."
            )
        matches: Mapping[int, Sequence[Sentence]] = {}
        if ids is not None:
            named = [job_id for job_id in distinct_ids(ids, MAX_LISTED) if ID.fullmatch(job_id)]
            page, has_more = await jobs.store.named(named, whose), False
        else:
            last = await find_job(jobs, request, after, param="after", trashed=trash) if after else None
            text = q if q.strip() else None
            tags = cast("list[str]", split_tags(tag))
            of = await find_job(jobs, request, parent, param="parent") if parent else None
            page, has_more = await jobs.store.page(status, limit, last, text, whose, tags, of, trash)
            if text is not None:
                matches = await jobs.store.matches(page, text)
        response = await asyncio.to_thread(_list_response, client, page, has_more, matches)
        return await sendable(response, admission.sending.hold(client_of(request)))

    @router.get(
        "/{job_id:job_id}",
        summary="Get a job",
        response_model=Job,
        responses={200: {"headers": ETAG}, **documented_errors(401, 404, 429, 503)},
    )
    async def retrieve_job(request: Request, job_id: str) -> Response:
        """The ETag is that of its title, notes and tags, for a change of those.

        A shared link gets a few fields alone: no `filename`, `url`, `options`, `notes`, `tags`, …
        """
        return await job_response(request, await find_job(jobs, request, job_id))

    @router.patch(
        "/{job_id:job_id}",
        summary="Change the title, the notes or the tags of a job",
        response_model=Job,
        responses={200: {"headers": ETAG}, **documented_errors(400, 401, 404, 412, 413, 415, 429, 503, 507)},
        openapi_extra=PATCH_BODY,
    )
    async def describe_job(
        request: Request,
        job_id: str,
        if_match: Annotated[
            str | None,
            Header(description="The ETag of the job: of its title, notes and tags. If they differ: 412."),
        ] = None,
    ) -> Response:
        """A JSON merge patch: what it does not name stays, and null removes."""
        job = await find_job(jobs, request, job_id)
        check_json(request, MERGE_PATCH)
        await jobs.check_space()
        changes = detail_changes(await receive_document(service, request))
        wanted = "*" if if_match is None else if_match_of(request)
        job = await jobs.store.describe(job, partial(check_details, if_match=wanted), **changes)
        return await job_response(request, job)

    @router.delete(
        "/{job_id:job_id}",
        summary="Delete a job and its files for ever; cancel it if it is not done",
        status_code=204,
        responses=documented_errors(401, 404, 503, 507),
    )
    async def delete_job(request: Request, job_id: str) -> Response:
        """Also one in the trash."""
        await jobs.delete((await find_job(jobs, request, job_id, trashed=True)).id)
        return Response(status_code=204)

    @router.post(
        "/{job_id}/trash",
        summary="Put a job into the trash; cancel it if it is not done",
        response_model=Job,
        responses=documented_errors(401, 404, 409, 429, 503, 507),
    )
    async def trash_job(request: Request, job_id: str) -> Response:
        """It does not exist for other requests and its links until it is restored. `expires_at` says when it
        is deleted. One that is in the trash stays as it is.
        """
        job = await find_job(jobs, request, job_id, trashed=True)
        return await job_response(request, await run_shielded(jobs.trash(job)))

    @router.post(
        "/{job_id}/restore",
        summary="Take a job out of the trash",
        response_model=Job,
        responses=documented_errors(401, 404, 409, 429, 503, 507),
    )
    async def restore_job(request: Request, job_id: str) -> Response:
        """All of it is as it was, and its time goes on. One that was not done goes on, too. One that is not
        in the trash stays as it is.
        """
        job = await find_job(jobs, request, job_id, trashed=True)
        return await job_response(request, await run_shielded(jobs.restore(job)))

    @router.get(
        "/{job_id}/events",
        summary="Follow a job",
        responses={
            200: {"content": documented_events(_EVENT)},
            204: {"description": "The job is done, and it has no events after the last one seen"},
            **documented_errors(400, 401, 404, 429, 503),
        },
        response_class=StreamingResponse,
    )
    async def follow_job(
        request: Request,
        job_id: str,
        last_event_id: Annotated[
            int,
            Header(
                ge=0,
                le=MAX_EVENT_NUMBER,
                description="The id of the last event seen; the stream starts after it.",
            ),
            WHOLE,
        ] = 0,
    ) -> Response:
        """Each event has the job at that time. The stream ends with the job.

        The events `job.segments` have segments instead: they replace all that start at `from` or later.
        """
        job = await find_job(jobs, request, job_id)
        admitted = admission.streams.hold(client_of(request))
        return await events_response(
            service, jobs, job, last_event_id, admitted, for_link=is_by_link(request)
        )

    @router.get(
        "/{job_id}/result",
        summary="Get the transcript, in any format",
        responses={
            200: {
                "content": {kind: {} for kind in sorted({form.media_type for form in FORMATS.values()})},
                "headers": {**ETAG, **WARNING},
            },
            304: {"description": "The result has not changed", "headers": ETAG},
            **documented_errors(400, 401, 403, 404, 409, 429, 503),
        },
        response_class=Response,
    )
    async def retrieve_result(
        request: Request, job_id: str, query: Annotated[ResultQuery, Query()], if_none_match: IfNoneMatch = ""
    ) -> Response:
        """With all corrections, unless a `revision` is named. Absent options are those of the job."""
        job = await find_job(jobs, request, job_id)
        number = wanted_number(request, query.revision)
        note_without_effect(request, Options.model_construct(**query.changes), query.changes, query.format)
        shown = without_file_name(request, job)
        response = await result_response(
            service, jobs, shown, query, number, if_none_match, for_link=is_by_link(request)
        )
        return await sendable(response, admission.sending.hold(client_of(request)))

    @router.get(
        "/{job_id}/audio",
        summary="Get the recording or a copy that browsers play, or ranges of it",
        responses={
            200: {"content": dict.fromkeys(("application/octet-stream", "audio/flac", "audio/ogg"), BINARY)},
            206: {"description": "The requested range of bytes"},
            **documented_errors(400, 401, 403, 404, 409, 413, 416, 429, 503, 507),
        },
        response_class=FileResponse,
    )
    async def retrieve_audio(
        request: Request,
        job_id: str,
        format: Annotated[
            SoundFormat | None,
            Query(description="Of the copy: lossless, or small (Vorbis). Default: the recording itself."),
        ] = None,
        start: SpanTime | None = None,
        end: SpanTime | None = None,
    ) -> Response:
        """A copy has the rate of the recording, 8 to 48 kHz, and one or two channels of 16 bits.

        `start` and `end` select a span, to the sample; they need a `format`.
        """
        job = without_file_name(request, await find_job(jobs, request, job_id))
        check_sound_query(job, format, start, end)
        if format is None:
            return await audio_response(service, job, admission.recordings.hold(client_of(request)))
        return await sound_response(service, admission, request, job, format, start, end)

    return router
