"""A client of a running service, for the commands that have `--server`."""

import asyncio
import random
import time
from types import TracebackType
from typing import Any, Self

import httpx

from app.errors import WhisperfleetError
from app.service_answers import (
    cause,
    error_message,
    key_headers,
    public_name,
    retry_after_s,
    service_url,
)

GIVE_UP_S = 600.0  # a service that was there, and does not answer for so long, does not come back
TRANSIENT = (408, 425, 429, 500, 502, 503, 504)  # statuses after which a request is repeated
_TIMEOUT = httpx.Timeout(30, read=120, pool=None)
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0


class ServiceClient:
    """A service by its address, and a key for it."""

    def __init__(
        self,
        server: str,
        api_key: str | None,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        give_up_s: float | None = None,
    ) -> None:
        """`give_up_s`: how long a request to a service that does not answer is repeated; None: `GIVE_UP_S`.

        Raises `InvalidInput` for a malformed address or key.
        """
        url = service_url(server)
        headers = key_headers(api_key)
        self.name = public_name(url)
        self._give_up_s = GIVE_UP_S if give_up_s is None else give_up_s
        self._client = httpx.AsyncClient(base_url=url, headers=headers, timeout=_TIMEOUT, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The answer to a request, which is repeated if need be. `make` makes the form of each attempt.

        Waits for a service that restarts or has a full queue. Raises WhisperfleetError when it gives up.
        """
        make = request.pop("make", dict)
        pause = _FIRST_PAUSE_S
        failing_since: float | None = None
        while True:
            wait = pause
            try:
                answer = await self._client.request(method, path, **request, **make())
            except httpx.LocalProtocolError as error:
                raise WhisperfleetError(f"the file has changed while it was sent: {error}") from None
            except httpx.TransportError as error:
                reason = f"{self.name} cannot be reached: {cause(error)}"
            else:
                if answer.status_code not in TRANSIENT:
                    return answer
                reason = error_message(answer)
                wait = max(pause, retry_after_s(answer))
                if answer.status_code == 429:
                    failing_since = None  # it is there, and its queue is full
            now = time.monotonic()
            failing_since = failing_since or now
            if now - failing_since > self._give_up_s:
                raise WhisperfleetError(reason)
            await asyncio.sleep(wait * random.uniform(1, 1.2))
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def check_access(name: str, answer: httpx.Response) -> None:
    """Raise WhisperfleetError if an answer of the service `name` sends elsewhere, or refuses the key."""
    if answer.is_redirect:
        raise WhisperfleetError(
            f"{name} sends to {answer.headers.get('location')}: name that address with --server"
        )
    if answer.status_code in (401, 403):
        raise WhisperfleetError(f"{error_message(answer)} Give the key with --api-key or WHISPER_API_KEY.")
