"""The way of a recording, with media and workers that do as they are told."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.errors import ClipFailed, InvalidInput, TaskCrashes, TooLarge
from app.media.uploads import Upload
from app.options import Options
from app.scheduling.tasks import Done
from app.transcript.timeline import Transcript
from app.transcription.pipeline import Pipeline
from app.transcription.result_cache import CachedRecording
from workers.messages import FRAME_SAMPLES, SAMPLE_RATE, Clip, ClipResult, Segment

pytestmark = pytest.mark.timeout(20)

PERIOD_S = 10  # five seconds of speech, five of silence: a clip each


class FakeMedia:
    """A recording of so many clips, decoded a minute at a time."""

    def __init__(self, clips: int) -> None:
        self.samples = clips * PERIOD_S * SAMPLE_RATE
        self.looked_at_s = 0.0  # s of the recording
        self.cancelled: list[str] = []

    async def decode(self, job: str, upload: Upload, pcm_path: Path) -> AsyncGenerator[tuple[int, bool]]:
        for samples in range(60 * SAMPLE_RATE, self.samples, 60 * SAMPLE_RATE):
            yield samples, False
        yield self.samples, True

    async def speech_probabilities(self, job: str, pcm_path: Path, start: int, frames: int) -> Any:
        await asyncio.sleep(0)
        self.looked_at_s = (start + frames) * FRAME_SAMPLES / SAMPLE_RATE
        seconds = (start + np.arange(frames)) * FRAME_SAMPLES / SAMPLE_RATE
        return np.where(seconds % PERIOD_S < 5, 1.0, 0.0).astype(np.float32)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)


class FakeFleet:
    """Hears `answer(number of the clip, asked language)`; the later a clip, the sooner it is done."""

    prefetch_limit = 100

    def __init__(self, answer: Callable[[int, str | None], ClipResult]) -> None:
        self.answer = answer
        self.asked: list[tuple[int, str | None]] = []
        self.keys: list[object] = []

    async def submit(
        self,
        job: str,
        source: Callable[[], Clip],
        *,
        key: object,
        deaths: int,
        on_crash: Callable[[int], None],
        size: float,
    ) -> Done[ClipResult]:
        clip = source()
        number = len(self.asked)
        language = clip.decoding.language
        self.asked.append((number, language))
        self.keys.append(key)
        await asyncio.sleep(0.02 / (1 + number))
        return Done(self.answer(number, language), 0, 0)

    def cancel(self, job: str) -> None: ...


class OneByOne(FakeFleet):
    """Hears the next clip when the last one's result has been taken in."""

    def __init__(self, answer: Callable[[int, str | None], ClipResult]) -> None:
        super().__init__(answer)
        self._turn = asyncio.Lock()

    async def submit(self, job: str, source: Callable[[], Clip], **how: Any) -> Done[ClipResult]:
        async with self._turn:
            for _ in range(20):
                await asyncio.sleep(0)
            return await super().submit(job, source, **how)


def said(number: int, language: str | None = None, *, heard: str = "en") -> ClipResult:
    probs = () if language else ((heard, 0.9), ("xx", 0.1))
    segment = Segment(0, SAMPLE_RATE, f" clip {number}", (), 0, 0, 1, 0)
    return ClipResult(language or heard, probs, (segment,))


def run(
    tmp_path: Path,
    fleet: FakeFleet,
    clips: int = 8,
    told: list[str] | None = None,
    media: FakeMedia | None = None,
    max_duration_s: float = 200,
    **options: object,
) -> Transcript:
    media = media or FakeMedia(clips)
    (tmp_path / "pcm").write_bytes(bytes(2 * media.samples))
    pipeline = Pipeline(
        job="job",
        upload=Upload(tmp_path / "upload", "talk.wav", 1, ""),
        options=Options.model_validate(options),
        model="demo",
        media=media,  # type: ignore[arg-type]
        fleet=fleet,  # type: ignore[arg-type]
        pcm_path=tmp_path / "pcm",
        clip_results=CachedRecording(),
        max_duration_s=max_duration_s,
        on_segments=lambda segments: (told if told is not None else []).extend(s.text for s in segments),
    )
    return asyncio.run(pipeline.run())


def test_segments_are_told_in_order_whichever_clip_is_done_first(tmp_path: Path) -> None:
    told: list[str] = []
    transcript = run(tmp_path, FakeFleet(said), told=told, language="en")
    assert told == [f" clip {number}" for number in range(8)]
    assert transcript.text == "".join(told).strip()
    assert transcript.samples == 80 * SAMPLE_RATE
    assert len(transcript.speech) == 8


