"""Dispatchers that end with their test."""

from collections.abc import AsyncIterator

import pytest

from app.scheduling.dispatcher import Dispatcher
from app.scheduling.tasks import Slot
from tests.scheduling.fake_slots import NewDispatcher


@pytest.fixture
async def new_dispatcher() -> AsyncIterator[NewDispatcher]:
    """Makes dispatchers for slots, and stops them after the test. The test starts them."""
    made: list[Dispatcher[str, str]] = []

    def make(*slots: Slot[str, str], waits_for_slots: bool = False) -> Dispatcher[str, str]:
        made.append(Dispatcher[str, str]("worker", slots, waits_for_slots=waits_for_slots))
        return made[-1]

    yield make
    for dispatcher in made:
        await dispatcher.stop()
