"""Delivers the webhooks in the outbox, signed and retried as Standard Webhooks specifies."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from importlib.metadata import version

import httpcore
import structlog
from standardwebhooks import Webhook

from app.common.concurrency import Wakeup, end_tasks
from app.jobs.webhooks.client import WebhookClient
from app.jobs.webhooks.outbox import MOST_OF_OWNER, Delivery, Outbox, host_of
from app.jobs.webhooks.places import MAX_IN_FLIGHT, Place, Places, places_at
from workers.addresses import AddressRefused, Resolver

MINUTE, HOUR = 60.0, 3600.0
# The delay after each failed attempt. When all are used up, the delivery is given up.
RETRY_AFTER_S = (5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 24 * HOUR)

_OVERDUE_POLL_S = 1.0  # while a delivery is overdue
_OUTBOX_RETRY_S = 5.0  # after an error of the outbox
_MAX_SLEEP_S = 60.0  # another process may write to the outbox
_GONE = 410

log = structlog.get_logger(__name__)


class Attempt(StrEnum):
    """How an attempt to deliver a webhook ended."""

    DELIVERED = "delivered"  # the receiver accepted it
    RETRIED = "retried"  # it failed, and a later one follows
    GIVEN_UP = "given_up"  # it failed, and was the last one; or too many of the owner's wait


class Webhooks:
    """Delivers the webhooks in the outbox. Call `wake` after adding one.

    A delivery that is in flight when this stops, or when the process ends, stays in the outbox and is sent
    again: receivers recognise it by its id.
    """

    def __init__(
        self,
        outbox: Outbox,
        secret: str | None,
        allow_private: bool,
        service_clock: Callable[[], float] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        resolver: Resolver = socket.getaddrinfo,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        """`service_clock`: what deliveries wait by, without one `clock`, whose Unix time (s) is signed."""
        self._outbox = outbox
        self._signer = Webhook(secret) if secret is not None else None
        self._client = WebhookClient(allow_private, resolver, backend)
        self._clock = clock
        self._service_clock = service_clock or clock
        self._wakeup = Wakeup()
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._places = Places()  # of the deliveries in flight
        self.attempts: Counter[Attempt] = Counter()  # since the start of the service
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to deliver in the background."""
        self._task = asyncio.create_task(self._run(), name="webhooks")

    async def stop(self) -> None:
        """Stop at once."""
        await end_tasks(self._task, *self._in_flight.values())

    def wake(self) -> None:
        """Check the outbox now."""
        self._wakeup.set()

    def added(self, job_id: str, given_up: int) -> None:
        """There is a webhook of a job. `given_up`: how many others of its owner are not: too many wait."""
        if given_up:
            log.error("webhooks given up: too many wait", job=job_id, count=given_up, most=MOST_OF_OWNER)
            self.attempts[Attempt.GIVEN_UP] += given_up
        self.wake()

    async def _run(self) -> None:
        while True:
            try:
                await self._send_due()
                sleep_s = await self._sleep_s()
            except Exception as error:
                log.error("the outbox of webhooks cannot be read; retrying", error=repr(error))
                sleep_s = _OUTBOX_RETRY_S
            await self._wakeup.wait(sleep_s)

    async def _send_due(self) -> None:
        """Start the deliveries that are due, up to the limits."""
        while len(self._in_flight) < MAX_IN_FLIGHT:
            # Without those in flight now: an attempt that ends meanwhile would be read before its outcome.
            due = await self._outbox.due(self._service_clock(), list(self._in_flight), *self._places.busy())
            if not sum(map(self._start, due)):
                return

    def _start(self, delivery: Delivery) -> bool:
        """Start a delivery. Returns whether it has a place."""
        places = self._places.of((delivery.owner, delivery.host))
        if len(self._in_flight) >= MAX_IN_FLIGHT or not self._places.take(places):
            return False
        task = asyncio.create_task(self._deliver(delivery))
        self._in_flight[delivery.id] = task
        task.add_done_callback(partial(self._delivery_ended, delivery, places))
        return True

    async def _sleep_s(self) -> float:
        """The time until the next delivery is due, in s."""
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            return _MAX_SLEEP_S  # the end of any of them wakes the loop
        next_at = await self._outbox.next_due()
        if next_at is None:
            return _MAX_SLEEP_S
        wait_s = next_at - self._service_clock()
        # Deliveries in flight are still in the outbox, and so are those without a place.
        return min(wait_s, _MAX_SLEEP_S) if wait_s > 0 else _OVERDUE_POLL_S

    def _delivery_ended(self, delivery: Delivery, places: list[Place], _: asyncio.Task[None]) -> None:
        del self._in_flight[delivery.id]
        self._places.release(places)
        self.wake()

    async def _deliver(self, delivery: Delivery) -> None:
        """Send a webhook once, and store the outcome in the outbox. Without a place, it stays due."""
        update_outbox: Callable[[], Awaitable[None]] | None = None
        while True:
            try:
                if update_outbox is None:
                    if not await self._outbox.claim(delivery.id, self._service_clock()):
                        return  # another front end sends it
                    update_outbox = await self._attempt(delivery)
                await update_outbox()
                return
            except Exception as error:
                # Only the outbox is retried: the receiver may have accepted the webhook already.
                log.error(
                    "the outbox of webhooks cannot be written; retrying",
                    id=delivery.id,
                    error=repr(error),
                )
                await asyncio.sleep(_OUTBOX_RETRY_S)

    async def _attempt(self, delivery: Delivery) -> Callable[[], Awaitable[None]]:
        """Send a webhook once, unless too many are on their way to its addresses.

        Returns the update of the outbox that stores the outcome. Never raises.
        """
        try:
            addresses = await self._client.resolve(delivery.url)
            places = places_at(delivery.owner, addresses)
            if not self._places.take_at_addresses((delivery.owner, delivery.host), places):
                return partial(self._outbox.release, delivery.id, self._service_clock())
            try:
                headers, body = self._headers(delivery), delivery.body.encode()
                status = await self._client.post(delivery.url, addresses, headers, body)
            finally:
                self._places.release(places)
            fault = f"status {status}"
        except Exception as error:  # all of them: a delivery that stayed due would be sent again for ever
            is_clear = isinstance(error, OSError | AddressRefused)
            status, fault = None, str(error) if is_clear else repr(error)
        bound_log = log.bind(id=delivery.id, host=host_of(delivery.url), attempt=delivery.attempts + 1)
        has_succeeded = status is not None and 200 <= status < 300
        self._places.tried((delivery.owner, delivery.host), failed=not has_succeeded)
        outcome = Attempt.DELIVERED if has_succeeded else Attempt.GIVEN_UP
        update_outbox: Callable[[], Awaitable[None]] = partial(self._outbox.remove, delivery.id)
        if has_succeeded:
            bound_log.info("webhook delivered")
        elif status == _GONE:
            bound_log.warning("webhook given up: its receiver is gone for good", fault=fault)
        elif delivery.attempts >= len(RETRY_AFTER_S):
            bound_log.error("webhook given up: all attempts failed", fault=fault)
        else:
            outcome, retry_s = Attempt.RETRIED, RETRY_AFTER_S[delivery.attempts]
            next_at = self._service_clock() + retry_s
            update_outbox = partial(self._outbox.postpone, delivery.id, delivery.attempts + 1, next_at)
            bound_log.warning("webhook failed; retrying", fault=fault, retry_s=retry_s)
        self.attempts[outcome] += 1
        return update_outbox

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        # Each attempt gets a new signature: receivers reject timestamps that are minutes old.
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
