"""Dispatchers that end with their test."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.pool.dispatcher import Dispatcher
from app.pool.tasks import Slot
from tests.pool.fake_slots import NewDispatcher


@pytest.fixture
async def new_dispatcher() -> AsyncIterator[NewDispatcher]:
    """Makes dispatchers for slots, and stops them after the test. The test starts them."""
    made: list[Dispatcher[str, str]] = []

    def make(*slots: Slot[str, str], **options: Any) -> Dispatcher[str, str]:
        made.append(Dispatcher[str, str]("worker", slots, **options))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.stop()


@pytest.fixture
def serve(new_dispatcher: NewDispatcher) -> NewDispatcher:
    """As `new_dispatcher`, but starts them."""

    def make(*slots: Slot[str, str], awake: int | None = None, **options: Any) -> Dispatcher[str, str]:
        dispatcher = new_dispatcher(*slots, **options)
        dispatcher.start(awake)
        return dispatcher

    return make
