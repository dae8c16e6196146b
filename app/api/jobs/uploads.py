"""Resumable uploads: a client sends a recording in parts, and goes on after a cut. A job can use it then."""

from collections.abc import AsyncIterator
from contextlib import nullcontext
from email.utils import formatdate
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from starlette.responses import Response

from app.api.http.receiving import declared_length, media_type, with_stall_timeout
from app.api.jobs.tus import EXTENSIONS, PART_TYPE, TusRoute, file_name
from app.common.concurrency import run_shielded
from app.common.errors import InvalidInput, UnsupportedContentType, UploadConflict, UploadStalled
from app.common.options import WHOLE
from app.intake.file_sink import too_large
from app.intake.limits import Admission
from app.intake.resumable_rows import ResumableUpload
from app.jobs.service import JobService
from app.recording.service import TranscriptionService
from app.server.errors import TUS_PATH, TUS_VERSION, documented_errors
from app.server.requests import client_of, public_path

PART: dict[str, Any] = {"content": {PART_TYPE: {"schema": {"type": "string", "format": "binary"}}}}

Metadata = Annotated[
    str,
    Header(
        description="Pairs of a key and a value in base64, separated by commas; `filename` names the file."
    ),
]


async def _version(
    tus_resumable: Annotated[str, Header(json_schema_extra={"enum": [TUS_VERSION]})],
) -> None:
    """Document the header, which `TusRoute` checks."""


def upload_routes(service: TranscriptionService, jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix=TUS_PATH, tags=["uploads"], route_class=TusRoute)
    versioned = [Depends(_version)]
    uploads = jobs.uploads
    max_bytes = service.settings.max_upload_bytes

    @router.options(
        "", summary="What the service offers of tus", status_code=204, responses=documented_errors(401)
    )
    async def describe_uploads() -> Response:
        headers = {"Tus-Version": TUS_VERSION, "Tus-Max-Size": str(max_bytes), "Tus-Extension": EXTENSIONS}
        return Response(status_code=204, headers=headers)

    @router.post(
        "",
        summary="Begin a resumable upload",
        status_code=201,
        responses={
            201: {"description": "Its address is the Location"},
            **documented_errors(400, 401, 412, 413, 415, 429, 503, 507),
        },
        response_class=Response,
        dependencies=versioned,
        openapi_extra={"requestBody": PART},
    )
    async def create_upload(
        request: Request,
        upload_length: Annotated[
            int,
            Header(ge=0, description="Size of the file (bytes).", json_schema_extra={"minimum": 1}),
            WHOLE,
        ],
        upload_metadata: Metadata = "",
        upload_concat: Annotated[str, Header(include_in_schema=False)] = "",
    ) -> Response:
        """The body may be the first part of the file, or all of it."""
        if upload_concat:
            raise InvalidInput("This service joins no uploads. Send the file as one.", param="Upload-Concat")
        if not upload_length:
            raise InvalidInput(
                "The file is empty (0 bytes): there is nothing to transcribe. Choose another one.",
                param="Upload-Length",
                code="empty_file",
            )
        if upload_length > max_bytes:
            raise too_large(max_bytes, "Upload-Length")
        filename = file_name(upload_metadata)
        has_part = "transfer-encoding" in request.headers or declared_length(request) not in (None, 0)
        if has_part:
            _check_type(request)
        owner = client_of(request).owner
        service.budgets.check(owner)
        with admission.uploads.hold(client_of(request)) if has_part else nullcontext():
            upload = await uploads.create(owner, upload_length, filename, upload_metadata.strip())
            received = 0
            if has_part:
                try:
                    async with uploads.lock(owner, upload.id) as (upload, file):
                        length = declared_length(request)
                        upload, received = await uploads.append(upload, file, 0, chunks(request), length)
                except BaseException:  # the client does not know where to go on
                    await run_shielded(uploads.delete(owner, upload.id))
                    raise
        location = public_path(request, f"{TUS_PATH}/{upload.id}")
        return Response(status_code=201, headers={"Location": location} | state(upload, received))

    @router.head(
        "/{upload_id}",
        summary="Ask how much of an upload has arrived",
        responses=documented_errors(400, 401, 404, 410, 412, 423, 503),
        response_class=Response,
        dependencies=versioned,
    )
    async def retrieve_upload(request: Request, upload_id: str) -> Response:
        """This ends a request that still sends a part of the upload: its connection may be dead."""
        upload, received = await uploads.offset(client_of(request).owner, upload_id)
        headers = state(upload, received) | {"Upload-Length": str(upload.size), "Cache-Control": "no-store"}
        if upload.metadata:
            headers["Upload-Metadata"] = upload.metadata
        return Response(headers=headers)

    @router.patch(
        "/{upload_id}",
        summary="Send a part of an upload",
        status_code=204,
        responses=documented_errors(400, 401, 404, 409, 410, 412, 413, 415, 423, 429, 503, 507),
        dependencies=versioned,
        openapi_extra={"requestBody": {"required": True, **PART}},
    )
    async def append_to_upload(
        request: Request,
        upload_id: str,
        upload_offset: Annotated[int, Header(ge=0, description="Where the part begins (bytes)."), WHOLE],
    ) -> Response:
        """What has arrived of an interrupted part stays."""
        _check_type(request)
        service.budgets.check(client_of(request).owner)
        async with uploads.lock(client_of(request).owner, upload_id) as (upload, file):
            with admission.uploads.hold(client_of(request)):
                length = declared_length(request)
                part = resumable(chunks(request))
                upload, received = await uploads.append(upload, file, upload_offset, part, length)
        return Response(status_code=204, headers=state(upload, received))

    @router.delete(
        "/{upload_id}",
        summary="Delete an upload; the recording of a job stays",
        status_code=204,
        responses=documented_errors(400, 401, 404, 410, 412, 423, 503, 507),
        dependencies=versioned,
    )
    async def delete_upload(request: Request, upload_id: str) -> Response:
        await uploads.delete(client_of(request).owner, upload_id)
        return Response(status_code=204)

    def chunks(request: Request) -> AsyncIterator[bytes]:
        return with_stall_timeout(request, service.settings.upload_stall_s)

    def state(upload: ResumableUpload, received: int) -> dict[str, str]:
        return {
            "Upload-Offset": str(received),
            "Upload-Expires": formatdate(jobs.clock.date(upload.expires_at), usegmt=True),
        }

    return router


async def resumable(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks of a part. Raises UploadConflict if it stalls: clients go on after 409, not after 400."""
    try:
        async for chunk in chunks:
            yield chunk
    except UploadStalled as error:
        raise UploadConflict(
            f"{error.fault} Ask for the upload's offset, and go on from there.", code=error.code
        ) from None


def _check_type(request: Request) -> None:
    content_type = media_type(request)
    if content_type != PART_TYPE:
        raise UnsupportedContentType(
            f"A part of an upload has the Content-Type {PART_TYPE}, not {content_type[:100] or 'none'}."
        )
