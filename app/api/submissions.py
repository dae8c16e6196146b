"""How a job is handed in: a form, a bare recording or a URL become one submission."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastapi import Request
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.responses import JSONResponse, Response

from app import url_policy
from app.api.errors import invalid
from app.api.forms import JobFields, JobForm, JobUrl, check_early, parse, request_body
from app.api.receiving import receive, receive_body, receive_document
from app.errors import InvalidInput, UnsupportedContentType
from app.jobs.job import Job, Submission
from app.jobs.webhook_client import check_webhook_url
from app.media.multipart import base_name
from app.media.uploads import Fields, Upload
from app.shielding import run_shielded

if TYPE_CHECKING:
    from app.jobs.service import JobService
    from app.transcription.service import TranscriptionService

BINARY = {"schema": {"type": "string", "format": "binary"}}


async def submit_job(
    service: "TranscriptionService", jobs: "JobService", request: Request, query: JobFields, key: str | None
) -> Response:
    """Take a job on, by whatever kind of body. `query`: what the URL says; `key`: the idempotency key.

    Raises what is wrong with the request, QueueFull, and what the store raises; no file is left then.
    """
    owner = getattr(request.state, "owner", "")
    given = query.model_dump(exclude_unset=True, by_alias=True)
    await jobs.check_capacity(owner, key)  # before a long upload, not after it
    _check_model(service, [query.model])
    await _check_webhook(service, query.webhook_url)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    asked, upload = await _handed_in(service, request, kind, query, given)

    async def take_on() -> Job:
        kept = False
        try:
            submission = await _submission(service, asked, upload, owner, key)
            job, kept = await jobs.submit(submission)
        finally:
            if upload is not None and not kept:
                await asyncio.to_thread(upload.remove)
        return job

    job = await run_shielded(take_on())  # or the file of a job that was taken on might be removed
    headers = {"Location": f"{request.scope.get('root_path', '')}/v1/jobs/{job.id}"}
    return JSONResponse(job.public(time.time()), 202, headers)


async def _handed_in(
    service: "TranscriptionService", request: Request, kind: str, query: JobFields, given: Mapping[str, Any]
) -> tuple[JobFields, Upload | None]:
    """What a request says, and the file in it if there is one, by the type of its body."""
    if kind == "multipart/form-data":

        def check(fields: Fields) -> None:
            check_early(JobForm, fields, given)
            _check_model(service, [query.model, *fields.get("model", [])])

        form = await receive(service, request, before_file=check, durable=True)
        try:
            return parse(JobForm, form.fields, form.file, given), form.file
        except BaseException:
            await asyncio.to_thread(form.remove)
            raise
    if kind == "application/json":
        asked = _parse_url(await receive_document(service, request), given)
        if not service.settings.allow_urls:
            raise InvalidInput(
                "This service takes no URLs (WHISPER_ALLOW_URLS). Send the file itself.",
                param="url",
                code="urls_not_allowed",
            )
        await url_policy.check_destination(asked.url, param="url")
        return asked, None
    if kind == "application/octet-stream" or kind.startswith(("audio/", "video/")):
        return query, await receive_body(service, request, query.filename or "")
    raise UnsupportedContentType(
        "This path takes a form (multipart/form-data), the recording itself (audio/*, video/* or "
        'application/octet-stream), or application/json with a "url".'
    )


async def _check_webhook(service: "TranscriptionService", url: str | None) -> None:
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


def _check_model(service: "TranscriptionService", names: Sequence[str]) -> None:
    """Raise UnknownModel before a long upload, not after it. The last name that is none counts."""
    service.catalogue.resolve(next((name.strip() for name in reversed(names) if name.strip()), ""))


def _parse_url(body: bytes, given: Mapping[str, Any]) -> JobUrl:
    try:
        document = from_json(body)
    except ValueError as error:
        raise InvalidInput(f"The body is not valid JSON: {error}.") from None
    if not isinstance(document, dict):
        raise InvalidInput('The body must be a JSON object, such as {"url": "https://…"}.')
    try:
        return JobUrl.model_validate({**given, **document})
    except ValidationError as error:
        raise invalid(error.errors(include_url=False)) from None


async def _submission(
    service: "TranscriptionService", asked: JobFields, upload: Upload | None, owner: str, key: str | None
) -> Submission:
    await _check_webhook(service, asked.webhook_url)
    options = asked.options
    url = asked.url if isinstance(asked, JobUrl) else None
    model = service.catalogue.resolve(asked.model.strip(), options.task)
    filename = (upload.filename if upload else "") or base_name((asked.filename or "").encode())
    same = {
        "content": upload.sha256 if upload else url,
        "filename": filename,
        "model": model,
        "options": options.model_dump(mode="json"),
        "webhook_url": asked.webhook_url,
    }
    return Submission(
        filename=filename,
        file=upload.path.name if upload else None,
        size=upload.size if upload else None,
        sha256=upload.sha256 if upload else None,
        url=url,
        model=model,
        options=options,
        webhook_url=asked.webhook_url,
        owner=owner,
        idempotency_key=key,
        fingerprint=hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest(),
    )


def submission_body() -> dict[str, Any]:
    """OpenAPI's description of the bodies that `submit_job` takes."""
    form = request_body(JobForm)["requestBody"]["content"]
    kinds = ("application/octet-stream", "audio/*", "video/*")
    url = {"application/json": {"schema": JobUrl.model_json_schema(mode="validation")}}
    return {"requestBody": {"required": True, "content": form | dict.fromkeys(kinds, BINARY) | url}}
