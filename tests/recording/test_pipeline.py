"""The path of a recording through the pipeline, without processes and models."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.common.errors import ClipFailed, InsufficientQuota, TaskCrashes
from app.common.options import Options
from app.engines.window_request import WindowRequest
from app.intake.budgets import Allowance, Budgets
from app.intake.uploads import Upload
from app.pool.helper import Helper
from app.pool.tasks import TaskResult
from app.recording.clip_decoding import ClipKey
from app.recording.clip_planner import DEMO_MAX_SILENCE_SAMPLES, MAX_SILENCE_SAMPLES
from app.recording.pipeline import Pipeline
from app.recording.recording_work import Observer, Progress, TranscriptionWork
from app.recording.result_cache import CachedClipResults, ClipResults
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.timeline import Transcript
from workers.messages import FRAME_SAMPLES, SAMPLE_RATE, Decoded, Segment, Span, WindowResult

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

PERIOD_S = 10  # five seconds of speech, five of silence: one clip

Answer = Callable[[int, str | None], WindowResult]  # of a window's number and the language asked for


class FakeMedia:
    """A `MediaPool` with a recording of so many clips. Decodes a minute at a time."""

    def __init__(self, clips: int, worker_count: int = 4, speech_s: float = 5) -> None:
        self.worker_count = worker_count
        self.samples = clips * PERIOD_S * SAMPLE_RATE
        self.speech_s = speech_s  # of each period
        self.searched_s = 0.0  # of the recording, for speech
        self.cancelled: list[str] = []

    async def decode(self, job: str, upload: Upload, pcm_path: Path, *how: object) -> AsyncGenerator[Decoded]:
        for samples in range(60 * SAMPLE_RATE, self.samples, 60 * SAMPLE_RATE):
            yield Decoded(samples, False, (), declared=self.samples)
        yield Decoded(self.samples, True, ())

    async def speech_probabilities(self, job: str, pcm_path: Path, start: int, frames: int) -> Any:
        await asyncio.sleep(0)
        self.searched_s = (start + frames) * FRAME_SAMPLES / SAMPLE_RATE
        seconds = (start + np.arange(frames)) * FRAME_SAMPLES / SAMPLE_RATE
        return np.where(seconds % PERIOD_S < self.speech_s, 1.0, 0.0).astype(np.float32)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)


class FakeFleet:
    """A `Dispatcher` that gets its results from `answer`. The later a window, the sooner it is done."""

    prefetch_limit = 100

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requested: list[tuple[int, str | None]] = []  # the windows' numbers and languages
        self.keys: list[object] = []
        self.first: list[int] = []  # the numbers of the windows that come before new clips
        self.cancelled: list[str] = []

    async def submit(
        self,
        job: str,
        request: WindowRequest,
        *,
        key: object,
        crash_count: int,
        isolated: bool,
        on_crash: Callable[[int], None],
        size: float,
        weight: int,
        continues: bool,
        urgent: bool,
    ) -> TaskResult[WindowResult]:
        number = len(self.requested)
        language = request.for_worker().decoding.language
        self.requested.append((number, language))
        self.keys.append(key)
        self.first += [number] if continues else []
        await asyncio.sleep(0.02 / (1 + number))
        return TaskResult(self.answer(number, language), 0, 0)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)


class SequentialFleet(FakeFleet):
    """Reads the next window only after the pipeline has processed the result of the last one."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self._turn = asyncio.Lock()

    async def submit(self, job: str, request: WindowRequest, **how: Any) -> TaskResult[WindowResult]:
        async with self._turn:
            for _ in range(20):
                await asyncio.sleep(0)
            return await super().submit(job, request, **how)


class Texts(Observer):
    """The texts of the segments that a pipeline has published."""

    wants_segments = True

    def __init__(self) -> None:
        self.texts: list[str] = []

    def transcribed(self, segments: Sequence[Segment]) -> None:
        self.texts += [segment.text for segment in segments]


def clip_result(number: int, language: str | None = None, *, detected: str = "en") -> WindowResult:
    """The result of the only window of a clip."""
    probs = () if language else ((detected, 0.9), ("xx", 0.1))
    segment = Segment(0, 5 * SAMPLE_RATE, f" clip {number}", (), 0, 0, 1, 0)
    return WindowResult(language or detected, probs, (segment,), None, 9, -0.1, 0.0, 1.0)


