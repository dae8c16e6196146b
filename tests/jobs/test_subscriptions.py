"""Who is told of what."""

import asyncio

from app.jobs.store import Event
from app.jobs.subscriptions import Subscriptions

FIRST, SECOND = Event(1, "job.queued", "{}"), Event(2, "job.running", "{}")


def told(queue: "asyncio.Queue[Event | None]") -> list[Event | None]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


def test_each_follower_is_told_all_of_its_job_and_nothing_of_others() -> None:
    followers = Subscriptions()
    followers.tell("a", FIRST)  # before anybody listens
    with followers.follow("a") as one, followers.follow("a") as two, followers.follow("b") as other:
        followers.tell("a", FIRST)
        followers.tell("a", SECOND)
        assert [told(one), told(two), told(other)] == [[FIRST, SECOND], [FIRST, SECOND], []]


def test_who_leaves_is_forgotten() -> None:
    followers = Subscriptions()
    with followers.follow("a") as stays:
        with followers.follow("a") as leaves:
            pass
        followers.tell("a", FIRST)
        assert (told(stays), told(leaves)) == ([FIRST], [])
    assert not followers._queues
    followers.tell("a", SECOND)
    assert not followers._queues, "not for those either whom nobody follows"


def test_all_are_dismissed() -> None:
    followers = Subscriptions()
    with followers.follow("a") as one, followers.follow("b") as other:
        followers.tell("a", FIRST)
        followers.dismiss()
        assert (told(one), told(other)) == ([FIRST, None], [None])
