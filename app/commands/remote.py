"""Transcribes on a running service: submits jobs, follows them, and takes their results."""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

import httpx

from app.commands.arguments import Target, store_beside
from app.commands.progress import FileBar, shown
from app.commands.service_client import TRANSIENT, ServiceClient, check_access
from app.engines.catalogue import DEFAULT_MODEL_ALIAS
from app.errors import UnsuitableFormat, WhisperfleetError
from app.options import Options
from app.service_answers import cause, error_message, json_object
from app.transcript.reading import read_transcript
from app.transcript.rendering import render_transcript

UPLOADS_AT_ONCE = 4  # a tenth of WHISPER_MAX_UPLOADS is what a key may have
MIN_JOBS_AT_ONCE = 8
MAX_JOBS_AT_ONCE = 64
_POLL_S = (0.1, 1.5)  # first and longest pause between two looks at a job
_CLEANUP_S = 10.0  # how long Ctrl-C waits for the service
_TERMINAL = ("succeeded", "failed", "cancelled")


class Remote(ServiceClient):
    """A service, and what is asked of it for each recording."""

    def __init__(
        self,
        server: str,
        api_key: str | None,
        options: Options,
        chosen: str,
        model: str | None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Raises `InvalidInput` for a malformed address or key."""
        super().__init__(server, api_key, transport)
        self._options = options
        self._chosen = chosen
        given = options.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        self._fields = {name: _field(value) for name, value in given.items()}
        # Also the default one by its alias: the service refuses what it cannot do before the file arrives.
        self._fields["model"] = model or DEFAULT_MODEL_ALIAS
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def jobs_at_once(self) -> int:
        """How many jobs keep all workers of the service busy. Raises WhisperfleetError if it is not there."""
        try:
            answer = await self._client.get("v1/workers")
        except httpx.HTTPError as error:
            raise WhisperfleetError(f"{self.name} cannot be reached: {cause(error)}") from None
        check_access(self.name, answer)
        if answer.status_code in TRANSIENT:
            return MIN_JOBS_AT_ONCE
        try:
            workers = len(answer.json()["data"])
        except (ValueError, KeyError, TypeError):
            raise WhisperfleetError(
                f"there is no whisperfleet at {self.name}: {error_message(answer)}"
            ) from None
        return min(max(MIN_JOBS_AT_ONCE, 2 * workers), MAX_JOBS_AT_ONCE)

    async def transcribe(self, target: Target, bar: FileBar) -> bytes:
        """The content of the target's file. The service keeps nothing of the recording afterwards.

        Cancelling deletes the job. Raises WhisperfleetError and OSError.
        """
        submission = _Submission(self, target[0], bar)
        try:
            async with self._uploads:
                job_id = await submission.run()
            await self._follow(job_id, bar)
            return await self._result(job_id, target)
        finally:
            await self._discard(submission)

    async def _discard(self, submission: "_Submission") -> None:
        """Delete the job, which ends it if it runs. If that fails, it goes after WHISPER_RESULT_TTL_S."""
        is_gone = False
        with suppress(httpx.HTTPError, OSError, TimeoutError):
            async with asyncio.timeout(_CLEANUP_S):
                await submission.settle()
                if submission.job_id is not None:
                    answer = await self._client.delete(f"v1/jobs/{submission.job_id}")
                    is_gone = answer.is_success or answer.status_code == 404
        if not is_gone and submission.may_have_job:
            submission.bar.note(f"the service may still have its job {submission.job_id or ''}".rstrip())

    async def submit(self, make: Callable[[], dict[str, Any]], key: str) -> httpx.Response:
        """The answer to a submission. Raises as `send`."""
        headers = {"Idempotency-Key": key}
        return await self.send("POST", "v1/jobs", data=self._fields, headers=headers, make=make)

    async def _follow(self, job_id: str, bar: FileBar) -> None:
        """Wait until the job has succeeded. Raises WhisperfleetError if it does not."""
        pause, longest = _POLL_S
        while True:
            answer = await self.send("GET", f"v1/jobs/{job_id}")
            if answer.status_code == 404:
                raise WhisperfleetError("its job was deleted on the service")
            if answer.is_error:
                raise WhisperfleetError(error_message(answer))
            job = _job(answer)
            progress = job["progress"]
            bar.advance(progress["done_s"], progress["total_s"])
            if job["status"] in _TERMINAL:
                break
            await asyncio.sleep(pause)
            pause = min(1.3 * pause, longest)
        if job["status"] != "succeeded":
            error = job["error"] or {}
            raise WhisperfleetError(error.get("message") or f"its job is {job['status']}")
        bar.advance(job["duration"] or 0.0, job["duration"])

    async def _result(self, job_id: str, target: Target) -> bytes:
        if self._chosen == "json":
            return await self._json(job_id)
        answer = await self.send("GET", f"v1/jobs/{job_id}/result", params={"format": self._chosen})
        if answer.status_code == 400:  # the format cannot hold the transcript
            stored = await asyncio.to_thread(store_beside, target, await self._json(job_id))
            raise UnsuitableFormat(f"{error_message(answer)} The transcript is stored in {stored}.")
        if answer.is_error:
            raise WhisperfleetError(error_message(answer))
        return answer.content

    async def _json(self, job_id: str) -> bytes:
        """The transcript as `--format json` writes it here, which has more than the service's `json`."""
        answer = await self.send("GET", f"v1/jobs/{job_id}/result", params={"format": "verbose_json"})
        if answer.is_error:
            raise WhisperfleetError(error_message(answer))
        return await asyncio.to_thread(_as_json, answer.content, self._options)


class _Submission:
    """A recording on its way to the service, and the job that it becomes."""

    def __init__(self, remote: Remote, path: Path, bar: FileBar) -> None:
        self.path = path
        self.job_id: str | None = None
        self._remote = remote
        self.bar = bar
        self._key = uuid.uuid4().hex  # an attempt whose answer is lost is repeated, and gives the same job
        self._task: asyncio.Task[None] | None = None
        self._all_sent = False  # in the present attempt
        self._answer_lost = False

    @property
    def may_have_job(self) -> bool:
        """Whether the service may have a job: one that is known, or one whose answer has not arrived."""
        return self.job_id is not None or self._answer_lost or self._is_waiting_for_answer

    async def run(self) -> str:
        """The id of the job. After a cancellation, call `settle`. Raises WhisperfleetError and OSError."""
        self._task = asyncio.create_task(self._submit())
        await asyncio.shield(self._task)
        assert self.job_id is not None
        return self.job_id

    async def settle(self) -> None:
        """End the attempt: stop sending or, if everything is sent, wait for the answer."""
        if self._task is None:
            return
        if not self._all_sent:
            self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def _is_waiting_for_answer(self) -> bool:
        return self._all_sent and self._task is not None and not self._task.done()

    async def _submit(self) -> None:
        with self.path.open("rb") as file:
            size = self.path.stat().st_size

            def form() -> dict[str, Any]:
                self._answer_lost |= self._all_sent
                self._all_sent = False
                file.seek(0)
                return {"files": {"file": (shown(self.path.name), _SentFile(file, size, self._report))}}

            answer = await self._remote.submit(form, self._key)
        self._answer_lost = False
        if answer.status_code != 202:
            raise WhisperfleetError(error_message(answer))
        self.job_id = str(_job(answer)["id"])

    def _report(self, sent: int, size: int) -> None:
        self._all_sent = sent >= size
        self.bar.upload(sent, size)


class _SentFile:
    """A file that reports how much of it was read. httpx sends it in parts, and asks for its size first."""

    def __init__(self, file: BufferedReader, size: int, report: Callable[[int, int], None]) -> None:
        self._file = file
        self._size = size
        self._report = report

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self._report(self._file.tell(), self._size)
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def fileno(self) -> int:
        return self._file.fileno()


def _job(answer: httpx.Response) -> dict[str, Any]:
    """The job in an answer. Raises WhisperfleetError: a proxy may answer with a page of its own."""
    if "id" not in (job := json_object(answer)):
        raise WhisperfleetError(f"the server answered {answer.status_code} without a job")
    return job


def _field(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_json(content: bytes, options: Options) -> bytes:
    transcript = read_transcript(content, task=options.task).transcript
    return render_transcript(transcript, options, "json")