def failing(numbers: Collection[int], error: Exception = RuntimeError("cuBLAS failed")) -> Answer:
    """Windows with these numbers fail."""

    def answer(number: int, language: str | None) -> WindowResult:
        if number in numbers:
            raise error
        return clip_result(number, language)

    return answer


def new_pipeline(
    folder: Path,
    fleet: FakeFleet,
    media: FakeMedia | None = None,
    observer: Observer | None = None,
    results: ClipResults | None = None,
    max_silence: int = DEMO_MAX_SILENCE_SAMPLES,
    known: Sequence[KnownSpeaker] = (),
    decoded: Decoded | None = None,
    allowance: Allowance | None = None,
    model: str = "demo",
    **options: object,
) -> Pipeline:
    """A pipeline for a recording; by default, of eight clips."""
    media = media or FakeMedia(clips=8)
    with (folder / "pcm").open("wb") as pcm:
        pcm.truncate(2 * media.samples)
    work = TranscriptionWork(
        job="job",
        upload=Upload(folder / "upload", "talk.wav", 1, ""),
        options=Options.model_validate(options),
        model=model,
        media_pool=media,  # type: ignore[arg-type]
        dispatcher=fleet,  # type: ignore[arg-type]
        pcm_path=folder / "pcm",
        results=results or CachedClipResults(),
        helper=Helper(),
        observer=observer or Observer(),
        max_duration_s=200,
        max_silence=max_silence,
        known=known,
        decoded=decoded,
        allowance=allowance,
    )
    return Pipeline(work)


async def transcribe(folder: Path, fleet: FakeFleet, *more: Any, **options: Any) -> Transcript:
    """The transcript of a recording, as `new_pipeline` takes it."""
    return await new_pipeline(folder, fleet, *more, **options).run()


@pytest.mark.parametrize(("minutes", "reserved"), [(1.3, []), (1.4, [80, 80])])
async def test_the_length_is_reserved_as_soon_as_the_file_is_open(
    tmp_path: Path, minutes: float, reserved: list[float]
) -> None:
    (tmp_path / "budgets").write_text(f"*:{minutes}")
    allowance = Allowance(Budgets(tmp_path / "budgets"), "alice")
    seen: list[float] = []

    class Lengths(Observer):
        def progressed(self, progress: Progress) -> None:
            if progress.clips_done == 0:
                seen.append(allowance.reserved)

    fleet = FakeFleet(clip_result)
    work = transcribe(tmp_path, fleet, observer=Lengths(), allowance=allowance, language="en")
    if reserved:
        await work
    else:
        with pytest.raises(InsufficientQuota, match=r"1\.3 of your 1\.3 minutes"):
            await work
        assert fleet.requested == []
    assert seen[:2] == reserved


async def test_the_length_is_expected_as_the_file_gives_it_until_all_is_decoded(tmp_path: Path) -> None:
    expected = []

    class Lengths(Observer):
        def progressed(self, progress: Progress) -> None:
            expected.append((progress.decoded_s, progress.total_s, progress.expected_s))

    await transcribe(tmp_path, FakeFleet(clip_result), observer=Lengths(), language="en")
    assert expected[0] == (60, None, 80)
    assert expected[-1] == (80, 80, 80)
    assert Progress(decoded_s=90, declared_s=80).expected_s == 90  # the file was wrong
    assert Progress(decoded_s=90).expected_s is None


async def test_a_recording_that_an_earlier_run_decoded_is_not_decoded_again(tmp_path: Path) -> None:
    class Tracks(Observer):
        def decoded(self, decoded: Decoded) -> None:
            raise AssertionError("those that are stored would be lost")

    media, fleet = FakeMedia(8), FakeFleet(clip_result)
    decoded = Decoded(media.samples)
    media.samples = 0
    transcript = await transcribe(tmp_path, fleet, media, Tracks(), decoded=decoded, language="en")
    assert (transcript.samples, len(transcript.clips)) == (decoded.samples, 8)


@pytest.mark.parametrize(("max_silence", "clips"), [(DEMO_MAX_SILENCE_SAMPLES, 8), (MAX_SILENCE_SAMPLES, 3)])
async def test_pauses_of_three_seconds_are_inside_clips_or_between_them(
    tmp_path: Path, max_silence: int, clips: int
) -> None:
    silent = WindowResult("en", (), (), None, 0, -2.0, 0.9, 1.0)
    fleet = FakeFleet(lambda number, language: silent)
    await transcribe(tmp_path, fleet, FakeMedia(8, speech_s=7), max_silence=max_silence, language="en")
    assert len(fleet.requested) == clips


