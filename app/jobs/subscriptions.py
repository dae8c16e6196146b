"""Subscriptions to the events of jobs."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from app.jobs.events import Event


class Subscriptions:
    """Queues of events, by job."""

    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[Event | None]]] = defaultdict(set)

    def publish(self, job_id: str, event: Event) -> None:
        """Put an event of a job into the queue of each of its subscribers."""
        for queue in self._queues.get(job_id, ()):
            queue.put_nowait(event)

    def close(self) -> None:
        """Put None, the end, into all queues."""
        for queue in [queue for queues in self._queues.values() for queue in queues]:
            queue.put_nowait(None)

    @contextmanager
    def subscribe(self, job_id: str) -> Iterator["asyncio.Queue[Event | None]"]:
        """A queue of the job's events from now on. None marks the end."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._queues[job_id].add(queue)
        try:
            yield queue
        finally:
            self._queues[job_id].discard(queue)
            if not self._queues[job_id]:
                del self._queues[job_id]
