"""The channels of a recording through their pipelines, without processes and models."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import ClipFailed
from app.common.options import Options
from app.intake.uploads import Upload
from app.media.pcm_files import channel_path
from app.pool.helper import Helper
from app.recording.channels import ChannelPipelines
from app.recording.clip_decoding import ClipKey
from app.recording.clip_planner import DEMO_MAX_SILENCE_SAMPLES
from app.recording.recording_work import Observer, Progress, TranscriptionWork
from app.recording.result_cache import CachedClipResults
from app.transcript.edited import EditedSegment
from app.transcript.timeline import Transcript
from tests.recording.test_pipeline import FakeFleet, FakeMedia, clip_result
from workers.messages import Decoded, RecordingWarning, Segment, Span, WindowResult

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

CLIPS = 4


class ChannelMedia(FakeMedia):
    """A `MediaPool` with a recording of channels 0 and 2. The second has speech in its first half only."""

    def __init__(self) -> None:
        super().__init__(CLIPS)
        self.decoded = 0

    async def decode(self, job: str, upload: Upload, pcm_path: Path, *how: object) -> AsyncGenerator[Decoded]:
        assert how[-1] is True, "each channel by itself"
        self.decoded += 1
        for channel in (0, 2):
            channel_path(pcm_path, channel).write_bytes(bytes(2 * self.samples))
        yield Decoded(self.samples // 2, False, ())
        yield Decoded(self.samples, True, (), (0, 2))

    async def speech_probabilities(
        self, job: str, pcm_path: Path, start: int, frames: int, *beside: Path
    ) -> Any:
        assert {pcm_path, *beside} == {channel_path(pcm_path.with_suffix(""), channel) for channel in (0, 2)}
        found = await super().speech_probabilities(job, pcm_path, start, frames)
        if pcm_path.suffix == ".2":
            found[len(found) // 2 :] = 0
        return found


class ChannelFleet(FakeFleet):
    def __init__(self, failing: Sequence[int] = ()) -> None:
        super().__init__(self.result)
        self.failing = failing
        self.cancelled: list[str] = []

    def result(self, number: int, language: str | None) -> WindowResult:
        if number in self.failing:
            raise RuntimeError("a broken clip")
        return clip_result(number, language)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)


class Seen(Observer):
    def __init__(self) -> None:
        self.decodings: list[Decoded] = []
        self.progress: list[Progress] = []
        self.clips: list[tuple[int, Span, ClipKey | None, int | None]] = []
        self.segments: list[Segment] = []

    def decoded(self, decoded: Decoded) -> None:
        self.decodings.append(decoded)

    def progressed(self, progress: Progress) -> None:
        self.progress.append(progress)

    def transcribed(self, segments: Sequence[Segment]) -> None:
        self.segments += segments

    def published(self, clip: Span, key: ClipKey | None, channel: int = 0, until: int | None = None) -> None:
        self.clips.append((channel, clip, key, until))


def pipelines(
    folder: Path,
    media: ChannelMedia,
    fleet: ChannelFleet,
    seen: Seen,
    decoded: Decoded | None = None,
    **options: object,
) -> ChannelPipelines:
    work = TranscriptionWork(
        job="job",
        upload=Upload(folder / "upload", "call.wav", 1, ""),
        media_pool=media,  # type: ignore[arg-type]
        dispatcher=fleet,  # type: ignore[arg-type]
        pcm_path=folder / "pcm",
        observer=seen,
        helper=Helper(),
        options=Options.model_validate(options),
        model="demo",
        results=CachedClipResults(),
        max_silence=DEMO_MAX_SILENCE_SAMPLES,
        max_duration_s=200,
        decoded=decoded,
    )
    return ChannelPipelines(work)


async def transcribe(folder: Path, seen: Seen, **options: object) -> tuple[Transcript, ChannelFleet]:
    fleet = ChannelFleet()
    return await pipelines(folder, ChannelMedia(), fleet, seen, **options).run(), fleet


async def test_each_channel_is_transcribed_and_all_are_joined(tmp_path: Path) -> None:
    seen = Seen()
    transcript, fleet = await transcribe(tmp_path, seen, channels="separate", speaker_names="Ann,Eve,Bob")
    segments = [segment for segment in transcript.segments if isinstance(segment, EditedSegment)]
    assert len(segments) == len(transcript.segments) == len(fleet.requested) == CLIPS + CLIPS // 2
    assert [segment.speaker for segment in segments] == ["Ann", "Bob"] * (CLIPS // 2) + ["Ann"] * (CLIPS // 2)
    assert sum(segment.id.endswith("-2") for segment in segments) == CLIPS // 2
    assert seen.segments == list(transcript.segments)
    [decoded] = seen.decodings
    assert decoded.channels == (0, 2)


async def test_progress_is_the_mean_of_the_channels(tmp_path: Path) -> None:
    seen = Seen()
    transcript, _ = await transcribe(tmp_path, seen)
    for before, after in zip(seen.progress, seen.progress[1:], strict=False):
        assert after.done_s >= before.done_s
        assert after.clips_done >= before.clips_done
        assert after.done_s <= (after.total_s or after.decoded_s) <= transcript.seconds
    last = seen.progress[-1]
    assert last.clips_done == last.clips_total == CLIPS + CLIPS // 2
    assert last.total_s == transcript.seconds


async def test_published_clips_say_how_far_all_channels_are(tmp_path: Path) -> None:
    seen = Seen()
    transcript, _ = await transcribe(tmp_path, seen)
    for channel, number in ((0, CLIPS), (2, CLIPS // 2)):
        own = [clip for of, clip, _, _ in seen.clips if of == channel]
        assert own == sorted(own)
        assert len(own) == number
    ends = dict.fromkeys((0, 2), 0)
    for channel, clip, key, until in seen.clips:
        assert key is not None
        assert key[3] == channel
        ends[channel] = clip[1]
        assert until is not None
        assert until <= max(ends.values())
        if ends[2] < transcript.clips[CLIPS // 2 - 1][1]:
            assert until <= ends[2], "the second channel still has clips to come"


async def test_an_earlier_run_has_decoded_all(tmp_path: Path) -> None:
    for channel in (0, 2):
        channel_path(tmp_path / "pcm", channel).write_bytes(bytes(2 * ChannelMedia().samples))
    media, seen = ChannelMedia(), Seen()
    warning = RecordingWarning("cut_off", "The file ends at 0:16 of 3:03.", 16, 183)
    decoded = Decoded(media.samples, channels=(0, 2), warnings=(warning,))
    transcript = await pipelines(tmp_path, media, ChannelFleet(), seen, decoded).run()
    assert media.decoded == 0
    assert transcript.warnings == (warning,)
    assert len(transcript.segments) == CLIPS + CLIPS // 2


async def test_one_broken_clip_ends_all_channels(tmp_path: Path) -> None:
    media, fleet = ChannelMedia(), ChannelFleet(failing=(1,))
    made = pipelines(tmp_path, media, fleet, Seen())
    with pytest.raises(ClipFailed):
        await made.run()
    assert made.errors == []
    assert media.cancelled == fleet.cancelled == ["job"], "once, when all have ended"


async def test_a_partial_transcript_lacks_a_clip_of_one_channel(tmp_path: Path) -> None:
    made = pipelines(tmp_path, ChannelMedia(), ChannelFleet(failing=(1,)), Seen(), allow_partial=True)
    transcript = await made.run()
    assert (len(transcript.failed_spans), len(made.errors)) == (1, 1)
    assert len(transcript.segments) == CLIPS + CLIPS // 2 - 1


async def test_cancelling_ends_all_channels(tmp_path: Path) -> None:
    fleet = ChannelFleet()
    blocked = asyncio.Event()

    async def submit(*_: object, **__: object) -> Any:
        blocked.set()
        await asyncio.Event().wait()

    fleet.submit = submit  # type: ignore[method-assign]
    work = asyncio.create_task(pipelines(tmp_path, ChannelMedia(), fleet, Seen()).run())
    await blocked.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert fleet.cancelled == ["job"]