async def test_one_result_is_published_in_each_turn_of_the_event_loop(tmp_path: Path) -> None:
    """Hundreds may wait for the first clip: the loop must not be held until all are merged and packed."""
    turn = 0
    turns: list[int] = []

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    class Turns(Observer):
        wants_segments = True

        def transcribed(self, segments: Sequence[Segment]) -> None:
            turns.append(turn)

    counting = asyncio.create_task(count_turns())
    await transcribe(tmp_path, FakeFleet(clip_result), observer=Turns(), language="en")  # the first is last
    counting.cancel()
    assert len(turns) == len(set(turns)) == 8


@pytest.mark.parametrize("media_workers", [1, 4])
async def test_speech_detection_stays_close_to_the_workers(tmp_path: Path, media_workers: int) -> None:
    ahead: list[float] = []
    media = FakeMedia(120, media_workers)

    def answer(number: int, language: str | None) -> WindowResult:
        ahead.append(media.searched_s / PERIOD_S - number)
        return clip_result(number, language)

    fleet = SequentialFleet(answer)
    fleet.prefetch_limit = 2
    transcript = await transcribe(tmp_path, fleet, media=media, language="en")
    assert len(transcript.segments) == 120
    # So many minutes are searched before the first clips are known. A clip is certain only with the next.
    assert max(ahead) <= 2 + (16 * media_workers + 1) * 60 / PERIOD_S


class SlowMedia(FakeMedia):
    """Answers no chunk before `released`."""

    def __init__(self, clips: int, worker_count: int) -> None:
        super().__init__(clips, worker_count)
        self.released = asyncio.Event()
        self.in_flight = self.most_in_flight = 0

    async def speech_probabilities(self, job: str, pcm_path: Path, start: int, frames: int) -> Any:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await self.released.wait()
        self.in_flight -= 1
        return await super().speech_probabilities(job, pcm_path, start, frames)


@pytest.mark.parametrize("workers", [1, 3, 16])
async def test_each_media_worker_has_two_requests_in_flight(tmp_path: Path, workers: int) -> None:
    media = SlowMedia(1300, workers)
    transcribing = asyncio.create_task(
        transcribe(tmp_path, FakeFleet(clip_result), media=media, language="en")
    )
    for _ in range(200):  # the recording has 217 chunks, and is decoded by then
        await asyncio.sleep(0)
    assert media.in_flight == 2 * workers
    media.released.set()
    assert len((await transcribing).segments) == 1300
    assert media.most_in_flight == 2 * workers


async def test_the_first_clips_elect_the_language_and_an_outvoted_one_is_transcribed_again(
    tmp_path: Path,
) -> None:
    def answer(number: int, language: str | None) -> WindowResult:
        return clip_result(number, language, detected="de" if number == 1 else "en")

    fleet = FakeFleet(answer)
    assert (await transcribe(tmp_path, fleet)).language == "en"
    assert fleet.requested[:3] == [(0, None), (1, None), (2, None)]
    assert [entry for entry in fleet.requested if entry[1]] == [(8, "en")], "the second clip again"
    assert fleet.first == [8], "before clips whose text comes after its own"


@pytest.mark.parametrize("detected", ["en", "de"])
async def test_a_clip_transcribed_before_the_vote_is_transcribed_again_only_if_its_language_lost(
    tmp_path: Path, detected: str
) -> None:
    fleet = FakeFleet(
        lambda number, language: clip_result(number, language, detected=detected if number == 5 else "en")
    )
    transcript = await transcribe(tmp_path, fleet)
    assert transcript.language == "en"
    assert [language for _, language in fleet.requested[:8]] == [None] * 8, "no clip waits for the vote"
    assert set(fleet.keys[:3]).isdisjoint(fleet.keys[3:8]), "and no vote waits for other clips"
    assert fleet.requested[8:] == ([] if detected == "en" else [(8, "en")])
    assert f"clip {5 if detected == 'en' else 8}" in transcript.text


