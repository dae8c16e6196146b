"""What other front ends change in the database, and what this one does about it within half a second."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from app.common.concurrency import end_tasks
from app.common.errors import UnknownJob
from app.database.connection import Database
from app.database.front_ends import FrontEnd
from app.intake.disk import DiskSpace
from app.intake.resumable import Uploads
from app.jobs.access import access_state
from app.jobs.events import Subscriptions
from app.jobs.job import Status
from app.jobs.running.executor import run_name
from app.jobs.running.runner import JobRunner
from app.jobs.storage.store import Store
from app.recording.service import TranscriptionService

NOTICED_S = 1.0  # others have noticed a change by then, unless they are overloaded
_LOOK_S = 0.25  # between two looks at the database
_EXCHANGE_S = 1.0  # between two exchanges of what no table has
_COUNT_S = 15.0  # between two counts of what the jobs of each owner hold
_RETRY_S = 2.0  # after an error

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Changes:
    """Watches the database if other front ends may use it, too."""

    database: Database
    front_end: FrontEnd
    store: Store
    subscriptions: Subscriptions
    runner: JobRunner
    service: TranscriptionService
    uploads: Uploads
    disk: DiskSpace
    folder: Path  # of the files in which front ends say what no table has
    load_access: Callable[[], Awaitable[None]]  # reads links, their secrets and terms again
    _seen: object = None  # the state of the database at the last look
    _newest_queued: int | None = None
    _access: bytes | None = None
    _note: bytes = b""
    _followed_elsewhere: frozenset[str] = frozenset()  # ids of jobs
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Start watching, unless no other front end can use the database."""
        if self.database.is_shared:
            # Apart: a folder that does not answer must not delay what the database says.
            steps = (self._look, _LOOK_S), (self._exchange_notes, _EXCHANGE_S), (self._count, _COUNT_S)
            self._tasks = [
                asyncio.create_task(_repeat(*step), name=f"changes{step[0].__name__}") for step in steps
            ]

    async def stop(self) -> None:
        """Stop watching."""
        await end_tasks(*self._tasks)
        if self._note:
            await asyncio.to_thread(self._own_note.unlink, missing_ok=True)

    def is_followed(self, job_id: str) -> bool:
        """Whether somebody waits for the events of a job, here or elsewhere."""
        return self.subscriptions.has(job_id) or job_id in self._followed_elsewhere

    async def _count(self) -> None:
        """Count what the jobs of each owner hold: some were submitted elsewhere."""
        self.disk.stored = await self.store.bytes_by_owner()

    async def _exchange_notes(self) -> None:
        """Exchange with others what is reserved on the disk, and which jobs are followed."""
        await self.uploads.refresh()
        note = {"reserved": self.disk.requested, "followed": [*self.subscriptions.followed]}
        notes = await asyncio.to_thread(self._exchange, json.dumps(note).encode())
        self.disk.elsewhere = sum((Counter(note["reserved"]) for note in notes), Counter())
        self._followed_elsewhere = frozenset(job_id for note in notes for job_id in note["followed"])

    def _exchange(self, note: bytes) -> list[dict[str, Any]]:
        """Write the note of this front end if it is a new one, and read those of the others."""
        if note != self._note:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            part = self._own_note.with_suffix(".part")
            part.write_bytes(note)
            part.replace(self._own_note)
            self._note = note
        notes = []
        for other in self.front_end.others:
            with suppress(FileNotFoundError):  # it has just begun
                notes.append(json.loads((self.folder / f"{other.name}.json").read_bytes()))
        return notes

    @property
    def _own_note(self) -> Path:
        return self.folder / f"{self.front_end.name}.json"

    async def _look(self) -> None:
        """Do what follows from changes of the database, if there are some."""
        state = await self.database.state()  # first: later changes are seen the next time
        if state == self._seen:
            return
        await self._publish_events()
        await self._end_cancelled()
        await self.uploads.give_way()
        newest = await self.store.newest_queued()
        if newest != self._newest_queued:
            self._newest_queued = newest
            self.runner.wake()
        access = await access_state(self.database)
        if access != self._access:
            await self.load_access()
            self._access = access
        self._seen = state

    async def _publish_events(self) -> None:
        """Publish the events of followed jobs that others have stored."""
        followed = self.subscriptions.followed
        numbers = await self.store.last_events(followed) if followed else {}
        for job_id, known in followed.items():
            number = numbers.get(job_id)
            if number is None:
                self.subscriptions.end(job_id)
            elif number > known:
                with suppress(UnknownJob):  # the next look ends its subscriptions
                    job = await self.store.get_any(job_id)
                    # A new subscriber reads those before the last one.
                    for event in await self.store.events(job, known or number - 1):
                        self.subscriptions.publish(job_id, event)

    async def _end_cancelled(self) -> None:
        """Stop running the jobs that others have cancelled, put into the trash or deleted."""
        running = self.runner.running
        statuses = await self.store.statuses([*running]) if running else {}
        for job_id, job in running.items():
            if statuses.get(job_id) in (None, Status.CANCELLED):
                await self.runner.cancel(job_id)
                await self.service.remove_decoded(run_name(job))


async def _repeat(step: Callable[[], Awaitable[None]], pause_s: float) -> None:
    """Take a step again and again, whatever happens."""
    while True:
        try:
            await step()
            await asyncio.sleep(pause_s)
        except Exception as error:
            log.error("what other front ends do cannot be read; retrying", error=repr(error))
            await asyncio.sleep(max(pause_s, _RETRY_S))
