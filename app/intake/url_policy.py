"""The URLs that the service may contact: `workers.addresses` for async code, with the service's errors."""

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from app.common.errors import InvalidInput
from workers.addresses import AddressRefused, Resolver, check_url, resolve

RESOLVE_TIMEOUT_S = 3.0

# Names from clients can be slow to resolve; this keeps the event loop's default threads free.
_threads = ThreadPoolExecutor(8, thread_name_prefix="resolve")


@contextmanager
def refusing(param: str) -> Iterator[None]:
    """Raise InvalidInput for the field `param` if an address in it is refused."""
    try:
        yield
    except AddressRefused as refusal:
        raise InvalidInput(str(refusal), param=param, code="url_refused") from None


async def check_destination(url: str, param: str, resolver: Resolver = socket.getaddrinfo) -> None:
    """Raise InvalidInput if a URL is malformed, or its host is not allowed or resolves to a private address.

    A name that does not resolve within `RESOLVE_TIMEOUT_S` passes: the connection checks the address again.
    """
    loop = asyncio.get_running_loop()
    with refusing(param), suppress(OSError, TimeoutError):
        host, port = check_url(url)
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            await loop.run_in_executor(_threads, resolve, host, port, resolver)
