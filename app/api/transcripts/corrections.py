"""The endpoints that correct the transcript of a job, find its speakers again, and list its revisions."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from app.api.http.keys import shared_link_of
from app.api.http.receiving import MAX_DOCUMENT_BYTES, check_json, receive_document
from app.api.jobs.lookup import check_done, find_job
from app.api.schemas import Revision, RevisionList, Segments
from app.api.transcripts.correction_bodies import correction_body
from app.api.transcripts.correction_steps import (
    Outcome,
    corrected,
    live_corrected,
    relabelled,
    restored,
)
from app.api.transcripts.speaker_bodies import SpeakersBody, parse_speakers
from app.api.transcripts.versions import (
    ETAG,
    IfMatch,
    if_match_of,
    is_current,
    revision_etag,
    seen_version,
    so_far_etag,
)
from app.common.errors import NoVoices, PreconditionFailed, PreconditionRequired
from app.intake.limits import Admission
from app.jobs.document import timestamp
from app.jobs.job import Job
from app.jobs.serialization import PackedTranscript
from app.jobs.service import JobService
from app.jobs.storage.revisions import transcript_changed
from app.pool.helper import LONG_S, work_s
from app.recording.service import TranscriptionService
from app.server.connections import run_unless_disconnected
from app.server.errors import documented_errors
from app.server.json_bodies import documented_body
from app.server.requests import client_of, is_by_link
from app.server.sending import json_response
from app.transcript.speakers.relabelling import SpeakerCorrection
from workers.messages import seconds

MAX_CORRECTION_BYTES = 32 << 20
MAX_SPEAKERS_BYTES = 1 << 20
_LEAST_BYTES, _BYTES_PER_S = 8 << 20, 1 << 10  # that a body may have; per second of the recording
# Parsing more, or finding more words, takes longer than the event loop may wait.
_LARGE_BYTES, _MANY_WORDS = 1 << 18, 6_000
_IN_WORDS = bytes(set(range(0x80)) - set(b" \t\r\n\\"))  # other bytes may be between words, or words

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"headers": ETAG},
    **documented_errors(400, 401, 404, 409, 412, 413, 415, 428, 429, 503, 507),
}


def correction_routes(service: TranscriptionService, jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.put(
        "/{job_id}/segments",
        summary="Correct the transcript, or restore an earlier revision of it",
        response_model=Segments,
        responses=RESPONSES,
        openapi_extra=correction_body(),
    )
    async def correct_segments(request: Request, job_id: str, if_match: IfMatch = None) -> Response:
        """The body has all segments of the transcript. Segments that it lacks are removed.

        A segment that keeps its `id` keeps the times of the words that it keeps. The answer is the document
        of the new revision. If nothing differs from the newest revision, none is stored.

        The text of a live job can be corrected while it grows: all of that becomes the first revision.
        """
        job = await find_job(jobs, request, job_id)
        is_live = await jobs.store.has_live_text(job)
        condition = _check_condition(request, job, if_match, is_live)
        with admission.corrections.hold(client_of(request)):
            body = await receive_correction(service, request, job)
            if is_live:
                return await _revise_live(service, jobs, job, condition, body, request)
            return await _revise(jobs, job, condition, partial(_correct, service, jobs, job, body), request)

    @router.get(
        "/{job_id}/revisions",
        summary="List the revisions of the transcript, newest first",
        response_model=RevisionList,
        responses=documented_errors(401, 403, 404, 409, 503),
    )
    async def list_revisions(request: Request, job_id: str) -> Response:
        """The original and the newest corrections. A shared link does not see who has made them."""
        job = await find_job(jobs, request, job_id)
        check_done(job)
        revisions = [
            Revision(
                revision=each.number,
                created_at=timestamp(each.created_at),
                changed=each.changed,
                by_link=each.by_link,
                reason=each.reason,
                restored=each.restored,
                **({} if shared_link_of(request) else {"link" if each.by_link else "owner": each.author}),
            )
            for each in await jobs.store.revisions(job)
        ]
        return JSONResponse(RevisionList(data=revisions).model_dump())

    @router.post(
        "/{job_id}/speakers",
        summary="Find the speakers again, or rename them",
        response_model=Segments,
        responses=RESPONSES,
        openapi_extra=documented_body(SpeakersBody.model_json_schema()),
    )
    async def find_speakers(request: Request, job_id: str, if_match: IfMatch = None) -> Response:
        """Compares the voices of a job anew, without transcribing. Texts and times stay.

        So do speakers that someone chose. The voices of a job without `diarize` are embedded now, while its
        recording is kept. `names` alone only renames, for any job. The answer is the document
        of the new revision. If nothing differs from the newest revision, none is stored.
        """
        job = await find_job(jobs, request, job_id)
        is_live = await jobs.store.has_live_text(job)
        condition = _check_condition(request, job, if_match, is_live)
        with admission.corrections.hold(client_of(request)):
            body = await receive_document(service, request, MAX_SPEAKERS_BYTES)
            parsing_s = LONG_S if len(body) > MAX_DOCUMENT_BYTES else 0.0
            wanted = await service.helper.run(parsing_s, parse_speakers, body)
            if is_live:
                if wanted.needs_voices:  # they are compared at the end
                    check_done(job)
                return await _revise_live(service, jobs, job, condition, wanted, request)
            voices = await jobs.store.voices(job) if wanted.needs_voices else []
            if wanted.needs_voices and not voices and job.submission.file is not None:
                with admission.requests.hold(client_of(request)):
                    voices = await run_unless_disconnected(request, jobs.recordings.voices(job))
            if wanted.needs_voices and not voices:
                raise NoVoices(
                    "The job has no voices to compare: nobody speaks, each channel is a speaker, or they "
                    "were deleted with the recording. "
                    "Submit the recording with diarize=true. `names` alone renames its speakers."
                )

            async def make(base: PackedTranscript) -> Outcome:
                length_s = work_s(job.duration, base.content)
                return await service.helper.run(length_s, relabelled, base, voices, wanted)

            return await _revise(jobs, job, condition, make, request)

    return router


async def receive_correction(service: TranscriptionService, request: Request, job: Job) -> bytes:
    """The body of a request that corrects the transcript of a job. Raises as `receive_document`."""
    max_bytes = _LEAST_BYTES + _BYTES_PER_S * int(job.duration or 0)
    return await receive_document(service, request, min(max_bytes, MAX_CORRECTION_BYTES))


def correction_s(job: Job, body: bytes, base: PackedTranscript) -> float:
    """As `helper.work_s`, for such a body and what it makes of a revision."""
    is_long = len(body) > _LARGE_BYTES or len(body.translate(None, _IN_WORDS)) > _MANY_WORDS
    return work_s(LONG_S if is_long else job.duration, base.content)


async def _correct(
    service: TranscriptionService, jobs: JobService, job: Job, body: bytes, base: PackedTranscript
) -> Outcome:
    """What the body of a request makes of a revision. Raises InvalidInput, TooLarge and UnknownRevision."""
    outcome = await service.helper.run(correction_s(job, body, base), corrected, base, body)
    if isinstance(outcome, int):
        earlier = await jobs.store.transcript(job, outcome)
        run = partial(service.helper.run, work_s(job.duration, base.content, earlier.content))
        outcome = await run(restored, base, earlier)
    return outcome


def _check_condition(request: Request, job: Job, if_match: str | None, is_live: bool) -> str:
    """Check all but the body, before that is read. Returns the condition. `is_live`: see `has_live_text`.

    Raises JobNotDone, PreconditionRequired, PreconditionFailed, InvalidInput and UnsupportedContentType.
    """
    if not is_live:
        check_done(job)
    if if_match is None:
        raise PreconditionRequired(
            "The request does not say which version of the transcript it corrects. Send the ETag of the "
            "segments as `If-Match`.",
            param="If-Match",
        )
    condition = if_match_of(request)
    if not is_live:
        _check_current(condition, job.revision)
    check_json(request)
    return condition


async def _revise(
    jobs: JobService,
    job: Job,
    condition: str,
    make: Callable[[PackedTranscript], Awaitable[Outcome]],
    request: Request,
) -> Response:
    """Store what `make` makes of the newest revision. Returns the document of the newest one after that.

    Raises as `make`, PreconditionFailed, UnknownRevision, DiskFull, and as `Store.correct` does.
    """
    await jobs.check_space()
    while True:
        base = (await jobs.store.transcript(job))._replace(for_link=is_by_link(request))
        _check_current(condition, base.revision)
        correction, document = await make(base)
        try:
            if correction is not None:
                client = client_of(request)
                author = (client.link if base.for_link else client.owner) or None
                job = await jobs.store.correct(job, correction, by_link=base.for_link, author=author)
        except PreconditionFailed:
            continue  # another correction came first: the condition may allow it, as `*` does
        headers = {"ETag": revision_etag(job.revision if correction else base.revision)}
        return json_response(document, headers)


async def _revise_live(
    service: TranscriptionService,
    jobs: JobService,
    job: Job,
    condition: str,
    wanted: bytes | SpeakerCorrection,
    request: Request,
) -> Response:
    """The same for the text of a live job that has not ended; `wanted`: see `live_corrected`.

    Raises as that, PreconditionFailed, JobNotDone and UnknownJob.
    """
    await jobs.check_space()
    terms, for_link = await jobs.store.terms(job), is_by_link(request)
    seen = seen_version(condition, await jobs.store.segments_version(job))
    while True:
        version = await jobs.store.segments_version(job)
        clips = await jobs.store.published_clips(job)
        if clips is None or not await jobs.store.has_live_text(job := await jobs.store.get(job.id)):
            check_done(job)
            raise transcript_changed(job.revision)
        until = await _seen_until(jobs, job, seen)
        length_s = work_s(seconds(clips[-1].span[1]), *(clip.result for clip in clips if clip.is_corrected))
        base = (clips, job.submission.options, terms, version)
        run = partial(service.helper.run, length_s, live_corrected, *base)
        correction, since, document = await run(until, wanted, for_link)
        try:
            if correction is not None:
                content = correction.transcript.content
                version = await jobs.store.correct_live_text(job, content, version, since)
        except PreconditionFailed:
            continue  # the text has grown meanwhile
        return json_response(document, {"ETag": so_far_etag(version)})


async def _seen_until(jobs: JobService, job: Job, seen: int) -> int:
    """Where the text of this version ends (samples). Raises PreconditionFailed if that has changed since."""
    events = await jobs.store.segments_events(job, seen)
    if seen not in events or any(events[number][0] < events[seen][1] for number in events if number > seen):
        raise transcript_changed()
    return events[seen][1]


def _check_current(condition: str, revision: int) -> None:
    if not is_current(condition, revision_etag(revision)):
        raise transcript_changed(revision)
