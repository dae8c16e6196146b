"""Requests to a whisperfleet service, which are repeated until the service takes them."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from app.client.answers import (
    KeyTaken,
    NoAccess,
    NotNow,
    Refused,
    ServiceFault,
    Unreachable,
    error_code,
    error_message,
    json_object,
    retry_after_s,
)
from app.common.errors import FAILURE_CODES, InvalidInput

T = TypeVar("T")

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_LONGEST_WAIT_S = 60.0  # also if the service asks for more
_BUDGET_USED = "insufficient_quota"  # a 429 until the month is over
_FAULTS = 3  # of the service itself, after which it gets no more attempts


@dataclass(frozen=True, slots=True)
class Patience:
    """What a client waits for, and for how long."""

    statuses: frozenset[int]  # after which a request is repeated: they say nothing about the request
    give_up_s: float  # a service that was there, and does not answer for so long, does not come back
    timeout: httpx.Timeout  # of one attempt
    codes: frozenset[str] = frozenset()  # of errors, as `statuses`


COMMAND = Patience(
    frozenset({408, 425, 429, 502, 503, 504}), 600.0, httpx.Timeout(30.0, read=120.0, pool=None)
)
# A watch also waits for keys, proxies and networks that people put right; these answer with redirects and
# pages. A service that is busy answers it late, and one that is gone closes the connection.
WATCH = Patience(
    COMMAND.statuses.union(range(200, 400), {401, 403, 404, 405, 421, 507}),
    float("inf"),
    httpx.Timeout(600.0, connect=30.0),
    frozenset({*FAILURE_CODES.values(), _BUDGET_USED}),
)


class ServiceClient:
    """A service by its address and a key for it."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        patience: Patience,
        name: str = "",
        notify: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`http` is that of `connect`. `name` stands for the address in lines for people, which `notify` gets
        when the service does not take requests, and when it takes them again.
        """
        self.name = name or str(http.base_url.copy_with(userinfo=b""))  # without a password
        self._http = http
        self._patience = patience
        self._notify = notify
        self._reported: dict[bool, str] = {}  # why submissions wait, and why all requests do

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def send_once(self, method: str, path: str, **request: Any) -> httpx.Response:
        """The answer to a single request, whatever it is. Raises Unreachable if there is none."""
        try:
            return await self._http.request(method, path, **request)
        except httpx.HTTPError as error:
            raise Unreachable(self.name, error) from None

    async def request(self, method: str, path: str, *, has: str = "", **request: Any) -> httpx.Response:
        """The answer to a request, which is repeated if need be: as that of `attempt`.

        Raises NotNow when it gives up, and Refused, KeyTaken and NoAccess.
        """
        return await self.repeat(lambda: self.attempt(method, path, has=has, **request))

    async def attempt(self, method: str, path: str, *, has: str = "", **request: Any) -> httpx.Response:
        """The answer to a request, if it is a success or says that there is no such job.

        `has`: a member of the JSON object in a success. Raises NotNow, Refused, KeyTaken and NoAccess.
        """
        answer = await self.send_once(method, path, **request)
        if answer.is_success and (not has or has in json_object(answer)):
            return answer
        status, code, message = answer.status_code, error_code(answer), error_message(answer)
        if answer.is_success:  # of a proxy, or a page of the network
            message = f"the server answered {status} with something else"
        elif code == "job_not_found":
            return answer
        elif code == "idempotency_key_reused":
            raise KeyTaken(message)
        may_pass = status in self._patience.statuses and code != _BUDGET_USED
        if may_pass or code in self._patience.codes:
            raise NotNow(message, wait_s=retry_after_s(answer), busy=status == 429)
        if answer.is_server_error:
            raise ServiceFault(message)
        if answer.is_redirect:
            location = answer.headers.get("location")
            raise NoAccess(f"{self.name} sends to {location}: name that address with --server")
        if status in (401, 403):
            raise NoAccess(f"{message} Give the key with --api-key or WHISPER_API_KEY.")
        raise Refused(message, status=status, code=code)

    async def repeat(self, attempt: Callable[[], Awaitable[T]], *, submits: bool = False) -> T:
        """The result of the first attempt that does not raise NotNow.

        Waits for a service that restarts or has a full queue. Raises the NotNow with which it gives up, which
        it also does after several faults of the service: one that `submits` a recording is Refused then.
        """
        pause_s, faults = _FIRST_PAUSE_S, 0
        failing_since: float | None = None
        while True:
            try:
                result = await attempt()
            except NotNow as error:
                now = time.monotonic()
                if failing_since is None or error.busy:
                    failing_since = now
                if now - failing_since > self._patience.give_up_s:
                    raise
                faults += isinstance(error, ServiceFault)
                if faults == _FAULTS:
                    if submits:
                        raise Refused(error.message) from None
                    raise
                self.report_failure(error, submits=submits)
                wait_s = max(pause_s, error.wait_s) * random.uniform(1, 1.2)  # others wait as well
                await asyncio.sleep(min(wait_s, _LONGEST_WAIT_S))
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                self._report_answer(submits=submits)
                return result

    def report_failure(self, error: NotNow, *, submits: bool = False) -> None:
        """Notify of an error once for all requests that wait, as long as the reason is the same."""
        kind = error.notice.partition("(")[0]
        if kind not in self._reported.values():
            self._reported[submits] = kind
            self._notify(f"waiting for {self.name}: {error.notice}")

    def _report_answer(self, *, submits: bool) -> None:
        # A service that takes no jobs may well answer other requests.
        over = [self._reported.pop(kind) for kind in {False, submits} if kind in self._reported]
        if over:
            self._notify(f"{self.name} takes requests again")


def connect(
    server: str, api_key: str | None, patience: Patience, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """The HTTP client of a service. Raises InvalidInput for a malformed address or key."""
    return httpx.AsyncClient(
        base_url=service_url(server),
        headers=_key_headers(api_key),
        timeout=patience.timeout,
        transport=transport,
    )


def service_url(server: str) -> httpx.URL:
    """The address below which a service has its paths, with `/` at the end.

    Takes it as users have it: with or without a scheme, with `/v1` or a slash at the end, under a path of a
    proxy. Raises InvalidInput.
    """
    try:
        url = httpx.URL(server if "://" in server else f"http://{server}")
    except httpx.InvalidURL as error:
        raise InvalidInput(f"--server {server} is no address: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidInput(f"--server {server} is no address: write it as http://host:8000")
    path = url.path.rstrip("/").removesuffix("/v1")
    return url.copy_with(path=f"{path}/", query=None, fragment=None)


def _key_headers(api_key: str | None) -> dict[str, str]:
    """The headers with an API key; none without a key. Raises InvalidInput for a malformed one."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable()):
        raise InvalidInput("the API key has characters that no key may have: check it")
    return {"Authorization": f"Bearer {api_key}"}