def test_speech_is_not_looked_for_much_further_than_the_workers_are(tmp_path: Path) -> None:
    ahead: list[float] = []
    media = FakeMedia(120)

    def answer(number: int, language: str | None) -> ClipResult:
        ahead.append(media.looked_at_s / PERIOD_S - number)
        return said(number, language)

    fleet = OneByOne(answer)
    fleet.prefetch_limit = 2
    transcript = run(tmp_path, fleet, media=media, max_duration_s=2000, language="en")
    assert len(transcript.segments) == 120
    # Eight minutes are looked at before the first clips are known, and what is certain only with the next.
    assert max(ahead) <= 2 + 9 * 60 / PERIOD_S


def test_the_first_clips_choose_the_language_and_the_outvoted_is_heard_again(tmp_path: Path) -> None:
    def answer(number: int, language: str | None) -> ClipResult:
        return said(number, language, heard="de" if number == 1 else "en")

    fleet = FakeFleet(answer)
    assert run(tmp_path, fleet).language == "en"
    assert fleet.asked[:3] == [(0, None), (1, None), (2, None)]
    assert [asked for asked in fleet.asked if asked[1]] == [(8, "en")], "the second clip again"


@pytest.mark.parametrize("heard", ["en", "de"])
def test_a_clip_is_heard_before_the_vote_and_again_only_if_that_went_otherwise(
    tmp_path: Path, heard: str
) -> None:
    fleet = FakeFleet(lambda number, language: said(number, language, heard=heard if number == 5 else "en"))
    transcript = run(tmp_path, fleet)
    assert transcript.language == "en"
    assert [language for _, language in fleet.asked[:8]] == [None] * 8, "nobody waits for the vote"
    assert set(fleet.keys[:3]).isdisjoint(fleet.keys[3:8]), "and no vote waits for them"
    assert fleet.asked[8:] == ([] if heard == "en" else [(8, "en")])
    assert f"clip {5 if heard == 'en' else 8}" in transcript.text


def test_a_clip_whose_turn_comes_after_the_vote_is_heard_in_the_elected_language(tmp_path: Path) -> None:
    fleet = OneByOne(said)
    run(tmp_path, fleet)
    assert [language for _, language in fleet.asked] == [None] * 3 + ["en"] * 5


def test_a_language_that_was_given_is_asked_for_at_once(tmp_path: Path) -> None:
    fleet = FakeFleet(said)
    run(tmp_path, fleet, language="de")
    assert {language for _, language in fleet.asked} == {"de"}


def test_a_clip_that_fails_fails_the_recording_and_is_named(tmp_path: Path) -> None:
    def answer(number: int, language: str | None) -> ClipResult:
        if number == 4:
            raise TaskCrashes("3 processes crashed on it")
        return said(number, language)

    with pytest.raises(ClipFailed, match=r"from 3\d\.\d\d s to 4\d\.\d\d s .* 3 processes crashed"):
        run(tmp_path, FakeFleet(answer), language="en")


@pytest.mark.parametrize("language", ["en", None])
@pytest.mark.parametrize("failing", [{4}, {0}, {0, 1, 2}])
def test_where_that_is_allowed_the_rest_is_given_without_it(
    tmp_path: Path, failing: set[int], language: str | None
) -> None:
    def answer(number: int, asked: str | None) -> ClipResult:
        if number in failing:
            raise RuntimeError("cuBLAS is in a bad mood")
        return said(number, asked or None)

    transcript = run(tmp_path, FakeFleet(answer), language=language, allow_partial=True)
    assert len(transcript.failed_spans) == len(failing)
    assert len(transcript.segments) == 8 - len(failing)
    start, end = transcript.failed_spans[0]
    assert round(start / SAMPLE_RATE / PERIOD_S) == min(failing)
    assert 4 < (end - start) / SAMPLE_RATE < 6


def test_a_recording_that_is_too_long_is_refused_when_that_is_known(tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="longer than 200 s"):
        run(tmp_path, FakeFleet(said), clips=30)


def test_a_file_that_kills_decoders_is_given_up(tmp_path: Path) -> None:
    """Each new child decodes it anew and gets as far as the step before the deadly one."""
    from app.media.pool import MediaPool
    from workers.media.tasks import DecodeStep

    class Deadly:
        steps = 0

        async def submit(self, job: str, call: Any, *, key: object, home: int | None) -> Done[DecodeStep]:
            self.steps += 1
            deaths = 0 if self.steps == 1 else 1
            return Done(DecodeStep(60 * SAMPLE_RATE, False, None), 0, deaths)

    async def decode() -> None:
        media = MediaPool(1)
        media._dispatcher = Deadly()  # type: ignore[assignment]
        async for _ in media.decode("job", Upload(tmp_path / "x", "x", 1, ""), tmp_path / "pcm"):
            pass

    with pytest.raises(InvalidInput, match="crash or hang"):
        asyncio.run(decode())
