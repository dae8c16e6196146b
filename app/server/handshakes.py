"""WebSockets. Their handshake is a GET, and meets what a GET meets: hosts, keys, limits, log and counts."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from urllib.parse import unquote_to_bytes

import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.common.errors import STOPPING, InvalidInput

SWITCHING_PROTOCOLS = 101
WEB_SOCKET = "web_socket"  # in the scope of a handshake
KEY_PREFIX = "openai-insecure-api-key."  # of the subprotocol by which browsers send a key: OpenAI's
BY_CLIENT = (1000, 1005)  # codes of a client that wants no more
# Why a WebSocket is closed. After the first, OpenAI's clients do not open another one.
POLICY_VIOLATION, INTERNAL_ERROR, SERVICE_RESTART = 1008, 1011, 1012
CLOSING = "closing"  # in the state of a handshake that is cancelled: the code and the reason
MAX_REASON_BYTES = 123  # of a close frame

_SCHEMES = {"ws": "http", "wss": "https"}
_AUTHORIZATION, _PROTOCOLS = b"authorization", b"sec-websocket-protocol"

log = structlog.get_logger("whisperfleet.api")


class WebSocket:
    """One that was accepted. Messages of the client are JSON, as bytes; those to it are text."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def receive(self) -> bytes | None:
        """The next message; None if the client has closed it. Raises OSError if the connection broke."""
        message = await self._receive()
        if message["type"] == "websocket.receive":
            return bytes(message["bytes"])
        # uvicorn has a reason, which may be empty, only if there was a close frame.
        if "reason" in message and message["code"] in BY_CLIENT:
            return None
        raise ConnectionResetError

    async def send(self, text: str) -> None:
        """Send a message. Waits while the client does not read those before. Raises OSError, as `receive`."""
        await self._send({"type": "websocket.send", "text": text})

    async def close(self, code: int, reason: str) -> None:
        """Close it, unless it is closed."""
        short = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        with suppress(OSError):
            await self._send({"type": "websocket.close", "code": code, "reason": short})


class Handshakes:
    """The application of WebSockets: makes a GET of each handshake for `app`, with all its middleware.

    A response with status 101 accepts it, see `UpgradeResponse`; any other refuses it. A key in the
    subprotocols becomes an Authorization header, so nothing else sees it there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key, protocols = split_key(scope["subprotocols"])
        has_body = True

        async def receive_of_get() -> Message:
            nonlocal has_body
            if has_body:
                has_body = False
                return {"type": "http.request", "body": b"", "more_body": False}
            while (await receive())["type"] != "websocket.disconnect":
                pass
            return {"type": "http.disconnect"}

        async def send_of_get(message: Message) -> None:
            if message.get("status") == SWITCHING_PROTOCOLS:
                await send({"type": "websocket.accept", "headers": message["headers"]})
            else:
                await send({**message, "type": f"websocket.{message['type']}"})

        await receive()  # the handshake
        get = {
            **scope,
            "type": "http",
            "method": "GET",
            "scheme": _SCHEMES[scope["scheme"]],
            "headers": _headers(scope["headers"], key),
            "subprotocols": protocols,
            WEB_SOCKET: WebSocket(receive, send),
        }
        await self.app(get, receive_of_get, send_of_get)


class UpgradeResponse(Response):
    """Accepts a handshake, and has a WebSocket then. Refuses subprotocols other than `protocol`."""

    def __init__(self, scope: Scope, protocol: str) -> None:
        """Raises InvalidInput if the client offers other subprotocols alone."""
        super().__init__(status_code=SWITCHING_PROTOCOLS)
        offered = scope["subprotocols"]
        if offered and protocol not in offered:
            raise InvalidInput(
                f"The service speaks the subprotocol `{protocol}`, which the client does not offer. "
                "Offer it, or none.",
                param="Sec-WebSocket-Protocol",
                code="unknown_subprotocol",
            )
        self.raw_headers = [(_PROTOCOLS, protocol.encode())] if offered else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": list(self.raw_headers)}
        )
        web_socket: WebSocket = scope[WEB_SOCKET]
        try:
            await self.run(web_socket)
        except asyncio.CancelledError:  # by `Authentication.end`, or at the deadline of a shutdown
            await web_socket.close(*scope["state"].get(CLOSING, (SERVICE_RESTART, STOPPING)))
        except OSError:  # the client is gone
            pass
        except Exception:
            request_id = scope["state"]["request_id"]
            log.exception("unexpected error", path=scope["path"])
            await web_socket.close(
                INTERNAL_ERROR, f"The service failed unexpectedly; its log has {request_id}."
            )

    async def run(self, web_socket: WebSocket) -> None:
        """What happens on the WebSocket, until it is closed."""
        raise NotImplementedError


def is_handshake(scope: Scope) -> bool:
    """Whether a request opens a WebSocket."""
    return WEB_SOCKET in scope


def split_key(offered: Sequence[str]) -> tuple[bytes | None, list[str]]:
    """The key among subprotocols, if there is one, and the other subprotocols.

    The key is percent-encoded: browsers send neither `/` nor `=` in a subprotocol, nor anything beyond ASCII.
    """
    raw = [name.removeprefix(KEY_PREFIX) for name in offered if name.startswith(KEY_PREFIX)]
    keys = [unquote_to_bytes(key.encode(errors="surrogateescape")) for key in raw]
    others = [name for name in offered if not name.startswith(KEY_PREFIX)]
    return (keys[0] if keys else None), others


def _headers(headers: Iterable[tuple[bytes, bytes]], key: bytes | None) -> list[tuple[bytes, bytes]]:
    """Those of a handshake, with its key where a request has it, and without its subprotocols."""
    others = [(name, value) for name, value in headers if name != _PROTOCOLS]
    if key is not None and all(name != _AUTHORIZATION for name, _ in others):
        others.append((_AUTHORIZATION, b"Bearer " + key))
    return others
