"""What `whisperfleet serve` does with its process."""

import gc
import sys
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from app.commands.serve import SWITCH_INTERVAL_S, keep_loop_free


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.unfreeze()


def test_collections_skip_all_objects_of_the_start_and_the_schema_is_there() -> None:
    app = FastAPI()
    keep_loop_free(app)
    assert gc.get_freeze_count() > 10_000
    assert app.openapi_schema is not None
    assert "anyio._backends._asyncio" in sys.modules
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
