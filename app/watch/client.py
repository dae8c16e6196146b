"""The jobs of a whisperfleet service, for a program that waits until the service takes them."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, BinaryIO, TypeVar

import httpx

from app.errors import InvalidSetting, WhisperfleetError
from app.service_answers import cause, error_code, error_message, json_object, retry_after_s

T = TypeVar("T")

_FIRST_WAIT_S = 1.0
_MAX_WAIT_S = 60.0
_READ_BYTES = 1 << 18
_FAULTS = 3  # of the service itself, after which a recording counts as refused
# Statuses of proxies and of the service that say nothing about the recording.
_NOT_NOW = frozenset({401, 403, 404, 405, 408, 421, 425, 429, 502, 503, 504, 507})

Say = Callable[[str], None]


class NotNow(WhisperfleetError):
    """The service cannot take the request now, and may take it later."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s  # at least, before the next attempt


class ServiceFault(NotNow):
    """The service failed unexpectedly. Perhaps this recording is the cause."""


class Refused(WhisperfleetError):
    """The service does not take this recording. A repetition would not change that."""


class KeyTaken(WhisperfleetError):
    """The idempotency key has a job for another request."""


class NotRead(WhisperfleetError):
    """The recording could not be read, or changed, while it was sent."""


class JobClient:
    """Submits jobs and asks for them. Waits while the service is away or busy, and says so once."""

    def __init__(self, http: httpx.AsyncClient, name: str, say: Say) -> None:
        """`http` has the address and the key of the service, and `name` stands for it in lines for people."""
        self._http = http
        self._name = name
        self._say = say
        self._trouble: dict[bool, str] = {}  # of submissions, and of all requests

    async def check(self) -> None:
        """Raise InvalidSetting if what answers is no service for this client. Says if nothing answers."""
        try:
            answer = await self._http.get("/v1/jobs", params={"limit": 1})
        except httpx.HTTPError as error:  # it may start later, or the address is wrong
            self._troubled(f"it cannot be reached ({cause(error)})", submits=False)
            return
        if answer.status_code in (401, 403):
            raise InvalidSetting(f"{self._name} refuses the key: {error_message(answer)}")
        is_page = answer.is_success and "data" not in json_object(answer)
        if answer.status_code in (404, 405) or answer.is_redirect or is_page:
            raise InvalidSetting(
                f"{self._name} is not a whisperfleet service: it has no /v1/jobs. Name its address, "
                "such as --server http://host:8000"
            )

    async def submit(
        self, recording: BinaryIO, filename: str, fields: dict[str, str], key: str
    ) -> dict[str, Any]:
        """Submit a recording, or find the job that it has by that key.

        Raises Refused, KeyTaken, and NotRead if the file changes meanwhile.
        """

        async def request() -> dict[str, Any]:
            body = _Body(recording)
            headers = {
                "Content-Type": "application/octet-stream",
                "Content-Length": str(body.size),
                "Idempotency-Key": key,
            }
            params = fields | {"filename": filename}
            answer = await self._send(body, "/v1/jobs", params=params, headers=headers, content=body.chunks())
            return _content(answer, "id")

        return await self._patiently(request, submits=True)

    async def detect_language(self, recording: BinaryIO, filename: str) -> str:
        """The language spoken in a recording, as Whisper's code. Raises as `submit` does."""

        async def request() -> str:
            body = _Body(recording)
            boundary = os.urandom(16).hex()
            name = filename.replace("\\", "_").replace('"', "_")
            head = (
                f'--{boundary}\r\nContent-Disposition: form-data; name="audio_file"; filename="{name}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n"
            ).encode()
            tail = f"\r\n--{boundary}--\r\n".encode()
            headers = {
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "Content-Length": str(len(head) + body.size + len(tail)),
            }
            content = body.chunks(head, tail)
            answer = await self._send(body, "/detect-language", headers=headers, content=content)
            return str(_content(answer, "language_code")["language_code"])

        return await self._patiently(request, submits=True)

    async def job(self, job_id: str) -> dict[str, Any] | None:
        """A job; None if the service has it no more."""

        async def request() -> dict[str, Any] | None:
            answer = await self._request("GET", f"/v1/jobs/{job_id}")
            if _is_gone(answer):
                return None
            return _content(_checked(answer), "status")

        return await self._patiently(request)

    async def result(self, job_id: str, file_format: str) -> bytes | None:
        """The result of a job in a format; None if the service has the job no more.

        Raises Refused if the format cannot hold it.
        """

        async def request() -> bytes | None:
            path = f"/v1/jobs/{job_id}/result"
            answer = await self._request("GET", path, params={"format": file_format})
            return None if _is_gone(answer) else _checked(answer).content

        return await self._patiently(request)

    async def delete(self, job_id: str) -> None:
        """Cancel a job if it is not done, and delete it, as far as the service has it."""

        async def request() -> None:
            answer = await self._request("DELETE", f"/v1/jobs/{job_id}")
            if not _is_gone(answer):
                _checked(answer)

        await self._patiently(request)

    async def _send(self, body: "_Body", path: str, **arguments: Any) -> httpx.Response:
        """Send a recording. Raises NotRead if the file did not stay as it was."""
        try:
            answer = await self._request("POST", path, **arguments)
        except NotNow:
            body.check()  # a file that became shorter ends the connection
            raise
        if answer.is_error:
            body.check()
        return _checked(answer)

    async def _request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            return await self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise NotNow(f"it cannot be reached ({cause(error)})") from None

    async def _patiently(self, request: Callable[[], Awaitable[T]], *, submits: bool = False) -> T:
        """Repeat a request until the service takes it."""
        wait_s, faults = _FIRST_WAIT_S, 0
        while True:
            try:
                answer = await request()
            except NotNow as error:
                faults += isinstance(error, ServiceFault)
                if faults == _FAULTS:
                    raise Refused(error.message) from None
                self._troubled(error.message, submits=submits)
                await asyncio.sleep(max(wait_s, min(error.wait_s, _MAX_WAIT_S)))
                wait_s = min(2 * wait_s, _MAX_WAIT_S)
            else:
                self._answered(submits=submits)
                return answer

    def _troubled(self, message: str, *, submits: bool) -> None:
        # Once for all recordings that wait, as long as the trouble is the same.
        kind = message.partition("(")[0]
        if kind not in self._trouble.values():
            self._trouble[submits] = kind
            self._say(f"waiting for {self._name}: {message}")

    def _answered(self, *, submits: bool) -> None:
        # A service that takes no jobs may well answer other requests.
        over = [self._trouble.pop(kind) for kind in {False, submits} if kind in self._trouble]
        if over:
            self._say(f"{self._name} takes requests again")


