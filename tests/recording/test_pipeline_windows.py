"""The path of clips that take two windows each through the pipeline."""

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.common.errors import ClipFailed
from app.engines.window_request import WindowRequest, expected_tokens
from app.pool.tasks import TaskResult
from app.recording.result_cache import CachedClipResults
from tests.event_loop import let_tasks_run
from tests.recording.test_pipeline import PERIOD_S, FakeFleet, clip_result, transcribe
from workers.messages import SAMPLE_RATE, Segment, WindowResult

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

CLIPS = 8
CLOSED = 3 * SAMPLE_RATE  # of the five seconds of a clip, which its first window transcribes


class Submitted(NamedTuple):
    clip: int
    request: WindowRequest
    how: dict[str, Any]


class TwoWindows(FakeFleet):
    """The first window of each clip leaves text for a second one."""

    def __init__(self) -> None:
        super().__init__(clip_result)
        self.submitted: list[Submitted] = []
        self.has_all_clips = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def submit(self, job: str, request: WindowRequest, **how: Any) -> TaskResult[WindowResult]:
        window = Submitted(round(request.start / SAMPLE_RATE) // PERIOD_S, request, how)
        self.submitted.append(window)
        if len(self.submitted) == CLIPS:
            self.has_all_clips.set()
        await super().submit(job, request, **how)
        await self.may_answer.wait()
        return TaskResult(self.decode(window), 0, 0)

    def decode(self, window: Submitted) -> WindowResult:
        language = window.request.decoding.language
        text = f" {window.clip}{'b' if window.how['continues'] else 'a'}"
        end = window.request.end - window.request.start
        closed, tail = Segment(0, end, text, (), 0, 0, 1, 0), None
        if not window.how["continues"]:
            closed, tail = Segment(0, CLOSED, text, (), 0, 0, 1, 0), Segment(CLOSED, end, "", (), 0, 0, 1, 0)
        probs = () if language else ((f"language{window.clip % 2}", 0.9),)
        return WindowResult(
            language or f"language{window.clip % 2}", probs, (closed,), tail, 9, -0.1, 0.0, 1.0
        )

    def windows_of(self) -> dict[int, list[Submitted]]:
        """By clip, in the order in which they were submitted."""
        windows = defaultdict(list)
        for window in self.submitted:
            windows[window.clip].append(window)
        return windows


async def test_the_next_window_of_a_clip_continues_it_with_the_speech_that_is_left(tmp_path: Path) -> None:
    fleet = TwoWindows()
    transcript = await transcribe(tmp_path, fleet, language="en", beam_size=3)
    assert transcript.text == " ".join(f"{clip}a {clip}b" for clip in range(CLIPS))
    assert sorted(fleet.windows_of()) == [*range(CLIPS)]
    for first, second in fleet.windows_of().values():
        seek, [(start, end)] = first.request.start + CLOSED, first.request.speech
        assert start < seek < end
        assert (second.request.start, second.request.end) == (seek, first.request.end)
        assert second.request.speech == ((seek, end),)
        assert (first.how["continues"], second.how["continues"]) == (False, True)
        assert second.how["size"] == expected_tokens([(seek, end)]) < first.how["size"]
        assert (second.how["weight"], second.how["key"]) == (3, second.request.batch_key)


async def test_the_next_window_is_in_the_language_of_its_clip(tmp_path: Path) -> None:
    fleet = TwoWindows()
    await transcribe(tmp_path, fleet, multilingual=True)
    for clip, (first, second) in fleet.windows_of().items():
        assert first.request.decoding.language is None
        assert second.request.decoding.language == f"language{clip % 2}"


async def test_a_crash_of_any_window_isolates_the_others_of_its_clip(tmp_path: Path) -> None:
    class Crashing(TwoWindows):
        def decode(self, window: Submitted) -> WindowResult:
            if window.clip == 2:
                window.how["on_crash"](window.how["crash_count"] + 1)
            return super().decode(window)

    fleet, results = Crashing(), CachedClipResults()
    await transcribe(tmp_path, fleet, language="en", results=results)
    windows = fleet.windows_of()
    isolated = {clip: [window.how["isolated"] for window in windows[clip]] for clip in windows}
    assert isolated == {clip: [False, clip == 2] for clip in range(CLIPS)}
    first = windows[2][0].request
    assert results.is_suspect((first.start, first.end, "en", 0))


async def test_a_job_that_is_cancelled_between_two_windows_of_a_clip_submits_no_further_one(
    tmp_path: Path,
) -> None:
    fleet, results = TwoWindows(), CachedClipResults()
    fleet.may_answer.clear()
    job = asyncio.create_task(transcribe(tmp_path, fleet, language="en", results=results))
    await fleet.has_all_clips.wait()
    job.cancel()
    await asyncio.wait([job])
    assert job.cancelled()
    fleet.may_answer.set()  # for the windows that were in flight
    await asyncio.sleep(0.05)
    await let_tasks_run()
    assert [window.how["continues"] for window in fleet.submitted] == [False] * CLIPS
    retry = TwoWindows()
    transcript = await transcribe(tmp_path, retry, language="en", results=results)
    assert transcript.text.endswith("7a 7b")
    assert len(retry.submitted) == 2 * CLIPS, "no clip was finished"


@pytest.mark.parametrize("allow_partial", [False, True])
async def test_an_error_of_a_further_window_fails_the_whole_clip(tmp_path: Path, allow_partial: bool) -> None:
    class Failing(TwoWindows):
        def decode(self, window: Submitted) -> WindowResult:
            if window.clip == 4 and window.how["continues"]:
                raise RuntimeError("no such token")
            return super().decode(window)

    fleet = Failing()
    if not allow_partial:
        with pytest.raises(ClipFailed, match=r"from 39\.67 s to 45\.35 s .*: no such token"):
            await transcribe(tmp_path, fleet, language="en")
        return
    transcript = await transcribe(tmp_path, fleet, language="en", allow_partial=True)
    first = fleet.windows_of()[4][0].request
    assert transcript.failed_spans == ((first.start, first.end),)
    assert transcript.text == " ".join(f"{clip}a {clip}b" for clip in range(CLIPS) if clip != 4)
