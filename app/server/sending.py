"""Responses that wait for slow clients: with little memory, and with a place for each."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext

from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.common.concurrency import run_shielded
from app.server.large_bodies import LARGE_BYTES, PART_BYTES, Compressed


class AdmittedResponse(Response):
    """Holds `admitted` and `held` until it is sent. If the first raises, the client gets its error."""

    admitted: AbstractContextManager[object] = nullcontext()
    held: AsyncExitStack | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self.admitted:
                await super().__call__(scope, receive, send)
        finally:
            await self.release()

    async def release(self) -> None:
        """Close `held`, although the client may have disconnected."""
        if self.held is not None:
            await run_shielded(self.held.aclose())


class CompressedResponse(AdmittedResponse, StreamingResponse):
    """Sends a compressed body part by part, as it was before. Can be pickled until it is sent."""

    def __init__(self, body: Compressed, like: Response) -> None:
        """With the status and the headers of `like`."""
        self._parts = body.parts
        self.status_code, self.background = like.status_code, None
        self.raw_headers = like.raw_headers
        self.headers["content-length"] = str(body.size)

    def plain_body(self) -> bytes:
        return b"".join(map(zlib.decompress, self._parts))

    @property
    async def body_iterator(self) -> AsyncGenerator[bytes]:  # type: ignore[override]
        for part in self._parts:
            yield zlib.decompress(part)
            await asyncio.sleep(0)  # a client that reads fast does not keep others waiting


def json_response(body: bytes | Compressed, headers: Mapping[str, str]) -> Response:
    """A JSON document that may be compressed."""
    if isinstance(body, bytes):
        return Response(body, media_type="application/json", headers=headers)
    return CompressedResponse(body, Response(media_type="application/json", headers=headers))


def compressed(make: Callable[..., Response], *arguments: object) -> Response:
    """The response that `make` returns, with its body compressed if it is large. For `Helper`."""
    response = make(*arguments)
    if len(response.body) <= LARGE_BYTES:
        return response
    return CompressedResponse(Compressed.of(response.body), response)


def plain_body(response: Response) -> bytes:
    """The body of a response as clients get it. Uses CPU time: call it in a thread."""
    if isinstance(response, CompressedResponse):
        return response.plain_body()
    return bytes(response.body)


async def sendable(response: Response, admitted: AbstractContextManager[object] | None = None) -> Response:
    """A response, in the form in which it may wait for its client.

    One with a large body is compressed, and holds `admitted` until it is sent.
    """
    if not isinstance(response, CompressedResponse):
        if len(response.body) <= LARGE_BYTES:
            return response
        response = await asyncio.to_thread(compressed, lambda: response)
    if admitted is not None and isinstance(response, CompressedResponse):
        response.admitted = admitted
    return response


async def send_in_parts(send: Send, message: Message) -> None:
    """Send a message. A large body goes in parts: the server would copy all of it and wait for nobody."""
    body = message.get("body", b"")
    if len(body) <= PART_BYTES:
        await send(message)
        return
    for start in range(0, len(body), PART_BYTES):
        end = start + PART_BYTES
        has_more = end < len(body) or message.get("more_body", False)
        await send({**message, "body": body[start:end], "more_body": has_more})
        await asyncio.sleep(0)  # as above
