"""Submits jobs: makes a submission of a form, of a body that is the recording, of a URL or of an upload."""

import asyncio
import hashlib
import json
import time
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import structlog
from fastapi import Header, Request
from starlette.responses import JSONResponse, Response

from app.api.http.forms import (
    LARGE_FIELDS,
    JobFields,
    JobForm,
    JobSource,
    KnownSpeakerFields,
    check_early,
    known_speakers,
    parse,
    request_body,
    with_implied,
)
from app.api.http.receiving import media_type, receive, receive_body, receive_document
from app.api.http.unused import note_without_effect
from app.common.concurrency import run_shielded
from app.common.errors import InvalidInput, OutcomeUnknown, UnsupportedContentType
from app.intake.limits import Admission
from app.intake.multipart import base_name
from app.intake.uploads import Upload
from app.intake.url_policy import check_destination
from app.jobs.document import public
from app.jobs.job import Job, Submission
from app.jobs.service import JobService
from app.jobs.webhooks.client import check_webhook_url
from app.recording.service import TranscriptionService
from app.server.errors import validated
from app.server.json_bodies import json_object
from app.server.requests import client_of, public_path
from app.telemetry import traces
from app.telemetry.work import current_work
from app.transcript.terms import Term

log = structlog.get_logger("whisperfleet.api")

BINARY = {"schema": {"type": "string", "format": "binary"}}
MAX_KEY_CHARS = 255

IdempotencyKey = Annotated[
    str,
    Header(max_length=MAX_KEY_CHARS, description="Requests with the same key and content give the same job."),
]


async def submit_job(
    service: TranscriptionService,
    jobs: JobService,
    admission: Admission,
    request: Request,
    query: JobFields,
    key: str | None,
) -> Response:
    """Submit a job from any kind of body. `query`: parameters of the URL; `key`: the idempotency key.

    Raises InvalidInput, UnknownModel and UnsupportedContentType for the request, and as the `receive`
    functions, `check_capacity` and `submit` do. Leaves no file behind then.
    """
    owner = client_of(request).owner
    await jobs.check_capacity(owner, key)  # before a long upload, not after it
    # What the query says is checked before a long upload; `submission_of` checks what the body says.
    service.fleet.catalogue.resolve(query.model.strip())
    if query.options.diarize:
        service.media.speaker_models.check()
    await check_webhook(service, query.webhook_url)
    fields, upload = await _read_body(service, admission, request, query)
    note_without_effect(request, fields, fields.model_fields_set)
    terms = fields.terms_of(jobs.terms.all_of(owner))

    async def submit() -> Job:
        if isinstance(fields, JobSource) and fields.upload:
            # A resumable upload stays as it is unless this succeeds.
            async with jobs.uploads.complete(owner, fields.upload) as resumed:
                if fields.filename:
                    resumed = replace(resumed, filename=base_name(fields.filename.encode()))
                submission = await submission_of(service, fields, resumed, owner, key, terms)
                known = await known_speakers(service, fields)
                job, _ = await jobs.submit(replace(submission, from_upload=True), known, terms)
            return job
        keep_file = False
        try:
            submission = await submission_of(service, fields, upload, owner, key, terms)
            known = await known_speakers(service, fields)
            job, keep_file = await jobs.submit(submission, known, terms)
        except OutcomeUnknown:
            keep_file = True  # the job may be in the database
            raise
        finally:
            if upload is not None and not keep_file:
                await asyncio.to_thread(upload.remove)
        return job

    job = await run_shielded(submit())  # a cancellation must not remove the file of a submitted job
    log.info("job submitted", job=job.id)
    return accepted(request, job)


def accepted(request: Request, job: Job) -> Response:
    """The response to a request that has made a job, or has one run."""
    headers = {"Location": public_path(request, f"/v1/jobs/{job.id}")}
    return JSONResponse(public(job, time.time()), 202, headers)


