"""Where clients may send the service: what `workers.addresses` says, for the event loop and its errors."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from app.errors import InvalidInput
from workers import addresses
from workers.addresses import AddressRefused, Resolver

RESOLVE_TIMEOUT_S = 3.0

# A resolver may take its time over names that strangers make up; the loop's own threads are not to wait.
_threads = ThreadPoolExecutor(8, thread_name_prefix="resolve")


def check_url(url: str, param: str) -> tuple[str, int]:
    """The host and the port of a plain http or https URL of a host that may be contacted.

    Raises InvalidInput for all else.
    """
    try:
        return addresses.check_url(url)
    except AddressRefused as refusal:
        raise _refused(refusal, param) from None


async def check_destination(
    url: str, param: str, resolver: Resolver = socket.getaddrinfo, timeout_s: float = RESOLVE_TIMEOUT_S
) -> None:
    """Raise InvalidInput like `check_url`, and where the host's name leads into a private network.

    A name that is not found, or not soon enough, passes: whoever connects resolves it once more.
    """
    host, port = check_url(url, param)
    with suppress(OSError, TimeoutError):
        try:
            async with asyncio.timeout(timeout_s):
                await resolve(host, port, resolver)
        except AddressRefused as refusal:
            raise _refused(refusal, param) from None


async def resolve(host: str, port: int, resolver: Resolver = socket.getaddrinfo) -> tuple[str, ...]:
    """See `workers.addresses.resolve`."""
    return await asyncio.get_running_loop().run_in_executor(_threads, addresses.resolve, host, port, resolver)


def _refused(refusal: AddressRefused, param: str) -> InvalidInput:
    return InvalidInput(str(refusal), param=param, code="url_refused")
