"""The server-sent events of the workers: a snapshot of the fleet for each client, then what changes."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import structlog

from app.api.operation.fleet_state import FleetState
from app.api.operation.other_fleets import OtherFleets
from app.common.concurrency import Wakeup
from app.common.errors import WhisperfleetError
from app.jobs.job import Status
from app.jobs.service import JobService
from app.live.metrics import LiveMetrics
from app.recording.fleet import WhisperFleet

_TICK_S = 0.5  # between two rounds of events
_COUNT_S = 1.0  # between two counts of the jobs that wait
_PATIENCE_S = 1.0  # the first client waits so long for figures of GPUs and jobs
_MOST_WAITING = 20  # events for one client, which gets a new snapshot beyond that
_BLOCKS_AT_ONCE = 200  # are encoded before the event loop goes on

log = structlog.get_logger("whisperfleet.api")


class _Mailbox:
    """The events that one client has not taken yet."""

    def __init__(self) -> None:
        self.needs_snapshot = True
        self.wakeup = Wakeup()
        self._events: deque[str] = deque()

    def put(self, event: str) -> None:
        if self.needs_snapshot:
            return  # it will have this event, too
        if len(self._events) == _MOST_WAITING:
            self._events.clear()
            self.needs_snapshot = True
        else:
            self._events.append(event)
        self.wakeup.set()

    def take(self) -> str:
        """All events that wait."""
        events = "".join(self._events)
        self._events.clear()
        return events


class WorkerEvents:
    """Watches the fleet while there are clients, and notifies all of them of the same changes."""

    def __init__(self, fleet: WhisperFleet, others: OtherFleets, jobs: JobService, live: LiveMetrics) -> None:
        self._fleet = fleet
        self._others = others
        self._jobs = jobs
        self._live = live
        self._mailboxes: set[_Mailbox] = set()
        self._state: FleetState | None = None  # None: not known yet, or nobody listens
        self._waiting_jobs: int | None = None
        self._counted = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._is_closed = False

    def close(self) -> None:
        """End all streams: the service will stop soon."""
        self._is_closed = True
        for mailbox in self._mailboxes:
            mailbox.wakeup.set()

    async def stream(self) -> AsyncGenerator[str]:
        """The encoded events for one client, until `close`."""
        with self._listen() as mailbox:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._fleet.gpus.sample()
                    await self._others.refresh()
                    await self._counted.wait()
            while not self._is_closed:
                if mailbox.needs_snapshot:
                    yield await self._snapshot(mailbox)
                elif events := mailbox.take():
                    yield events
                else:
                    await mailbox.wakeup.wait()

    @contextmanager
    def _listen(self) -> Iterator[_Mailbox]:
        mailbox = _Mailbox()
        self._mailboxes.add(mailbox)
        if not self._loops:
            self._loops = [asyncio.create_task(self._publish_forever())]
            self._loops.append(asyncio.create_task(self._count_forever()))
        try:
            yield mailbox
        finally:
            self._mailboxes.discard(mailbox)
            if not self._mailboxes:
                for loop in self._loops:
                    loop.cancel()
                self._loops, self._state = [], None
                self._counted.clear()

    async def _publish_forever(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self._fleet.gpus.refresh()
            try:
                await self._others.refresh()
                if self._state is not None:
                    self._publish(self._state)
            except Exception:  # the next round may succeed
                log.exception("changes of the workers not published")

    def _publish(self, state: FleetState) -> None:
        """Notify all clients of what has changed."""
        clips, oldest_s = self._fleet.backlog()
        queues = self._others.queues
        queue = {
            "clips": clips + sum(queue["clips"] for queue in queues),
            "oldest_s": round(max([oldest_s, *(queue["oldest_s"] for queue in queues)]), 1),
            "jobs": self._waiting_jobs,
            "streams": self._live.open + sum(queue["streams"] for queue in queues),
        }
        blocks = self._fleet.ledger.blocks_after(state.last_block)
        for event in state.update(time.time(), self._others.beside(self._fleet.workers()), blocks, queue):
            text = f"event: {event.name}\ndata: {_json(event.data)}\n\n"
            for mailbox in self._mailboxes:
                mailbox.put(text)

    async def _snapshot(self, mailbox: _Mailbox) -> str:
        """The event `fleet`. The mailbox gets all events after it."""
        if self._state is None:
            self._state = FleetState(self._fleet.ledger.last_block)
            self._publish(self._state)
        data, blocks = self._state.snapshot(time.time(), self._fleet.ledger.blocks_after(0))
        mailbox.take()
        mailbox.needs_snapshot = False
        parts = []
        for first in range(0, len(blocks), _BLOCKS_AT_ONCE):
            some = blocks[first : first + _BLOCKS_AT_ONCE]
            parts.append(_json([block.public() for block in some])[1:-1])
            await asyncio.sleep(0)
        return f'event: fleet\ndata: {_json(data)[:-1]},"blocks":[{",".join(parts)}]}}\n\n'

    async def _count_forever(self) -> None:
        """Count the jobs that wait; None while the database does not answer."""
        while True:
            try:
                self._waiting_jobs = await self._jobs.store.count([Status.QUEUED])
            except WhisperfleetError:
                self._waiting_jobs = None
            self._counted.set()
            await asyncio.sleep(_COUNT_S)


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