async def _read_body(
    service: TranscriptionService, admission: Admission, request: Request, query: JobFields
) -> tuple[JobFields, Upload | None]:
    """The fields of a request, and its file if it has one, by the type of its body."""
    content_type = media_type(request)
    defaults = query.model_dump(exclude_unset=True, by_alias=True)
    if content_type == "multipart/form-data":
        check = partial(check_early, JobForm, service, defaults=defaults)
        form = await receive(
            service, request, admission.uploads, before_file=check, durable=True, large_fields=LARGE_FIELDS
        )
        try:
            return parse(JobForm, form.fields, form.file, defaults), form.file
        except BaseException:
            await asyncio.to_thread(form.remove)
            raise
    if content_type == "application/json":
        document = json_object(await receive_document(service, request), '{"url": "https://…"}')
        fields = validated(JobSource, with_implied(JobSource, {**defaults, **document}))
        if fields.upload:
            return fields, None
        if not service.settings.allow_urls:
            raise InvalidInput(
                "This service takes no URLs (WHISPER_ALLOW_URLS). Send the file itself.",
                param="url",
                code="urls_not_allowed",
            )
        await check_destination(fields.url, param="url")
        return fields, None
    if content_type == "application/octet-stream" or content_type.startswith(("audio/", "video/")):
        return query, await receive_body(service, request, admission.uploads, query.filename or "")
    raise UnsupportedContentType(
        "This path takes a form (multipart/form-data), the recording itself (audio/*, video/* or "
        'application/octet-stream), or application/json with a "url" or an "upload".'
    )


async def check_webhook(service: TranscriptionService, url: str | None) -> None:
    """Raise InvalidInput if the service cannot call a URL; None: it need not."""
    if url is None:
        return
    if service.settings.webhook_secret is None:
        raise InvalidInput(
            "This service sends no webhooks: it has no secret to sign them with; WHISPER_WEBHOOK_SECRET "
            "gives it one.",
            param="webhook_url",
            code="webhooks_not_configured",
        )
    await check_webhook_url(url, service.settings.webhook_allow_private)


async def submission_of(
    service: TranscriptionService,
    fields: JobFields,
    upload: Upload | None,
    owner: str,
    key: str | None,
    terms: tuple[Term, ...],
) -> Submission:
    """The submission that a request means. Raises InvalidInput and UnknownModel."""
    await check_webhook(service, fields.webhook_url)
    options = fields.options_with(terms)
    if options.diarize:
        service.media.speaker_models.check()
    url = (fields.url or None) if isinstance(fields, JobSource) else None
    model = service.fleet.catalogue.resolve(fields.model.strip(), options.task, options.language)
    filename = (upload.filename if upload else "") or base_name((fields.filename or "").encode())
    fingerprint = {  # the same for requests that mean the same job
        "content": upload.sha256 if upload else url,
        "filename": filename,
        "model": model,
        # Without those left at their defaults: a retry remains the same to a version with more options.
        "options": fields.options.model_dump(mode="json", exclude_defaults=True),
        "webhook_url": fields.webhook_url,
    }
    # As the request names them: the list of its owner may have changed since.
    of_terms = {"terms": fields.terms, "terms_as_hotwords": fields.terms_as_hotwords}
    details: dict[str, Any] = {"title": fields.title, "notes": fields.notes, "tags": tuple(fields.tags)}
    fingerprint |= {name: value for name, value in (of_terms | details).items() if value}
    if isinstance(fields, KnownSpeakerFields) and fields.known_speaker_names:
        fingerprint["known_speakers"] = [fields.known_speaker_names, fields.known_speaker_references]
    return Submission(
        filename=filename,
        file=upload.path.name if upload else None,
        size=upload.size if upload else None,
        sha256=upload.sha256 if upload else None,
        url=url,
        model=model,
        options=options,
        webhook_url=fields.webhook_url,
        owner=owner,
        idempotency_key=key,
        request_id=current_work().request_id,
        traceparent=traces.traceparent(),
        title=fields.title,
        notes=fields.notes,
        tags=tuple(fields.tags),
        title_from_text=fields.title_from_text,
        fingerprint=hashlib.sha256(json.dumps(fingerprint, sort_keys=True).encode()).hexdigest(),
    )


def _source(field: str) -> dict[str, Any]:
    """The schema of a `JobSource` with one of its sources: generated clients know no choice of fields."""
    schema = JobSource.model_json_schema(by_alias=False)
    del schema["properties"]["upload" if field == "url" else "url"], schema["properties"][field]["default"]
    return schema | {"title": f"JobFrom{field.title()}", "required": [field]}


def submission_body() -> dict[str, Any]:
    """OpenAPI's description of the bodies that `submit_job` accepts."""
    form = request_body(JobForm)["requestBody"]["content"]
    types = ("application/octet-stream", "audio/*", "video/*")
    source = {"application/json": {"schema": {"oneOf": [_source("url"), _source("upload")]}}}
    return {"requestBody": {"required": True, "content": form | dict.fromkeys(types, BINARY) | source}}
