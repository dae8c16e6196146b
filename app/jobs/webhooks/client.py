"""Sends a webhook: a single POST to an address that was checked."""

import asyncio
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import httpcore
import httpx

from app.common.concurrency import in_daemon_thread
from app.common.errors import InvalidInput
from app.intake.url_policy import check_destination, refusing
from workers.addresses import Resolver, look_up, resolve, split_url

PARAM = "webhook_url"
TIMEOUT_S = 15.0  # for a POST until its status, and before it for the name's resolution
CONNECT_TIMEOUT_S = 5.0  # for each address


async def check_webhook_url(url: str, allow_private: bool, resolver: Resolver = socket.getaddrinfo) -> None:
    """Raise InvalidInput if the service sends no webhooks to a URL.

    With `allow_private`, any host is allowed. The client checks the host again at each POST.
    """
    with refusing(PARAM):
        split_url(url)
    if allow_private:
        return
    try:
        await check_destination(url, PARAM, resolver)
    except InvalidInput as refusal:
        message = f"{refusal} WHISPER_WEBHOOK_ALLOW_PRIVATE=1 allows private addresses."
        raise InvalidInput(message, param=PARAM, code=refusal.code) from None


class ResolvedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were resolved and checked, whatever the name of the host is."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend, addresses: Sequence[str]) -> None:
        self._inner = inner
        self._addresses = addresses

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's signature)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection. The certificate is still checked against `host`. Raises ConnectError."""
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._addresses:
            try:
                return await self._inner.connect_tcp(
                    address, port, CONNECT_TIMEOUT_S, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class WebhookClient:
    """Sends webhooks. Follows no redirects, reuses no connections, and uses no proxy."""

    def __init__(
        self,
        allow_private: bool,
        resolver: Resolver = socket.getaddrinfo,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._look_up = partial(look_up if allow_private else resolve, resolver=resolver)
        self._backend = backend or httpcore.AnyIOBackend()
        self._ssl_context: ssl.SSLContext | None = None

    async def resolve(self, url: str) -> tuple[str, ...]:
        """The addresses of a receiver, checked. Raises AddressRefused and OSError.

        In a thread of its own: a name whose server does not answer must not delay others.
        """
        host, port = split_url(url)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await in_daemon_thread("resolve", partial(self._look_up, host, port))
        except TimeoutError:
            raise OSError(f"the address was not found within {TIMEOUT_S:.0f} s") from None

    async def post(self, url: str, addresses: Sequence[str], headers: Mapping[str, str], body: bytes) -> int:
        """Send a POST to addresses that `resolve` has just found, of which the first one that answers counts.

        Returns the status, without reading the body. Raises OSError if it fails.
        """
        parsed = httpx.URL(url)
        target = httpcore.URL(
            scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
        )
        lines = [
            (b"host", parsed.netloc),
            *((name.encode(), text.encode()) for name, text in headers.items()),
        ]
        pool = httpcore.AsyncConnectionPool(
            ssl_context=await self._context(),
            network_backend=ResolvedBackend(self._backend, addresses),
            # A reused connection would lead to an address that was checked long ago.
            max_keepalive_connections=0,
        )
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                pool,
                pool.stream("POST", target, headers=lines, content=body) as response,
            ):
                return response.status
        except TimeoutError:
            raise OSError(f"no answer within {TIMEOUT_S:.0f} s") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise OSError(str(error) or type(error).__name__) from error

    async def _context(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            # Most services send no webhook, and need no certificates.
            self._ssl_context = await asyncio.to_thread(httpx.create_ssl_context)
        return self._ssl_context
