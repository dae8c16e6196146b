"""The jobs of a service."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, BinaryIO

from app.client.answers import NotNow, Refused, Unreachable, error_message, json_object
from app.client.service import ServiceClient
from app.client.uploads import FormBody, ReportSent
from app.common.errors import InvalidSetting, WhisperfleetError
from app.common.options import Options

_POLL_S = (0.1, 2.0)  # first and longest pause between two looks at a job
_PAGE = 100  # jobs in one answer
TERMINAL = ("succeeded", "failed", "cancelled")


def option_fields(options: Options) -> dict[str, str]:
    """The options that were given, as fields of a form."""
    given = options.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()
    }


class JobClient(ServiceClient):
    """Submits jobs and asks for them. All methods raise NotNow when they give up, if they ever do."""

    async def check(self) -> None:
        """Raise InvalidSetting if what answers is no service for this client. Says if nothing answers."""
        try:
            answer = await self.send_once("GET", "v1/jobs", params={"limit": 1})
        except Unreachable as error:  # it may start later, or the address is wrong
            self.report_failure(error)
            return
        if answer.status_code in (401, 403):
            raise InvalidSetting(f"{self.name} refuses the key: {error_message(answer)}")
        is_page = answer.is_success and "data" not in json_object(answer)
        if answer.status_code in (404, 405) or answer.is_redirect or is_page:
            raise InvalidSetting(
                f"{self.name} is not a whisperfleet service: it has no /v1/jobs. Name its address, "
                "such as --server http://host:8000"
            )

    async def first(self, path: str, **request: Any) -> dict[str, Any] | None:
        """The answer to the first request, whose `data` is a list; None if the service cannot take it now.

        Raises WhisperfleetError at once if there is no service.
        """
        try:
            return json_object(await self.attempt("GET", path, has="data", **request))
        except Unreachable:
            raise
        except NotNow:
            return None
        except Refused as error:
            raise WhisperfleetError(f"there is no whisperfleet at {self.name}: {error.message}") from None

    async def submit(
        self,
        recording: BinaryIO,
        filename: str,
        fields: Mapping[str, str],
        key: str,
        report: ReportSent = lambda sent, size: None,
    ) -> dict[str, Any]:
        """Submit a recording, or find the job that it has by that key.

        Raises Refused, KeyTaken, and NotRead if the file changes meanwhile.
        """

        async def attempt() -> dict[str, Any]:
            body = FormBody(recording, "file", filename, fields, report)
            return await self._send(body, "v1/jobs", "id", {"Idempotency-Key": key})

        return await self.repeat(attempt, submits=True)

    async def submit_url(self, url: str, fields: Mapping[str, str], key: str) -> dict[str, Any]:
        """Submit a recording that the service downloads, or find the job that it has by that key.

        Raises Refused and KeyTaken.
        """
        request = {"json": {**fields, "url": url}, "headers": {"Idempotency-Key": key}}
        attempt = partial(self.attempt, "POST", "v1/jobs", has="id", **request)
        return json_object(await self.repeat(attempt, submits=True))

    async def detect_language(self, recording: BinaryIO, filename: str) -> str:
        """The language spoken in a recording, as Whisper's code. Raises as `submit` does."""

        async def attempt() -> str:
            body = FormBody(recording, "audio_file", filename, {})
            return str((await self._send(body, "detect-language", "language_code", {}))["language_code"])

        return await self.repeat(attempt, submits=True)

    async def job(self, job_id: str) -> dict[str, Any] | None:
        """A job; None if the service has it no more."""
        answer = await self.request("GET", f"v1/jobs/{job_id}", has="status")
        return json_object(answer) if answer.is_success else None

    async def follow(self, job_id: str) -> AsyncIterator[dict[str, Any] | None]:
        """A job again and again, until it has ended; None at the end if the service has it no more."""
        pause_s, longest_s = _POLL_S
        while True:
            job = await self.job(job_id)
            yield job
            if job is None or job["status"] in TERMINAL:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(1.3 * pause_s, longest_s)

    async def find(self, text: str = "", tags: Sequence[str] = ()) -> AsyncIterator[dict[str, Any]]:
        """The jobs that a text finds, with all of these tags; the newest first."""
        query: dict[str, Any] = {"limit": _PAGE, "q": text, "tag": list(tags)}
        while True:
            answer = await self.request("GET", "v1/jobs", has="data", params=query)
            if not answer.is_success:
                raise Refused("A job was deleted while all were listed. Repeat the command.")
            page = json_object(answer)
            for job in page["data"]:
                yield job
            if not page["has_more"]:
                return
            query["after"] = page["data"][-1]["id"]

    async def result(
        self, job_id: str, file_format: str, options: Mapping[str, str] = MappingProxyType({})
    ) -> bytes | None:
        """The result of a job in a format; None if the service has the job no more.

        `options` of the file take the place of the job's. Raises Refused if the format cannot hold it.
        """
        params = {"format": file_format, **options}
        answer = await self.request("GET", f"v1/jobs/{job_id}/result", params=params)
        return answer.content if answer.is_success else None

    async def run_again(self, job_id: str) -> bool:
        """Have a failed job run again. False if it cannot: the service has its recording or it no more."""
        try:
            return (await self.request("POST", f"v1/jobs/{job_id}/again", has="id", json={})).is_success
        except Refused:  # also by a service of a version that does not know how
            return False

    async def delete(self, job_id: str) -> None:
        """Cancel a job if it is not done, and delete it, as far as the service has it."""
        await self.request("DELETE", f"v1/jobs/{job_id}")

    async def _send(self, body: FormBody, path: str, has: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a recording. Raises NotRead if the file did not stay as it was."""
        try:
            answer = await self.attempt(
                "POST", path, has=has, headers={**body.headers, **headers}, content=body.chunks()
            )
        except WhisperfleetError:
            body.check()  # a file that became shorter ends the connection
            raise
        return json_object(answer)
