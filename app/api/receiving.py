"""How every endpoint that takes a recording receives it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import Request

from app.audio.uploads import Fields, Form, receive_form

if TYPE_CHECKING:
    from app.service import Service

BYTES_PER_MB = 10**6


async def receive(
    service: "Service",
    request: Request,
    *,
    file_field: str = "file",
    before_file: Callable[[Fields], None] | None = None,
    raw_pcm: bool = False,
) -> Form:
    """The multipart body of a request, its file on disk. Raises what `receive_form` raises."""
    declared = request.headers.get("content-length", "")
    return await receive_form(
        request.stream(),
        request.headers.get("content-type", ""),
        service.settings.uploads_dir,
        service.settings.max_upload_mb * BYTES_PER_MB,
        content_length=int(declared) if declared.isdecimal() else None,
        file_field=file_field,
        before_file=before_file,
        raw_pcm=raw_pcm,
    )
