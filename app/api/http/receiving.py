"""Receives recordings, for all endpoints."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from app.common.errors import TooLarge, UnsupportedContentType, UploadStalled
from app.intake.limits import Admission, Limiter
from app.intake.uploads import Fields, Form, Upload, receive_form, receive_raw
from app.server.requests import client_of
from app.telemetry import traces

if TYPE_CHECKING:
    from app.recording.service import TranscriptionService

MAX_DOCUMENT_BYTES = 1 << 16
STEADY_BYTES = 1 << 14  # an upload stalls if it sends fewer bytes within the stall timeout
MAX_UPLOAD_S = 86400.0  # a steady upload that is slower keeps others out
DOCUMENT_S = 30.0  # a document must arrive in this time, and another second for each of these bytes
DOCUMENT_BYTES_PER_S = 1 << 15


async def receive(
    service: "TranscriptionService",
    request: Request,
    limiter: Limiter,
    *,
    file_field: str = "file",
    before_file: Callable[[Fields], object] | None = None,
    durable: bool = False,
    large_fields: Collection[str] = frozenset(),
) -> Form:
    """The multipart body, with its file on disk. Counts for `limiter` meanwhile.

    Raises as `Limiter.hold`, `receive_form` and `with_stall_timeout` do.
    """
    settings = service.settings
    with limiter.hold(client_of(request)), traces.span("receive upload") as span:
        form = await receive_form(
            with_stall_timeout(request, settings.upload_stall_s),
            request.headers.get("content-type", ""),
            service.media.folder.uploads,
            service.media.folder.disk,
            settings.max_upload_bytes,
            content_length=declared_length(request),
            file_field=file_field,
            before_file=before_file,
            durable=durable,
            large_fields=large_fields,
        )
        span.set_attribute("whisperfleet.bytes", form.file.size if form.file else 0)
        return form


@asynccontextmanager
async def received(
    service: "TranscriptionService", admission: Admission, request: Request, **options: Any
) -> AsyncIterator[Form]:
    """The multipart body of a synchronous request, which is admitted before the body.

    Removes the file at the end. `options` are those of `receive`. Raises as that and `Limiter.hold` do.
    """
    with admission.requests.hold(client_of(request)):
        form = await receive(service, request, admission.uploads, **options)
        try:
            yield form
        finally:
            await asyncio.to_thread(form.remove)


async def receive_body(
    service: "TranscriptionService", request: Request, limiter: Limiter, filename: str
) -> Upload:
    """A body that is the recording itself, on disk. Counts for `limiter` meanwhile.

    Raises as `Limiter.hold`, `receive_raw` and `with_stall_timeout` do.
    """
    settings = service.settings
    with limiter.hold(client_of(request)), traces.span("receive upload") as span:
        upload = await receive_raw(
            with_stall_timeout(request, settings.upload_stall_s),
            filename,
            service.media.folder.uploads,
            service.media.folder.disk,
            settings.max_upload_bytes,
            content_length=declared_length(request),
        )
        span.set_attribute("whisperfleet.bytes", upload.size)
        return upload


async def receive_document(
    service: "TranscriptionService", request: Request, max_bytes: int = MAX_DOCUMENT_BYTES
) -> bytes:
    """A body in memory. Raises TooLarge, if possible before it is read, and as `with_stall_timeout` does."""
    too_large = TooLarge(
        f"The JSON document is over {max_bytes} bytes, the most that this path takes. Send a smaller one."
    )
    if (declared_length(request) or 0) > max_bytes:
        raise too_large
    body = bytearray()
    chunks = with_stall_timeout(
        request, service.settings.upload_stall_s, max_s=DOCUMENT_S, bytes_per_s=DOCUMENT_BYTES_PER_S
    )
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise too_large
    return bytes(body)


def media_type(request: Request) -> str:
    """The media type of a body, without parameters; empty if the client names none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_json(request: Request, *others: str) -> None:
    """Raise UnsupportedContentType if a body is not JSON. To be called before the body is read.

    `others`: further types that the path takes.
    """
    if media_type(request) not in ("application/json", *others):
        raise UnsupportedContentType(
            "This path takes application/json. Send a JSON document, and this type as the `Content-Type`."
        )


def declared_length(request: Request) -> int | None:
    """The size of a body, if the client declares it."""
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isdecimal() else None


async def with_stall_timeout(
    request: Request, stall_s: float, *, max_s: float | None = None, bytes_per_s: float = math.inf
) -> AsyncIterator[bytes]:
    """The chunks of a body.

    Raises UploadStalled if `STEADY_BYTES` take longer than `stall_s` to arrive, or all of the body longer
    than `max_s` (by default `MAX_UPLOAD_S`) and the time that it takes at `bytes_per_s`.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    deadline = began + (MAX_UPLOAD_S if max_s is None else max_s)
    chunks = aiter(request.stream())
    remaining_s, received = stall_s, 0
    while True:
        start = loop.time()
        try:
            async with asyncio.timeout_at(min(start + remaining_s, deadline)):
                chunk = await anext(chunks, None)
        except TimeoutError:
            if loop.time() >= deadline:
                raise UploadStalled(
                    f"The body was not complete after {deadline - began:.0f} s.",
                    "Send it over a faster connection, a recording perhaps in parts.",
                    code="upload_too_slow",
                ) from None
            raise UploadStalled(
                f"The upload stalled: next to nothing arrived for {stall_s:g} s.",
                "Send it again.",
                code="upload_stalled",
            ) from None
        if chunk is None:
            return
        received += len(chunk)
        deadline += len(chunk) / bytes_per_s
        # Only waiting for the client counts: a slow disk is not its fault.
        remaining_s -= loop.time() - start
        if received >= STEADY_BYTES:
            remaining_s, received = stall_s, 0
        yield chunk
