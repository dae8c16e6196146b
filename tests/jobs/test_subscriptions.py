"""The events that subscribers get."""

import asyncio

from app.jobs.events import Event, Subscriptions

FIRST, SECOND = Event(1, "job.queued", "{}"), Event(2, "job.running", "{}")


def received(queue: "asyncio.Queue[Event | None]") -> list[Event | None]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


def test_each_subscriber_gets_all_events_of_its_job_and_no_others() -> None:
    subscriptions = Subscriptions()
    subscriptions.publish("a", FIRST)  # before there are subscribers
    with (
        subscriptions.subscribe("a") as one,
        subscriptions.subscribe("a") as two,
        subscriptions.subscribe("b") as other,
    ):
        subscriptions.publish("a", FIRST)
        subscriptions.publish("a", SECOND)
        assert [received(one), received(two), received(other)] == [[FIRST, SECOND], [FIRST, SECOND], []]


def test_ended_subscriptions_are_removed() -> None:
    subscriptions = Subscriptions()
    with subscriptions.subscribe("a") as stays:
        with subscriptions.subscribe("a") as ends:
            pass
        subscriptions.publish("a", FIRST)
        assert (received(stays), received(ends)) == ([FIRST], [])
    assert not subscriptions._queues
    subscriptions.publish("a", SECOND)
    assert not subscriptions._queues, "publishing without subscribers added a queue"


def test_closing_ends_all_subscriptions() -> None:
    subscriptions = Subscriptions()
    with subscriptions.subscribe("a") as one, subscriptions.subscribe("b") as other:
        subscriptions.publish("a", FIRST)
        subscriptions.close()
        assert (received(one), received(other)) == ([FIRST, None], [None])
