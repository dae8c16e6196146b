"""The blocks of work that are kept: whose clips they had, how many, and for how long."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.engines.window_request import WindowRequest
from app.ids import ID
from app.scheduling.tasks import Outcome, Task
from app.transcription import work_blocks
from app.transcription.work_blocks import KEPT_S, FleetBatch, WorkBlocks, bare_id, new_request
from workers.messages import SAMPLE_RATE, Decoding

SECRET = "/data/pcm/recording of another key"


def batch(jobs: Sequence[str], start: float, end: float, slot: int = 0) -> FleetBatch:
    window = WindowRequest(Path(SECRET), SAMPLE_RATE, 5 * SAMPLE_RATE, (), Decoding("demo", prompt=SECRET))
    future: asyncio.Future = asyncio.Future(loop=asyncio.new_event_loop())
    tasks = [Task(job, window, None, None, 0, lambda count: None, 0.0, 1, False, future) for job in jobs]
    return FleetBatch(slot, tasks, start, end)


def test_a_block_says_whose_clips_were_transcribed() -> None:
    blocks = WorkBlocks()
    request = new_request()
    blocks.add(batch(["9b2e", request, "9b2e"], 100.0004, 102.5, slot=3), Outcome.OK)
    [block] = blocks.after(0)
    assert block.public() == {
        "id": 1,
        "slot": 3,
        "jobs": [
            {"job": "9b2e", "kind": "job", "clips": 2},
            {"job": request, "kind": "request", "clips": 1},
        ],
        "start": 100.0,
        "end": 102.5,
        "clips": 3,
        "audio_s": 12.0,
        "outcome": "ok",
    }


def test_blocks_after_an_id() -> None:
    blocks = WorkBlocks()
    for second in range(5):
        blocks.add(batch(["job"], second, second + 1), Outcome.OK)
    assert [block.id for block in blocks.after(0)] == [1, 2, 3, 4, 5]
    assert [block.id for block in blocks.after(3)] == [4, 5]
    assert blocks.after(5) == []
    assert blocks.last_id == 5


def test_blocks_are_kept_for_some_minutes() -> None:
    blocks = WorkBlocks()
    for end in (1.0, 2.0, KEPT_S + 1.5):
        blocks.add(batch(["job"], end - 1, end), Outcome.OK)
    assert [block.id for block in blocks.after(0)] == [2, 3]


def test_the_number_of_blocks_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_blocks, "_MOST_KEPT", 3)
    blocks = WorkBlocks()
    for _ in range(10):
        blocks.add(batch(["job"], 1, 2), Outcome.OK)
    assert [block.id for block in blocks.after(0)] == [8, 9, 10]


def test_names_of_requests_differ_and_have_an_id() -> None:
    requests = {new_request() for _ in range(10)}
    assert len(requests) == 10
    # The next start removes files with such names only.
    assert all(ID.fullmatch(bare_id(request)) for request in requests)
    assert bare_id("9b2e") == "9b2e"