class _Body:
    """The bytes of a recording from the start, as many as it has now."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self._fault: OSError | None = None
        self._missing = False

    async def chunks(self, head: bytes = b"", tail: bytes = b"") -> AsyncIterator[bytes]:
        """Ends early if the file does; `check` raises then."""
        yield head
        self._file.seek(0)
        left = self.size
        while left:
            try:
                chunk = await asyncio.to_thread(self._file.read, min(_READ_BYTES, left))
            except OSError as error:
                self._fault = error
                return
            if not chunk:
                self._missing = True
                return
            left -= len(chunk)
            yield chunk
        yield tail

    def check(self) -> None:
        """Raise NotRead if the file could not be read to its end."""
        if self._fault is not None:
            raise NotRead(f"it cannot be read: {self._fault.strerror}") from self._fault
        if self._missing:
            raise NotRead("it became shorter while it was sent")


def _checked(answer: httpx.Response) -> httpx.Response:
    """The answer, if it is none of an error. Raises NotNow, Refused or KeyTaken."""
    if answer.is_success:
        return answer
    status, message = answer.status_code, error_message(answer)
    if status == HTTPStatus.CONFLICT and error_code(answer) == "idempotency_key_reused":
        raise KeyTaken(message)
    if status in _NOT_NOW or answer.is_redirect:
        raise NotNow(message, retry_after_s(answer))
    raise ServiceFault(message) if answer.is_server_error else Refused(message)


def _content(answer: httpx.Response, name: str) -> dict[str, Any]:
    """The JSON object in an answer, which has a member of this name. Raises NotNow: a proxy has answered."""
    if name not in (content := json_object(answer)):
        raise NotNow(f"it answered {answer.status_code} with something else")
    return content


def _is_gone(answer: httpx.Response) -> bool:
    """Whether the service does not have the job."""
    return answer.status_code == HTTPStatus.NOT_FOUND and error_code(answer) == "job_not_found"
