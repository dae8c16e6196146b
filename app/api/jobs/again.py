"""The endpoint that transcribes a job's recording again: all of it or a part, for its transcript."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Header, Request
from pydantic import ConfigDict, Field
from starlette.responses import Response

from app.api.http.forms import RequestFields
from app.api.http.receiving import check_json, receive_document
from app.api.http.unused import note_without_effect
from app.api.jobs.lookup import check_done, find_job
from app.api.jobs.submissions import IdempotencyKey, accepted, check_webhook
from app.api.transcripts.versions import if_match_of, is_current, revision_etag
from app.common.concurrency import run_shielded
from app.common.errors import NOT_KEPT, AudioNotKept, InvalidInput, JobNotDone
from app.common.options import FILE_OPTIONS, Text
from app.jobs.document import Job as JobDocument
from app.jobs.job import Again, Job, Status, Submission
from app.jobs.serialization import transcript_head
from app.jobs.service import JobService
from app.jobs.storage.revisions import transcript_changed
from app.jobs.storage.store import Store
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors, validated
from app.server.json_bodies import documented_body, json_object
from app.telemetry import traces
from app.telemetry.work import current_work
from app.transcript.terms import Term

log = structlog.get_logger("whisperfleet.api")

# Results, copies and the waveform of the parent are made with its own options.
_OF_PARENT = FILE_OPTIONS | {"audio_track", "word_timestamps"}
_UNCHANGED = (
    "A job that failed runs again as it was submitted: send `{}`, or submit its recording as a new job."
)
_OF_LANGUAGE = frozenset({"language", "languages", "multilingual"})
_COUNTS = frozenset({"num_speakers", "min_speakers", "max_speakers"})

IfMatch = Annotated[
    str | None,
    Header(description="The ETag of the segments. If the transcript has changed since, the answer is 412."),
]


class AgainFields(RequestFields):
    """What to transcribe, and how. Options that are absent are those of the job."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field("", max_length=256, description="A model of `/v1/models`; that of the job if absent.")
    webhook_url: Text = Field(None, max_length=2048, description="URL that is called when the new job ends.")
    keep_corrections: bool = Field(
        True,
        description="What people changed stays, and new text is filled in between. It must be false for "
        "another language or task.",
    )


_FIELDS = [name for name in AgainFields.model_fields if name not in _OF_PARENT]


def again_routes(service: TranscriptionService, jobs: JobService) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.post(
        "/{job_id}/again",
        summary="Transcribe the recording, or a part of it, again",
        status_code=202,
        response_model=JobDocument,
        responses=documented_errors(400, 401, 404, 409, 412, 413, 415, 429, 503, 507),
        openapi_extra=_body(),
    )
    async def transcribe_again(
        request: Request, job_id: str, if_match: IfMatch = None, idempotency_key: IdempotencyKey = ""
    ) -> Response:
        """The answer is a new job, whose `parent` is this one. Its success adds a revision to the transcript.
        Of a job that has failed, it is that job: it runs again as it was submitted, and only what it lacks is
        transcribed. The body is empty (`{}`) then.

        `start` and `end` replace the transcript there alone. If the transcript is corrected while the new job
        runs, that fails with the code `revision_changed`, and the corrections stay.
        """
        parent = await find_job(jobs, request, job_id)
        check_json(request)
        given = json_object(await receive_document(service, request), '{"start": 62.5, "end": 70}')
        if parent.status is Status.FAILED:
            if given:
                raise JobNotDone(_UNCHANGED, param=next(iter(given))[:64])
            return accepted(request, await run_shielded(jobs.run_again(parent)))
        fields = _parse(parent, given)
        note_without_effect(request, fields, given)
        key = idempotency_key or None
        owner = parent.submission.owner
        if key is None or await jobs.store.find(owner, key) is None:
            await _check(service, jobs.store, parent, fields, request, if_match)
        await check_webhook(service, fields.webhook_url)
        if fields.diarize:
            service.media.speaker_models.check()
        model = service.fleet.catalogue.resolve(
            fields.model.strip() or parent.submission.model, fields.task, fields.language
        )
        terms = fields.terms_of(await jobs.store.terms(parent))
        submission = _submission(parent, fields, model, key, terms)
        job, _ = await run_shielded(jobs.submit(submission, terms=terms))
        log.info("job submitted", job=job.id, parent=parent.id)
        return accepted(request, job)

    return router


