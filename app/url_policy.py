"""Which URLs the service may contact: `workers.addresses` for async code, with the service's errors."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from app.errors import InvalidInput
from workers import addresses
from workers.addresses import AddressRefused, Resolver

RESOLVE_TIMEOUT_S = 3.0

# Names from clients can be slow to resolve; this keeps the event loop's default threads free.
_threads = ThreadPoolExecutor(8, thread_name_prefix="resolve")


def check_url(url: str, param: str) -> tuple[str, int]:
    """Return host and port of an http or https URL.

    Raises InvalidInput if the URL is malformed or its host is not allowed.
    """
    try:
        return addresses.check_url(url)
    except AddressRefused as refusal:
        raise _refused(refusal, param) from None


async def check_destination(
    url: str, param: str, resolver: Resolver = socket.getaddrinfo, timeout_s: float = RESOLVE_TIMEOUT_S
) -> None:
    """Like `check_url`; also raises InvalidInput if the host resolves to a private address.

    A name that does not resolve within `timeout_s` passes: the connection checks the address again.
    """
    host, port = check_url(url, param)
    with suppress(OSError, TimeoutError):
        try:
            async with asyncio.timeout(timeout_s):
                await resolve(host, port, resolver)
        except AddressRefused as refusal:
            raise _refused(refusal, param) from None


async def resolve(host: str, port: int, resolver: Resolver = socket.getaddrinfo) -> tuple[str, ...]:
    """`workers.addresses.resolve` in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads, addresses.resolve, host, port, resolver)


def _refused(refusal: AddressRefused, param: str) -> InvalidInput:
    return InvalidInput(str(refusal), param=param, code="url_refused")
