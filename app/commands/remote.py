"""Transcribes on a running service: submits jobs, follows them, and takes their results."""

import asyncio
import hashlib
import json
import os
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.client.answers import Refused
from app.client.jobs import JobClient, option_fields
from app.client.service import COMMAND, connect
from app.commands.arguments import Input, Target, store_beside
from app.commands.progress import FileBar, printable
from app.common.errors import UnsuitableFormat, WhisperfleetError
from app.common.options import Options
from app.engines.catalogue import DEFAULT_MODEL_ALIAS
from app.jobs.search_terms import MAX_TAG_CHARS
from app.transcript.reading import read_transcript
from app.transcript.rendering import render_transcript
from app.transcript.term_list import packed_terms
from app.transcript.terms import Term

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
        kept: Mapping[str, str] | None = None,
        recordings: Sequence[Input] = (),
        terms: tuple[Term, ...] = (),
    ) -> None:
        """`kept`: further fields of jobs that stay on the service; None: they are deleted. `recordings`: what
        the targets are besides paths. `terms`: instead of those of the key's owner; empty: these.

        Raises `InvalidInput` for a malformed address or key.
        """
        super().__init__(connect(server, api_key, COMMAND, transport), COMMAND)
        self._options = options
        self._chosen = chosen
        # Also the default one by its alias: the service refuses what it cannot do before the file arrives.
        self._fields = option_fields(options) | {"model": model or DEFAULT_MODEL_ALIAS}
        self._keeps = kept is not None
        self._fields |= kept or {}
        if terms:
            self._fields["terms"] = packed_terms(terms)
        self._recordings = {one.path: one for one in recordings}
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def jobs_at_once(self) -> int:
        """How many jobs keep all workers of the service busy. Raises WhisperfleetError if it is not there."""
        workers = await self.first("v1/workers")
        count = len(workers["data"]) if workers else 0
        return min(max(MIN_JOBS_AT_ONCE, 2 * count), MAX_JOBS_AT_ONCE)

    async def transcribe(self, target: Target, bar: FileBar) -> bytes:
        """The content of the target's file. Unless jobs stay, the service has nothing of the recording then.

        Cancelling deletes the job, too. Raises WhisperfleetError and OSError.
        """
        async with AsyncExitStack() as stack:
            async with self._uploads:
                upload = _Upload(bar)
                submission = asyncio.create_task(self._submit(target[0], upload))
                if self._keeps:
                    stack.callback(submission.cancel)
                else:
                    stack.push_async_callback(self._discard, submission, upload)
                job_id = await asyncio.shield(submission)
            if upload.is_incomplete:
                if self._keeps:
                    await self.delete(job_id)
                raise WhisperfleetError("the file has changed while it was sent")
            await self._until_done(job_id, bar)
            return await self._content(job_id, target)

    async def _submit(self, path: Path, upload: "_Upload") -> str:
        """The id of the job that a recording becomes."""
        one = self._recordings.get(path, Input(path))
        fields = dict(self._fields)
        if self._keeps and one.below:  # `fetch` makes folders of such tags
            folder = f"{printable(one.below).replace(',', '_')[1 - MAX_TAG_CHARS :]}/"
            fields["tags"] = ",".join(filter(None, (fields.get("tags"), folder)))
        # An attempt whose answer is lost is repeated, and gives the same job.
        key = self._lasting_key(one, fields) if self._keeps else uuid.uuid4().hex
        if one.url is not None:
            upload.all_sent = True
            return await self._renewed(partial(self.submit_url, one.url, fields, key))
        with path.open("rb") as file:
            name = printable(path.name)
            job_id = await self._renewed(partial(self.submit, file, name, fields, key, upload.report))
            upload.is_incomplete = os.fstat(file.fileno()).st_size != upload.size
        return job_id

    async def _renewed(self, submit: Callable[[], Awaitable[Mapping[str, Any]]]) -> str:
        """The id of the job that `submit` makes or finds. One that failed in an earlier run is replaced."""
        job = await submit()
        if self._keeps and job["status"] in ("failed", "cancelled"):
            await self.delete(job["id"])
            job = await submit()
        return str(job["id"])

    def _lasting_key(self, one: Input, fields: Mapping[str, str]) -> str:
        """The same for the same recording and fields: a command that is repeated finds its jobs."""
        parts: list[object] = [one.url]
        if one.url is None:
            status = one.path.stat()
            parts = [str(one.path.resolve()), status.st_size, status.st_mtime_ns]
        return hashlib.sha256(json.dumps([*parts, sorted(fields.items())]).encode()).hexdigest()

    async def _discard(self, submission: asyncio.Task[str], upload: "_Upload") -> None:
        """Delete the job, which ends it if it runs. If that fails, it goes after WHISPER_RESULT_TTL_S."""
        if not upload.all_sent:
            submission.cancel()
        job_id, may_have_job = "", upload.answer_lost
        with suppress(WhisperfleetError, OSError, TimeoutError):
            async with asyncio.timeout(_CLEANUP_S):
                await asyncio.wait([submission])
                if not submission.cancelled() and submission.exception() is None:
                    job_id, may_have_job = submission.result(), True
                    answer = await self.send_once("DELETE", f"v1/jobs/{job_id}")
                    may_have_job = answer.is_error and answer.status_code != 404
        if may_have_job or not submission.done():
            upload.bar.note(f"the service may still have its job {job_id}".rstrip())

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
        for warning in job.get("warnings", ()):  # older services have none
            bar.note(warning["message"])

    async def _content(self, job_id: str, target: Target) -> bytes:
        if self._chosen == "json":
            return await self._json(job_id)
        try:
            return await self._result(job_id, self._chosen)
        except Refused as error:
            if error.status != 400:
                raise
            # The format cannot hold the transcript.
            stored = await asyncio.to_thread(store_beside, target, await self._json(job_id))
            raise UnsuitableFormat(f"{error.message} The transcript is stored in {stored}.") from None

    async def _json(self, job_id: str) -> bytes:
        content = await self._result(job_id, "verbose_json")
        return await asyncio.to_thread(complete_json, content, self._options)

    async def _result(self, job_id: str, file_format: str) -> bytes:
        if (content := await self.result(job_id, file_format)) is None:
            raise _deleted()
        return content


def complete_json(verbose_json: bytes, options: Options) -> bytes:
    """The transcript as `--format json` writes it here, which has more than the service's `json`."""
    reading = read_transcript(verbose_json, task=options.task)
    return render_transcript(reading.transcript, options, "json")


class _Upload:
    """How much of a recording was sent."""

    def __init__(self, bar: FileBar) -> None:
        self.bar = bar
        self.size = 0
        self.all_sent = False  # in the present attempt
        self.is_incomplete = False  # although all of it was sent: the file has grown
        self.answer_lost = False  # of an earlier attempt: the service may have a job

    def report(self, sent: int, size: int) -> None:
        if not sent:
            self.answer_lost |= self.all_sent
        self.size, self.all_sent = size, sent >= size
        self.bar.upload(sent, size)


def _deleted() -> WhisperfleetError:
    return WhisperfleetError("its job was deleted on the service")
