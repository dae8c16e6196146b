"""Sends a webhook: a single POST to an address that was checked."""

import asyncio
import socket
from collections.abc import Iterable, Mapping
from typing import Any

import httpcore
import httpx

from app.errors import InvalidInput
from app.url_policy import check_destination, resolve
from workers.addresses import AddressRefused, Resolver, split_url

PARAM = "webhook_url"
TIMEOUT_S = 15.0  # for a POST, from the name's resolution to the status
CONNECT_TIMEOUT_S = 5.0  # for each address


async def check_webhook_url(url: str, allow_private: bool, resolver: Resolver = socket.getaddrinfo) -> None:
    """Raise InvalidInput if the service sends no webhooks to a URL.

    With `allow_private`, any host is allowed. The client checks the host again at each POST.
    """
    if not allow_private:
        await check_destination(url, PARAM, resolver)
        return
    try:
        split_url(url)
    except AddressRefused as refusal:
        raise InvalidInput(str(refusal), param=PARAM, code="url_refused") from None


class PublicBackend(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only. It connects to the addresses that it resolved and checked itself."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend, resolver: Resolver) -> None:
        self._inner = inner
        self._resolver = resolver

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's signature)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection. The certificate is still checked against `host`. Raises ConnectError."""
        try:
            addresses = await resolve(host, port, self._resolver)
        except (AddressRefused, OSError) as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
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
        inner = backend or httpcore.AnyIOBackend()
        self._backend = inner if allow_private else PublicBackend(inner, resolver)
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """Send a POST and return the status, without reading the body. Raises OSError if it fails."""
        parsed = httpx.URL(url)
        target = httpcore.URL(
            scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
        )
        lines = [
            (b"host", parsed.netloc),
            *((name.encode(), text.encode()) for name, text in headers.items()),
        ]
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                (await self._connections()).stream("POST", target, headers=lines, content=body) as response,
            ):
                return response.status
        except TimeoutError:
            raise OSError(f"no answer within {TIMEOUT_S:.0f} s") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise OSError(str(error) or type(error).__name__) from error

    async def _connections(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            # Most services send no webhook, and need no certificates.
            context = await asyncio.to_thread(httpx.create_ssl_context)
            self._pool = self._pool or httpcore.AsyncConnectionPool(
                ssl_context=context,
                network_backend=self._backend,
                # A reused connection would lead to an address that was checked long ago.
                max_keepalive_connections=0,
            )
        return self._pool

    async def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            await self._pool.aclose()
