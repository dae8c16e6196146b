"""Webhooks: what waits in the outbox is delivered, as Standard Webhooks says, until it is or time is up."""

import asyncio
import re
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Protocol

import httpcore
import structlog
from standardwebhooks import Webhook

from app.jobs.webhook_client import WebhookClient, check_webhook_url
from workers.addresses import Resolver

__all__ = ["RETRY_AFTER_S", "Delivery", "Outbox", "Webhooks", "check_webhook_url"]

MINUTE, HOUR = 60.0, 3600.0
# After each attempt that failed; after the last one there is no more.
RETRY_AFTER_S = (5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 24 * HOUR)

MAX_IN_FLIGHT = 8
MAX_PER_HOST = 4  # so that a slow receiver does not hold up all others
_STEP_ASIDE_S = 2.0  # for a delivery whose host is busy
_LOOK_AGAIN_S = 1.0  # while something is overdue
_OUTBOX_RETRY_S = 5.0  # where the outbox fails
_MAX_SLEEP_S = 60.0  # clocks are set, and others may write to the outbox
_GONE = 410

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook that is to be sent."""

    id: str  # the webhook-id, the same at each attempt
    url: str
    body: str  # JSON
    attempts: int  # that have failed


class Outbox(Protocol):
    """Where deliveries are kept until they have arrived; it outlives the process."""

    async def due(self, now: float) -> list[Delivery]:
        """Those to be sent by `now` (unix time), the longest due first, some 20 at most."""

    async def next_due(self) -> float | None:
        """When the next one is to be sent (unix time)."""

    async def delivered(self, id: str) -> None:
        """It has arrived: forget it."""

    async def put_off(self, id: str, attempts: int, next_at: float) -> None:
        """Send it at `next_at` (unix time); `attempts` have failed."""

    async def give_up(self, id: str) -> None:
        """It will not arrive: forget it."""


class Webhooks:
    """Delivers what is in the outbox. Wake it when something was put in there.

    A delivery that is under way when this stops, or the process ends, stays in the outbox and is sent once
    more: receivers tell by the id.
    """

    def __init__(
        self,
        outbox: Outbox,
        secret: str | None,
        allow_private: bool,
        *,
        clock: Callable[[], float] = time.time,
        resolver: Resolver = socket.getaddrinfo,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._outbox = outbox
        self._signer = Webhook(secret) if secret is not None else None
        self._receivers = WebhookClient(allow_private, resolver, backend)
        self._clock = clock
        self._awake = asyncio.Event()
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._hosts: Counter[str] = Counter()  # of those in flight
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to deliver, in the background."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End at once."""
        tasks = [task for task in (self._task, *self._in_flight.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._task = None
        await self._receivers.close()

    def wake(self) -> None:
        """Look into the outbox now."""
        self._awake.set()

    async def _run(self) -> None:
        while True:
            self._awake.clear()
            try:
                await self._send_due()
                wait_s = await self._until_next()
            except Exception as error:
                log.error("the outbox of webhooks cannot be read; trying again", error=repr(error))
                wait_s = _OUTBOX_RETRY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._awake.wait()

    async def _send_due(self) -> None:
        """Begin every delivery that is due, as far as there is room."""
        for delivery in await self._outbox.due(self._clock()):
            if len(self._in_flight) >= MAX_IN_FLIGHT:
                return
            if delivery.id in self._in_flight:
                continue
            host = _host(delivery)
            if self._hosts[host] >= MAX_PER_HOST:
                await self._outbox.put_off(delivery.id, delivery.attempts, self._clock() + _STEP_ASIDE_S)
                continue
            self._hosts[host] += 1
            task = asyncio.get_running_loop().create_task(self._deliver(delivery))
            self._in_flight[delivery.id] = task
            task.add_done_callback(partial(self._landed, delivery))

    async def _until_next(self) -> float:
        """How long nothing is to be done, unless one is woken."""
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            return _MAX_SLEEP_S  # whichever lands wakes us
        next_at = await self._outbox.next_due()
        if next_at is None:
            return _MAX_SLEEP_S
        wait_s = next_at - self._clock()
        # What is in flight is still in the outbox, and hides what else will be due while it lasts.
        return min(wait_s, _MAX_SLEEP_S) if wait_s > 0 else _LOOK_AGAIN_S

    def _landed(self, delivery: Delivery, _: asyncio.Task[None]) -> None:
        del self._in_flight[delivery.id]
        self._hosts[_host(delivery)] -= 1
        self._hosts += Counter()  # forget those at zero
        self.wake()

    async def _deliver(self, delivery: Delivery) -> None:
        """Send it once, and note in the outbox what became of it."""
        settle = await self._attempt(delivery)
        while True:
            try:
                await settle()
                return
            except Exception as error:
                # To send it again would be wrong, now that it may have arrived.
                log.error(
                    "the outbox of webhooks cannot be written; trying again",
                    id=delivery.id,
                    error=repr(error),
                )
                await asyncio.sleep(_OUTBOX_RETRY_S)

    async def _attempt(self, delivery: Delivery) -> Callable[[], Awaitable[None]]:
        """Send it once. What the outbox is to do now."""
        try:
            status = await self._receivers.post(delivery.url, self._headers(delivery), delivery.body.encode())
            fault = f"status {status}"
        except Exception as error:  # whatever it is: what raised here and stayed due would be sent for ever
            status, fault = None, str(error) if isinstance(error, OSError) else repr(error)
        note = log.bind(id=delivery.id, host=_host(delivery), attempt=delivery.attempts + 1)
        if status is not None and 200 <= status < 300:
            note.info("webhook delivered")
            return partial(self._outbox.delivered, delivery.id)
        if status == _GONE:
            note.warning("webhook given up: its receiver is gone for good", fault=fault)
            return partial(self._outbox.give_up, delivery.id)
        if delivery.attempts >= len(RETRY_AFTER_S):
            note.error("webhook given up: no attempt arrived", fault=fault)
            return partial(self._outbox.give_up, delivery.id)
        retry_s = RETRY_AFTER_S[delivery.attempts]
        next_at = self._clock() + retry_s
        note.warning("webhook failed", fault=fault, retry_s=retry_s)
        return partial(self._outbox.put_off, delivery.id, delivery.attempts + 1, next_at)

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        # Each attempt is signed anew: receivers take no timestamp that is older than minutes.
        timestamp = int(self._clock())
        headers = {
            "user-agent": f"whisperfleet/{version('whisperfleet')}",
            "content-type": "application/json",
            "webhook-id": delivery.id,
            "webhook-timestamp": str(timestamp),
        }
        if self._signer is not None:
            headers["webhook-signature"] = self._signer.sign(
                delivery.id, datetime.fromtimestamp(timestamp, UTC), delivery.body
            )
        return headers


def _host(delivery: Delivery) -> str:
    """What tells receivers apart. Parses nothing, so that no URL can hold up the others."""
    return re.split("[/?#]", delivery.url.partition("//")[2], maxsplit=1)[0].lower()
