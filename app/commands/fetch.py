"""`whisperfleet fetch`: brings the transcripts of a service into a folder, with all corrections."""

import asyncio
import json
import signal
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.client.answers import NotNow
from app.client.jobs import JobClient, option_fields
from app.client.service import COMMAND, connect
from app.commands.arguments import check_options, choose_format, note_without_effect
from app.commands.ending import command, print_error, run_until
from app.commands.fetched import Folder
from app.commands.progress import say
from app.commands.remote import complete_json
from app.common.concurrency import end_tasks
from app.common.errors import InvalidInput, WhisperfleetError
from app.common.files import safe_name, titled_stem
from app.common.options import FILE_OPTIONS, Options

_AT_ONCE = 4  # transcripts that are asked for
_SAVED_AFTER = 50  # files

Job = Mapping[str, Any]


@command(stopped="stopped; what was written is whole, and the next fetch goes on")
def run_fetch(
    server: str,
    api_key: str | None,
    text: str,
    tags: Sequence[str],
    file_format: str,
    options: dict[str, object],
    output: str,
) -> int:
    """Bring what a folder lacks. Returns the exit code: 1 if a transcript fails, 2 for wrong usage."""
    chosen = choose_format(None, file_format)
    checked = check_options(options)
    if others := options.keys() - FILE_OPTIONS:
        raise InvalidInput(
            f"{', '.join(sorted(others))} cannot be chosen for a transcript that is there; these can: "
            f"{', '.join(sorted(FILE_OPTIONS))}"
        )
    note_without_effect(checked, chosen)
    folder = Folder(Path(output))
    client = JobClient(connect(server, api_key, COMMAND), COMMAND, notify=print_error)
    try:
        with folder.locked():
            return run_until(Fetch(client, folder, chosen, checked).run(text, tags), signal.SIGTERM)
    except OSError as error:
        raise WhisperfleetError(f"{folder.path} cannot be written: {error.strerror}") from None


@dataclass(slots=True)
class Fetch:
    """One run."""

    _client: JobClient
    _folder: Folder
    _chosen: str
    _options: Options
    _counts: Counter[str] = field(default_factory=Counter)

    async def run(self, text: str, tags: Sequence[str]) -> int:
        """Returns the exit code. Raises WhisperfleetError if the service does not answer, and OSError."""
        async with self._client:
            await self._client.first("v1/jobs", params={"limit": 1})
            jobs = [job async for job in self._client.find(text, tags)]
            jobs.reverse()  # the oldest gets its name first
            statuses = Counter(job["status"] for job in jobs)
            done = [job for job in jobs if job["status"] == "succeeded"]
            wanted = [job for job in done if not self._folder.has(*self._file(job))]
            try:
                await self._bring(wanted)
            finally:
                if wanted:
                    self._folder.save()
        left = len(done) - self._counts["brought"] - self._counts["failed"]
        say(f"transcripts: {self._counts['brought']} brought, {left} as they were")
        if unfinished := statuses["queued"] + statuses["running"]:
            say(f"{_jobs(unfinished, 'is', 'are')} not done yet: fetch again later")
        if failed := statuses["failed"]:
            say(f"{_jobs(failed, 'has', 'have')} failed: the page says why")
        return 1 if self._counts["failed"] else 0

    async def _bring(self, wanted: Sequence[Job]) -> None:
        """Ask for several transcripts at a time, and write them in order, in which they get names."""
        under_way: deque[tuple[Job, asyncio.Task[bytes | None]]] = deque()
        left = deque(wanted)
        try:
            while left or under_way:
                while left and len(under_way) < _AT_ONCE:
                    job = left.popleft()
                    under_way.append((job, asyncio.create_task(self._content(job))))
                job, task = under_way.popleft()
                try:
                    if (content := await task) is not None:
                        await self._store(job, content)
                except NotNow:
                    raise
                except WhisperfleetError as error:
                    self._counts["failed"] += 1
                    say(f"{job['title'] or job['filename'] or job['id']}: {error.message}")
        finally:
            await end_tasks(*(task for _, task in under_way))

    async def _content(self, job: Job) -> bytes | None:
        """The file of a job; None if it was deleted meanwhile."""
        if self._chosen != "json":
            return await self._client.result(job["id"], self._chosen, option_fields(self._options))
        content = await self._client.result(job["id"], "verbose_json")
        return content and await asyncio.to_thread(complete_json, content, self._options)

    async def _store(self, job: Job, content: bytes) -> None:
        path, is_new = await asyncio.to_thread(self._folder.store, *self._file(job), content)
        if is_new:
            self._counts["brought"] += 1
            say(f"→ {path}")
            if not self._counts["brought"] % _SAVED_AFTER:
                await asyncio.to_thread(self._folder.save)

    def _file(self, job: Job) -> tuple[str, str, str, str]:
        """Which file a job has: its key, its name without and its extension, and what it is made of."""
        title = job["title"] or ""
        stem = titled_stem(title, job["filename"] or "", job["id"])
        folder = "".join(tag for tag in job["tags"] if tag.endswith("/"))
        stem = "/".join([*filter(None, map(safe_name, folder.split("/"))), stem])
        options = sorted(option_fields(self._options).items())
        version = json.dumps([job["revision"], title, options], ensure_ascii=False)
        return f"{job['id']}.{self._chosen}", stem, self._chosen, version


def _jobs(count: int, one: str, several: str) -> str:
    return f"1 job {one}" if count == 1 else f"{count} jobs {several}"
