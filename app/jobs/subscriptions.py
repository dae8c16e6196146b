"""Who follows which job: each follower is told of every event as it happens."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from app.jobs.store import Event


class Subscriptions:
    """Queues of events, by job."""

    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[Event | None]]] = defaultdict(set)

    def tell(self, job_id: str, event: Event) -> None:
        """Tell all who follow a job of an event."""
        for queue in self._queues.get(job_id, ()):
            queue.put_nowait(event)

    def dismiss(self) -> None:
        """Tell everybody that nothing more will come, whatever becomes of the jobs."""
        for queue in [queue for queues in self._queues.values() for queue in queues]:
            queue.put_nowait(None)

    @contextmanager
    def follow(self, job_id: str) -> Iterator["asyncio.Queue[Event | None]"]:
        """A queue of the job's events from now on; None where there will be no more."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._queues[job_id].add(queue)
        try:
            yield queue
        finally:
            self._queues[job_id].discard(queue)
            if not self._queues[job_id]:
                del self._queues[job_id]
