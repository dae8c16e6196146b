"""The headers of tus 1.0, the protocol of resumable uploads (https://tus.io/protocols/resumable-upload)."""

import base64
import binascii
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.root_path import route_path
from app.errors import InvalidInput, UnsupportedTusVersion
from app.media.multipart import base_name
from app.media.partial_file import Checksum

PATH = "/v1/uploads"
VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,termination,expiration,checksum"
CHECKSUMS = {"sha1": 20, "md5": 16, "sha256": 32}  # bytes of a digest
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
    "tus-checksum-algorithm",
)


class TusHeaders:
    """ASGI middleware: gives every answer below `PATH` the version of the protocol, also each error.

    A POST can stand for another method, for clients that cannot send it (`X-HTTP-Method-Override`).
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_tus(route_path(scope)):
            await self.app(scope, receive, send)
            return
        meant = Headers(scope=scope).get("x-http-method-override", "").upper()
        if scope["method"] == "POST" and meant in ("PATCH", "DELETE"):
            scope = {**scope, "method": meant}

        async def send_with_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Tus-Resumable"] = VERSION
                if message["status"] == 412:
                    headers["Tus-Version"] = VERSION
            await send(message)

        await self.app(scope, receive, send_with_version)


class TusRoute(APIRoute):
    """A route that checks the version of the protocol before anything else. Raises UnsupportedTusVersion."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def check_and_handle(request: Request) -> Response:
            version = request.headers.get("tus-resumable")
            if version != VERSION and request.method != "OPTIONS":
                raise UnsupportedTusVersion(
                    f"This service speaks version {VERSION} of tus, and the request names "
                    f"{version[:20] if version else 'none'}. Send the header Tus-Resumable: {VERSION}.",
                    param="Tus-Resumable",
                )
            return await handle(request)

        return check_and_handle


def is_tus(path: str) -> bool:
    """Whether a path belongs to the protocol."""
    return path == PATH or path.startswith(f"{PATH}/")


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


def parse_checksum(header: str) -> Checksum:
    """The value of an `Upload-Checksum` header. Raises InvalidInput."""
    algorithm, _, text = header.strip().partition(" ")
    if algorithm not in CHECKSUMS:
        raise InvalidInput(
            f"Upload-Checksum names the algorithm {algorithm[:40]!r}. This service knows "
            f"{', '.join(CHECKSUMS)}.",
            param="Upload-Checksum",
            code="unknown_checksum_algorithm",
        )
    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != CHECKSUMS[algorithm]:
        raise InvalidInput(
            f"Upload-Checksum has no {algorithm} digest in base64. Send `{algorithm} DIGEST`.",
            param="Upload-Checksum",
        )
    return Checksum(algorithm, digest)


def _bad_metadata(fault: str) -> InvalidInput:
    return InvalidInput(
        f"Upload-Metadata is malformed: {fault}. Send pairs of a key and a value in base64, separated by "
        "commas.",
        param="Upload-Metadata",
    )
