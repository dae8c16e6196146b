"""The headers of tus 1.0, the protocol of resumable uploads (https://tus.io/protocols/resumable-upload)."""

import base64
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from app.common.errors import InvalidInput, UnsupportedTusVersion
from app.intake.multipart import base_name
from app.server.errors import TUS_VERSION

EXTENSIONS = "creation,creation-with-upload,termination,expiration"
PART_TYPE = "application/offset+octet-stream"
MAX_METADATA_CHARS = 4096
EXPOSED_HEADERS = (  # to web pages of other origins
    "location",
    "upload-offset",
    "upload-length",
    "upload-expires",
    "upload-metadata",
    "tus-resumable",
    "tus-version",
    "tus-extension",
    "tus-max-size",
)


class TusRoute(APIRoute):
    """A route that checks the version of the protocol before anything else.

    A POST can stand for another method, for clients that cannot send it (`X-HTTP-Method-Override`).
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(_as_meant(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().handle(_as_meant(scope), receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def check_and_handle(request: Request) -> Response:
            if request.method != "OPTIONS":
                _check_headers(request.headers)
            response = await handle(request)
            response.headers["Tus-Resumable"] = TUS_VERSION  # `ErrorResponse` has it, too
            return response

        return check_and_handle


def _as_meant(scope: Scope) -> Scope:
    meant = Headers(scope=scope).get("x-http-method-override", "").upper()
    is_other = scope["method"] == "POST" and meant in ("PATCH", "DELETE")
    return {**scope, "method": meant} if is_other else scope


def _check_headers(headers: Headers) -> None:
    """Raise UnsupportedTusVersion and InvalidInput."""
    version = headers.get("tus-resumable")
    if version != TUS_VERSION:
        raise UnsupportedTusVersion(
            f"This service speaks version {TUS_VERSION} of tus, and the request names "
            f"{version[:20] if version else 'none'}. Send the header Tus-Resumable: {TUS_VERSION}.",
            param="Tus-Resumable",
        )
    if "upload-checksum" in headers:
        raise InvalidInput(
            "This service compares no checksums. Send the part without Upload-Checksum.",
            param="Upload-Checksum",
        )


def parse_metadata(header: str) -> Mapping[str, bytes]:
    """The values in an `Upload-Metadata` header. Raises InvalidInput."""
    values: dict[str, bytes] = {}
    if len(header) > MAX_METADATA_CHARS:
        raise _bad_metadata(f"it is longer than {MAX_METADATA_CHARS} characters")
    for pair in header.split(",") if header.strip() else ():
        key, _, value = pair.strip().partition(" ")
        if not key or not key.isascii() or not key.isprintable():
            raise _bad_metadata("a key is empty or not ASCII")
        if key in values:
            raise _bad_metadata(f"the key {key[:40]!r} is there twice")
        try:
            values[key] = base64.b64decode(value, validate=True)
        except ValueError:
            raise _bad_metadata(f"the value of {key[:40]!r} is not base64") from None
    return values


def file_name(metadata: str) -> str:
    """The file's name in an `Upload-Metadata` header, without folders; may be empty. Raises InvalidInput."""
    return base_name(parse_metadata(metadata).get("filename", b""))


def _bad_metadata(fault: str) -> InvalidInput:
    return InvalidInput(
        f"Upload-Metadata is malformed: {fault}. Send pairs of a key and a value in base64, separated by "
        "commas.",
        param="Upload-Metadata",
    )
