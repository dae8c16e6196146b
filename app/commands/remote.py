"""Transcribes on a running service: submits jobs, follows them, and takes their results."""

import asyncio
import os
import uuid
from contextlib import suppress
from pathlib import Path

import httpx

from app.client.answers import NotNow, Refused, Unreachable
from app.client.jobs import JobClient, option_fields
from app.client.service import COMMAND, connect
from app.commands.arguments import Target, store_beside
from app.commands.progress import FileBar, shown
from app.engines.catalogue import DEFAULT_MODEL_ALIAS
from app.errors import UnsuitableFormat, WhisperfleetError
from app.options import Options
from app.transcript.reading import read_transcript
from app.transcript.rendering import render_transcript

UPLOADS_AT_ONCE = 4  # a tenth of WHISPER_MAX_UPLOADS is what a key may have
MIN_JOBS_AT_ONCE = 8
MAX_JOBS_AT_ONCE = 64
_CLEANUP_S = 10.0  # how long Ctrl-C waits for the service


class Remote(JobClient):
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
        super().__init__(connect(server, api_key, COMMAND, transport), COMMAND)
        self._options = options
        self._chosen = chosen
        # Also the default one by its alias: the service refuses what it cannot do before the file arrives.
        self.fields = option_fields(options) | {"model": model or DEFAULT_MODEL_ALIAS}
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def jobs_at_once(self) -> int:
        """How many jobs keep all workers of the service busy. Raises WhisperfleetError if it is not there."""
        try:
            answer = await self.attempt("GET", "v1/workers", has="data")
        except Unreachable:
            raise
        except NotNow:
            return MIN_JOBS_AT_ONCE
        except Refused as error:
            raise WhisperfleetError(f"there is no whisperfleet at {self.name}: {error.message}") from None
        return min(max(MIN_JOBS_AT_ONCE, 2 * len(answer.json()["data"])), MAX_JOBS_AT_ONCE)

    async def transcribe(self, target: Target, bar: FileBar) -> bytes:
        """The content of the target's file. The service keeps nothing of the recording afterwards.

        Cancelling deletes the job. Raises WhisperfleetError and OSError.
        """
        submission = _Submission(self, target[0], bar)
        try:
            async with self._uploads:
                job_id = await submission.run()
            await self._until_done(job_id, bar)
            return await self._content(job_id, target)
        finally:
            await self._discard(submission)

    async def _discard(self, submission: "_Submission") -> None:
        """Delete the job, which ends it if it runs. If that fails, it goes after WHISPER_RESULT_TTL_S."""
        is_gone = False
        with suppress(WhisperfleetError, OSError, TimeoutError):
            async with asyncio.timeout(_CLEANUP_S):
                await submission.settle()
                if submission.job_id is not None:
                    answer = await self.ask("DELETE", f"v1/jobs/{submission.job_id}")
                    is_gone = answer.is_success or answer.status_code == 404
        if not is_gone and submission.may_have_job:
            submission.bar.note(f"the service may still have its job {submission.job_id or ''}".rstrip())

    async def _until_done(self, job_id: str, bar: FileBar) -> None:
        """Wait until the job has succeeded. Raises WhisperfleetError if it does not."""
        async for job in self.follow(job_id):
            if job is None:
                raise _deleted()
            bar.advance(job["progress"]["done_s"], job["progress"]["total_s"])
        assert job is not None
        if job["status"] != "succeeded":
            error = job["error"] or {}
            raise WhisperfleetError(error.get("message") or f"its job is {job['status']}")
        bar.advance(job["duration"] or 0.0, job["duration"])

    async def _content(self, job_id: str, target: Target) -> bytes:
        if self._chosen == "json":
            return await self._json(job_id)
        try:
            content = await self.result(job_id, self._chosen)
        except Refused as error:
            if error.status != 400:
                raise
            # The format cannot hold the transcript.
            stored = await asyncio.to_thread(store_beside, target, await self._json(job_id))
            raise UnsuitableFormat(f"{error.message} The transcript is stored in {stored}.") from None
        if content is None:
            raise _deleted()
        return content

    async def _json(self, job_id: str) -> bytes:
        """The transcript as `--format json` writes it here, which has more than the service's `json`."""
        content = await self.result(job_id, "verbose_json")
        if content is None:
            raise _deleted()
        return await asyncio.to_thread(_as_json, content, self._options)


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
        is_waiting_for_answer = self._all_sent and self._task is not None and not self._task.done()
        return self.job_id is not None or self._answer_lost or is_waiting_for_answer

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

    async def _submit(self) -> None:
        with self.path.open("rb") as file:
            size, name = os.fstat(file.fileno()).st_size, shown(self.path.name)
            try:
                job = await self._remote.submit(file, name, self._remote.fields, self._key, self._report)
            except Refused:
                self._answer_lost = False
                raise
            self._answer_lost = False
            self.job_id = str(job["id"])
            if os.fstat(file.fileno()).st_size != size:
                raise WhisperfleetError("the file has changed while it was sent")

    def _report(self, sent: int, size: int) -> None:
        if not sent:
            self._answer_lost |= self._all_sent
        self._all_sent = sent >= size
        self.bar.upload(sent, size)


def _deleted() -> WhisperfleetError:
    return WhisperfleetError("its job was deleted on the service")


def _as_json(content: bytes, options: Options) -> bytes:
    transcript = read_transcript(content, task=options.task).transcript
    return render_transcript(transcript, options, "json")