def _parse(parent: Job, given: Mapping[str, Any]) -> AgainFields:
    """The checked fields of a request, with the parent's options for absent ones. Raises InvalidInput."""
    for name in given:
        if name in _OF_PARENT:
            raise InvalidInput(
                f"`{name}` cannot change: the job's results are made with the options that it was submitted "
                "with. Leave it out, or submit the recording as a new job.",
                param=name,
            )
    return validated(AgainFields, {**_inherited(parent, given), **given}, _FIELDS)


def _inherited(parent: Job, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the parent, without those that what is given rules out."""
    options = parent.submission.options
    ruled_out: set[str] = set()
    if given.keys() & _COUNTS:
        ruled_out |= _COUNTS
    if given.get("channels") == "separate":
        ruled_out.add("diarize")
    if given.get("diarize"):
        ruled_out.add("channels")
    inherited = options.model_dump(exclude=ruled_out)
    is_detected = options.language is None and not options.multilingual
    if is_detected and given.keys() & {"start", "end"} and not given.keys() & _OF_LANGUAGE:
        # A part may be too short to tell.
        if parent.languages is None:
            inherited["language"] = parent.language
        elif options.languages is None:
            inherited["languages"] = ",".join(parent.languages)
    return inherited


async def _check(
    service: TranscriptionService,
    store: Store,
    parent: Job,
    fields: AgainFields,
    request: Request,
    if_match: str | None,
) -> None:
    """Raise the error of a request that makes no new job."""
    check_done(parent)
    if if_match is not None and not is_current(if_match_of(request), revision_etag(parent.revision)):
        raise transcript_changed(parent.revision)
    file = parent.submission.file
    if file is None or not await asyncio.to_thread((service.media.folder.uploads / file).is_file):
        raise AudioNotKept(NOT_KEPT)
    options, newest = parent.submission.options, transcript_head((await store.transcript(parent)).content)
    first, last = options.start or 0.0, parent.duration or 0.0
    start, end = fields.start or 0.0, fields.end
    if start < first or start >= last or (end is not None and options.end is not None and end > options.end):
        raise InvalidInput(
            f"The transcript is that of {first:g} s to {last:g} s of the recording. Choose `start` and `end` "
            "within that.",
            param="start" if start < first or start >= last else "end",
        )
    is_other = fields.task != newest.task or fields.language not in (None, newest.language)
    if fields.keep_corrections and is_other:
        raise InvalidInput(
            "In another language, what people corrected cannot stay between new text. Send "
            "`keep_corrections` as false: the corrections stay in the revisions before.",
            param="keep_corrections",
        )


def _submission(
    parent: Job, fields: AgainFields, model: str, key: str | None, terms: tuple[Term, ...]
) -> Submission:
    fingerprint = {  # as that of other jobs
        "again": parent.id,
        "model": model,
        "options": fields.options.model_dump(mode="json", exclude_defaults=True),
        "keep_corrections": fields.keep_corrections,
        "webhook_url": fields.webhook_url,
    }
    of_terms = {"terms": fields.terms, "terms_as_hotwords": fields.terms_as_hotwords}
    fingerprint |= {name: value for name, value in of_terms.items() if value}
    recorded = parent.submission
    is_part = (fields.start, fields.end) != (recorded.options.start, recorded.options.end)
    return Submission(
        filename=recorded.filename,
        file=None,
        size=None if is_part else recorded.size,
        sha256=recorded.sha256,
        url=None,
        model=model,
        options=fields.options_with(terms),
        webhook_url=fields.webhook_url,
        owner=recorded.owner,
        idempotency_key=key,
        request_id=current_work().request_id,
        traceparent=traces.traceparent(),
        fingerprint=hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest(),
        again=Again(parent.id, parent.revision, fields.keep_corrections),
    )


def _body() -> dict[str, Any]:
    """OpenAPI's description of the body."""
    schema = AgainFields.model_json_schema()
    schema["properties"] = {name: schema["properties"][name] for name in _FIELDS}
    return documented_body(schema)