async def test_a_clip_whose_turn_comes_after_the_vote_is_transcribed_in_the_elected_language(
    tmp_path: Path,
) -> None:
    fleet = SequentialFleet(clip_result)
    await transcribe(tmp_path, fleet)
    assert [language for _, language in fleet.requested] == [None] * 3 + ["en"] * 5


async def test_the_error_for_a_failed_clip_names_its_span(tmp_path: Path) -> None:
    fleet = FakeFleet(failing([4], TaskCrashes("3 processes crashed on it")))
    with pytest.raises(ClipFailed, match=r"from 3\d\.\d\d s to 4\d\.\d\d s .* 3 processes crashed"):
        await transcribe(tmp_path, fleet, language="en")


async def test_what_is_queued_for_nobody_is_cancelled(tmp_path: Path) -> None:
    fleet, media = FakeFleet(failing([4])), FakeMedia(clips=8)
    with pytest.raises(ClipFailed):
        await transcribe(tmp_path, fleet, media, language="en")
    assert media.cancelled == fleet.cancelled == ["job"], "after an error"
    fleet, media = FakeFleet(clip_result), FakeMedia(clips=20)
    assert await new_pipeline(tmp_path, fleet, media).detect_language() == ("en", pytest.approx(0.9))
    assert media.cancelled == fleet.cancelled == ["job"], "the rest says nothing more about the language"


@pytest.mark.parametrize("language", ["en", None])
@pytest.mark.parametrize("failed", [{4}, {0}, {0, 1, 2}])
async def test_a_partial_transcript_lacks_only_the_failed_clips(
    tmp_path: Path, failed: set[int], language: str | None
) -> None:
    fleet = FakeFleet(failing(failed))
    transcript = await transcribe(tmp_path, fleet, language=language, allow_partial=True)
    assert len(transcript.failed_spans) == len(failed)
    assert len(transcript.segments) == 8 - len(failed)
    start, end = transcript.failed_spans[0]
    assert round(start / SAMPLE_RATE / PERIOD_S) == min(failed)
    assert 4 < (end - start) / SAMPLE_RATE < 6


async def test_if_all_voters_fail_no_clip_is_transcribed_twice(tmp_path: Path) -> None:
    def answer(number: int, requested: str | None) -> WindowResult:
        if number < 3:
            raise RuntimeError("cuBLAS failed")
        return clip_result(number, requested, detected="de" if number == 4 else "en")

    fleet = FakeFleet(answer)
    transcript = await transcribe(tmp_path, fleet, allow_partial=True)
    assert len(fleet.requested) == 8
    assert transcript.language == "en"


class VotingFleet(FakeFleet):
    """Its third clip is Spanish or Galician, and fails in the elected language; the others, Portuguese."""

    def __init__(self) -> None:
        super().__init__(clip_result)
        self.prefetch_limit = 3

    async def submit(self, job: str, request: WindowRequest, **how: Any) -> TaskResult[WindowResult]:
        answer = await super().submit(job, request, **how)
        is_third = round(request.start / SAMPLE_RATE / PERIOD_S) == 2
        if request.decoding.language is None:
            probs = {"es": 0.5, "gl": 0.45, "pt": 0.05} if is_third else {"pt": 0.55, "gl": 0.45}
            result = replace(answer.result, language=next(iter(probs)), language_probs=tuple(probs.items()))
            return TaskResult(result, 0, 0)
        if is_third:
            raise RuntimeError("cuBLAS failed")
        return answer


async def test_a_clip_that_fails_after_its_vote_does_not_change_the_language(tmp_path: Path) -> None:
    """Without the vote of the third clip, Portuguese would win over Galician."""
    fleet, media = VotingFleet(), FakeMedia(100)
    transcript = await transcribe(tmp_path, fleet, media, allow_partial=True)
    assert len(transcript.failed_spans) == 1
    assert {language for _, language in fleet.requested} == {None, "gl"}


class Published(Observer):
    """The clips that a pipeline has published, and how many segments it had before each."""

    wants_segments = True

    def __init__(self) -> None:
        self.clips: list[tuple[Span, ClipKey | None]] = []
        self.segments = 0
        self.before: list[int] = []

    def transcribed(self, segments: Sequence[Segment]) -> None:
        self.segments += len(segments)

    def published(self, clip: Span, key: ClipKey | None) -> None:
        self.clips.append((clip, key))
        self.before.append(self.segments)


