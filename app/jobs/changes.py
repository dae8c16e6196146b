"""What other front ends change in the database, and what this one does about it within half a second."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.common.concurrency import end_tasks
from app.database.connection import Database
from app.database.front_ends import FrontEnd
from app.database.tables import jobs
from app.intake.disk import DiskSpace
from app.intake.resumable import Uploads
from app.jobs.access import ACCESS
from app.jobs.events import LAST_EVENT, Event, Subscriptions, read_events
from app.jobs.job import Status
from app.jobs.running.executor import run_name
from app.jobs.running.runner import JobRunner
from app.jobs.storage.retention import IN_TRASH
from app.jobs.storage.store import Store
from app.recording.service import TranscriptionService

NOTICED_S = 1.5  # others have noticed a change by then, unless they are overloaded
_LOOK_S = 0.4  # between two looks at the database
_EXCHANGE_S = 1.0  # between two exchanges of what no table has
_COUNT_S = 10.0  # between two counts of what others take of the disk
_MOST_EVENTS = 500  # of a job at once
_RETRY_S = 2.0  # after an error

_IS_ONE = jobs.c.id.in_(sa.bindparam("ids", expanding=True))
_LAST_EVENTS = sa.select(jobs.c.id, jobs.c.number, LAST_EVENT).where(_IS_ONE)
_GOING_ON = sa.select(jobs.c.id).where(_IS_ONE, ~IN_TRASH, jobs.c.status != Status.CANCELLED.value)
_NEWEST_QUEUED = sa.select(sa.func.max(jobs.c.number)).where(jobs.c.status == Status.QUEUED.value)
_NEWEST = sa.select(_NEWEST_QUEUED.scalar_subquery(), ACCESS)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _News:
    """What others may have changed."""

    newest_queued: int | None  # the number of the queued job that was added last
    access: bytes | None
    events: dict[str, list[Event]] = field(default_factory=dict)  # of followed jobs, by id
    deleted: set[str] = field(default_factory=set)  # followed jobs
    ended: set[str] = field(default_factory=set)  # jobs that run here: cancelled, in the trash, or deleted


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
    load_used: Callable[[], Awaitable[None]]  # reads what owners have used of their budgets again
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
        """Count what uploads and jobs take of the disk and of budgets: some have come elsewhere."""
        await self.load_used()
        await self.uploads.refresh()
        self.disk.stored = await self.store.bytes_by_owner()

    async def _exchange_notes(self) -> None:
        """Exchange with others what is reserved on the disk, and which jobs are followed."""
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
        running = self.runner.running
        news = await self.database.query(_read_news, self.subscriptions.followed, [*running])
        for job_id, events in news.events.items():
            for event in events:
                self.subscriptions.publish(job_id, event)
        for job_id in news.deleted:
            self.subscriptions.end(job_id)
        for job_id in news.ended:
            await self.runner.cancel(job_id)
            await self.service.remove_decoded(run_name(running[job_id]))
        if news.newest_queued != self._newest_queued:
            self._newest_queued = news.newest_queued
            self.runner.wake()
        if news.access != self._access:
            await self.load_access()
            self._access = news.access
        await self.uploads.give_way()
        self._seen = state


async def _read_news(
    connection: AsyncConnection, followed: Mapping[str, int], running: Collection[str]
) -> _News:
    """`followed`: jobs, and the number of their last event that is known here, 0: none. `running`: here."""
    news = _News(*(await connection.execute(_NEWEST)).one())
    if followed:
        rows = await connection.execute(_LAST_EVENTS, {"ids": [*followed]})
        last_events = {row.id: (row.number, row.last) for row in rows}
        news.deleted.update(followed.keys() - last_events.keys())
        for job_id, (number, last) in last_events.items():
            if last > (known := followed[job_id]):
                # A new subscriber reads those before the last one.
                news.events[job_id] = await read_events(connection, number, known or last - 1, _MOST_EVENTS)
    if running:
        rows = await connection.execute(_GOING_ON, {"ids": [*running]})
        news.ended.update({*running} - {row.id for row in rows})
    return news


async def _repeat(step: Callable[[], Awaitable[None]], pause_s: float) -> None:
    """Take a step again and again, whatever happens."""
    while True:
        try:
            await step()
            await asyncio.sleep(pause_s)
        except Exception as error:
            log.error("what other front ends do cannot be read; retrying", error=repr(error))
            await asyncio.sleep(max(pause_s, _RETRY_S))
