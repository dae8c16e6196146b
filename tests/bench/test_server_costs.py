"""What bench.scale says of the server's process."""

import contextvars
from functools import partial
from pathlib import Path

import pytest

from app.engines.window_request import WindowRequest
from app.jobs.storage.store import Store
from bench import cpu_parts
from bench.server_tables import full_at

ROOT = Path(__file__).parents[2]


def test_each_named_file_of_a_part_exists() -> None:
    own = [
        fragment.partition(":")[0] for fragment in cpu_parts.PARTS if fragment.startswith(("/app", "/work"))
    ]
    assert len(own) > 10
    assert [name for name in own if not (ROOT / name.strip("/")).exists()] == []


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (WindowRequest.batch_key.fget, "dispatcher"),
        (Store.begin, "database"),
        (partial(contextvars.copy_context().run, Store.begin, 1), "database"),
        (partial(Store.begin, 1), "database"),
        (len, cpu_parts.REST),
    ],
)
def test_a_call_in_a_pool_counts_for_the_part_of_its_function(function: object, part: str) -> None:
    assert cpu_parts.part_of_call(function) == part


def test_a_core_feeds_as_many_gpus_as_take_all_of_its_time() -> None:
    assert full_at(0.9, 400) == 10  # an hour in 9 s by each
    assert full_at(1.0, 400) == 9
