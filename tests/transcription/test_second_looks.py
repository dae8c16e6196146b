"""A second look at doubtful clips, with the text to the left: when there is one, and what counts."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.engines.window_request import WindowRequest
from app.scheduling.tasks import TaskResult
from app.transcript.timeline import ClipResult
from app.transcription.clip_decoding import better_look, is_doubtful_clip
from app.transcription.result_cache import CachedClipResults
from tests.transcription.test_pipeline import FakeMedia, Texts, transcribe
from workers.messages import SAMPLE_RATE, Segment, WindowResult

pytestmark = pytest.mark.anyio


def result(
    text: str, logprob: float, tokens: int = 60, ratio: float = 1.0, language: str = "en"
) -> ClipResult:
    segment = Segment(0, 5 * SAMPLE_RATE, text, tuple(range(tokens)), 0, logprob, ratio, 0)
    return ClipResult(language, (), (segment,))


def test_a_clip_full_of_unsure_text_is_doubtful() -> None:
    assert is_doubtful_clip(result("unsure", -0.5))
    assert not is_doubtful_clip(result("sure", -0.1))
    assert not is_doubtful_clip(result("short", -0.5, tokens=9))
    assert not is_doubtful_clip(ClipResult("en", (), ()))


def test_the_second_look_counts_if_it_is_surer_of_as_much_text() -> None:
    first = result("He said so. She did, too.", -0.5)
    surer = result("He said so, she did too.", -0.2)
    assert better_look(first, surer) is surer
    assert better_look(first, result(surer.segments[0].text, -0.5)) is first
    assert better_look(first, result(surer.segments[0].text, -0.4995)) is first
    assert better_look(first, result("He said so.", -0.1)) is first
    assert better_look(first, result("He said so. He said so. He said so.", -0.1)) is first
    assert better_look(first, result(surer.segments[0].text, -0.1, ratio=3.0)) is first
    assert better_look(first, ClipResult("en", (), ())) is first


class Looks:
    """A `Dispatcher` that is unsure of some clips until they have a prompt. Later windows are done sooner."""

    prefetch_limit = 100

    def __init__(self, unsure: set[int], delays: Callable[[int], float]) -> None:
        self.unsure = unsure
        self.delays = delays
        self.prompts: dict[int, str | None] = {}  # of second looks, by clip

    async def submit(self, job: str, request: WindowRequest, **how: Any) -> TaskResult[WindowResult]:
        clip = request.end // (10 * SAMPLE_RATE)
        prompt = request.decoding.prompt
        await asyncio.sleep(self.delays(clip))
        again = how["continues"]
        if again:
            self.prompts[clip] = prompt
        logprob = -0.5 if clip in self.unsure and not again else -0.1
        text = f" clip {clip} {'again' if again else 'first'}"
        segment = Segment(0, 5 * SAMPLE_RATE, text, tuple(range(60)), 0, logprob, 1, 0)
        return TaskResult(WindowResult("en", (), (segment,), None, 60, logprob, 0.0, 1.0), 0, 0)

    def cancel(self, job: str) -> None: ...


@pytest.mark.parametrize("slow", ["first ones", "last ones"])
async def test_doubtful_clips_are_looked_at_again_with_what_the_first_look_found_to_the_left(
    tmp_path: Path, slow: str
) -> None:
    fleet = Looks({0, 2, 3}, lambda clip: 0.01 * (5 - clip if slow == "first ones" else clip))
    published = Texts()
    await transcribe(tmp_path, fleet, FakeMedia(5), language="en", prompt="Names: Ann.", observer=published)
    assert fleet.prompts == {2: "Names: Ann. clip 1 first", 3: "Names: Ann. clip 2 first"}
    assert published.texts == [
        f" clip {number} {'again' if number in (2, 3) else 'first'}" for number in range(5)
    ]


async def test_what_was_stored_is_not_looked_at_again(tmp_path: Path) -> None:
    results = CachedClipResults()
    for unsure in ({2}, {2}):
        fleet = Looks(unsure, lambda clip: 0)
        published = Texts()
        await transcribe(tmp_path, fleet, FakeMedia(4), language="en", results=results, observer=published)
        assert published.texts[2] == " clip 2 again"
    assert fleet.prompts == {}


async def test_there_is_none_with_sampling(tmp_path: Path) -> None:
    fleet = Looks({1}, lambda clip: 0)
    await transcribe(tmp_path, fleet, FakeMedia(3), language="en", temperature=0.5)
    assert fleet.prompts == {}
