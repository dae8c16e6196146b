"""What other front ends change in the database, and what this one does about it within half a second."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from app.common.concurrency import end_tasks
from app.common.errors import UnknownJob
from app.database.connection import Database
from app.database.front_ends import FrontEnd
from app.engines.ledger import JobName
from app.intake.disk import DiskSpace
from app.intake.resumable import Uploads
from app.jobs.access import access_state
from app.jobs.events import Subscriptions
from app.jobs.job import Status
from app.jobs.running.runner import JobRunner
from app.jobs.storage.store import Store
from app.recording.service import TranscriptionService

NOTICED_S = 1.0  # others have noticed a change by then, unless they are overloaded
_TICK_S = 0.25  # between two looks at the state of the database
_SPACE_S = 2.0  # between two accounts of what all have reserved on the disk
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
    load_access: Callable[[], Awaitable[None]]  # reads links, their secrets and terms again
    _share_space_at: float = 0.0  # monotonic
    _count_at: float = 0.0
    _newest_queued: int | None = None
    _access: bytes | None = None
    _watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start watching, unless no other front end can use the database."""
        if self.database.is_shared:
            self._watching = asyncio.create_task(self._watch(), name="changes")

    async def stop(self) -> None:
        """Stop watching."""
        await end_tasks(self._watching)

    async def _watch(self) -> None:
        seen: object = None
        while True:
            try:
                state = await self.database.state()  # first: later changes are seen the next time
                if state != seen:
                    await self._look()
                    seen = state
                await self._share_space()
                await asyncio.sleep(_TICK_S)
            except Exception as error:  # the loop must go on: nothing else follows what others do
                log.error("what other front ends change cannot be read; retrying", error=repr(error))
                await asyncio.sleep(_RETRY_S)

    async def _share_space(self) -> None:
        """Count what uploads and jobs at other front ends take of the disk."""
        if (now := time.monotonic()) >= self._share_space_at:
            self._share_space_at = now + _SPACE_S
            await self.uploads.refresh()
            others = [other.name for other in self.front_end.others]
            await asyncio.to_thread(self.disk.share, self.front_end.name, others)
        if now >= self._count_at:
            self._count_at = now + _COUNT_S
            self.disk.stored = await self.store.bytes_by_owner()

    async def _look(self) -> None:
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
        statuses = await self.store.statuses(running) if running else {}
        for job_id in running:
            if statuses.get(job_id) in (None, Status.CANCELLED):
                await self.runner.cancel(job_id)
                await self.service.remove_decoded(JobName("job", job_id))
