"""What `whisperfleet serve` does with its process."""

import gc
import sys
from collections.abc import Iterator

import pytest

from app.commands.serve import SWITCH_INTERVAL_S, keep_loop_free


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.unfreeze()
    gc.enable()


def test_collections_begin_with_the_service_and_skip_all_objects_of_the_start() -> None:
    gc.disable()
    keep_loop_free()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    assert "anyio._backends._asyncio" in sys.modules
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