@pytest.mark.parametrize(("language", "requested"), [("de", "de"), (None, None)])
async def test_each_clip_is_published_in_order_with_its_segments_and_the_key_of_its_result(
    tmp_path: Path, language: str | None, requested: str | None
) -> None:
    published = Published()
    transcript = await transcribe(tmp_path, FakeFleet(clip_result), observer=published, language=language)
    assert published.clips == [((start, end), (start, end, requested, 0)) for start, end in transcript.clips]
    assert len(transcript.clips) == 8
    assert published.before == list(range(1, 9))
    for (start, end), segment in zip(transcript.clips, transcript.segments, strict=True):
        assert start <= segment.start < segment.end <= end


async def test_an_outvoted_clip_is_published_with_the_key_of_the_result_that_counts(tmp_path: Path) -> None:
    published = Published()
    fleet = FakeFleet(
        lambda number, language: clip_result(number, language, detected="de" if number == 1 else "en")
    )
    await transcribe(tmp_path, fleet, observer=published)
    assert [key and key[2] for _, key in published.clips] == [None, "en"] + [None] * 6


async def test_a_failed_clip_is_published_without_a_key_and_is_no_part_of_the_transcript(
    tmp_path: Path,
) -> None:
    published = Published()
    transcript = await transcribe(
        tmp_path, FakeFleet(failing([4])), observer=published, language="en", allow_partial=True
    )
    assert [key is None for _, key in published.clips] == [number == 4 for number in range(8)]
    assert published.clips[4][0] == transcript.failed_spans[0]
    assert transcript.clips == tuple(clip for clip, key in published.clips if key is not None)


async def test_nothing_is_published_after_a_clip_that_fails_the_job(tmp_path: Path) -> None:
    published = Published()
    with pytest.raises(ClipFailed):
        await transcribe(tmp_path, SequentialFleet(failing([4])), observer=published, language="en")
    assert len(published.clips) == 4


async def test_published_text_is_in_the_script_of_the_request(tmp_path: Path) -> None:
    def answer(number: int, language: str | None) -> WindowResult:
        result = clip_result(number, language)
        return replace(result, segments=tuple(replace(segment, text="国") for segment in result.segments))

    texts = Texts()
    await transcribe(tmp_path, FakeFleet(answer), observer=texts, language="zh", chinese="traditional")
    assert texts.texts == ["國"] * 8
    texts = Texts()
    await transcribe(tmp_path, FakeFleet(answer), observer=texts, language="ja", chinese="traditional")
    assert texts.texts == ["国"] * 8


class Bilingual:
    """English in the first five clips, then French; in each, the model is sure."""

    async def submit(self, job: str, request: WindowRequest, **how: Any) -> TaskResult[WindowResult]:
        await super().submit(job, request, **how)  # type: ignore[misc]
        window = request.for_worker()
        spoken = "en" if request.end < 5 * PERIOD_S * SAMPLE_RATE else "fr"
        language = window.decoding.language or spoken
        result = clip_result(
            request.start // (PERIOD_S * SAMPLE_RATE), window.decoding.language, detected=spoken
        )
        text = replace(result.segments[0], text=f" {language}")
        probs = tuple(((spoken, 0.95),) for _ in window.stretches)
        return TaskResult(replace(result, segments=(text,), stretch_probs=probs), 0, 0)


class BilingualFleet(Bilingual, FakeFleet): ...


class SequentialBilingualFleet(Bilingual, SequentialFleet): ...


@pytest.mark.parametrize("fleet", [BilingualFleet, SequentialBilingualFleet])
async def test_people_are_transcribed_in_their_language_in_whatever_order_results_come(
    tmp_path: Path, fleet: type[FakeFleet]
) -> None:
    transcript = await transcribe(tmp_path, fleet(clip_result))
    assert [segment.language for segment in transcript.segments] == ["en"] * 5 + ["fr"] * 3
    assert transcript.text == "en en en en en fr fr fr"
    assert (transcript.language, list(transcript.languages or ())) == ("en", ["en", "fr"])


async def test_one_language_may_be_asked_for_all_clips(tmp_path: Path) -> None:
    transcript = await transcribe(tmp_path, BilingualFleet(clip_result), multilingual=False)
    assert transcript.text == "en en en en en en en en"
    assert {segment.language for segment in transcript.segments} <= {None, "en"}
