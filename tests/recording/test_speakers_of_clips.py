"""The voices in the clips of a recording, and the speakers of its transcript."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from app.common.errors import ClipFailed, DiskFull, SpeakerModelUnavailable, TaskCrashes
from app.engines.window_request import WindowRequest
from app.pool.tasks import TaskResult
from app.recording.result_cache import CachedClipResults, ClipResults
from app.transcript.edited import EditedSegment, speaker_of, with_ids
from app.transcript.packed import PackedSegments
from app.transcript.speakers.labelling import KnownSpeaker, SpeakerCount
from app.transcript.speakers.voices import unpack_voices
from app.transcript.timeline import Transcript
from tests.event_loop import no_error_left, until
from tests.recording.test_pipeline import PERIOD_S, FakeFleet, FakeMedia, clip_result, transcribe
from workers.messages import SAMPLE_RATE, Span

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

CLIPS = 8


class Labelled(NamedTuple):
    """What the speakers of a transcript were found from."""

    voices: Sequence[bytes]
    count: SpeakerCount
    names: Sequence[str]
    known: Sequence[KnownSpeaker]


@pytest.fixture
def labelled(monkeypatch: pytest.MonkeyPatch) -> list[Labelled]:
    """All calls that label transcripts. Each clip has another speaker."""
    calls: list[Labelled] = []

    def with_speakers(transcript: Transcript, *how: Any) -> Transcript:
        calls.append(Labelled(*how))
        segments = with_ids(transcript.segments, transcript.clips)
        spoken = [replace(segment, speaker=f"S{n}") for n, segment in enumerate(segments, 1)]
        return replace(transcript, segments=tuple(spoken))

    def voice_windows(speech: Iterable[Span]) -> tuple[Span, ...]:
        return tuple(speech)

    monkeypatch.setattr("app.recording.speakers.with_speakers", with_speakers)
    monkeypatch.setattr("app.recording.speakers.voice_windows", voice_windows)
    return calls


class Voices(FakeMedia):
    """Embeds voices, those of the last clip first. The embedding of a window is its number."""

    def __init__(self, fail: Callable[[int], Exception | None] = lambda clip: None) -> None:
        super().__init__(CLIPS)
        self.fail = fail
        self.embedded: list[int] = []
        self.may_embed = asyncio.Event()
        self.may_embed.set()

    async def embed_voices(
        self, job: str, pcm_path: Path, windows: Sequence[Span]
    ) -> npt.NDArray[np.float32]:
        clip = round(windows[0][0] / SAMPLE_RATE / PERIOD_S)
        self.embedded.append(clip)
        await self.may_embed.wait()
        await asyncio.sleep(0.002 * (CLIPS - clip))
        if (error := self.fail(clip)) is not None:
            raise error
        embeddings = np.zeros((len(windows), CLIPS), np.float32)
        embeddings[:, clip] = 1
        return embeddings


async def diarize(
    folder: Path,
    media: Voices,
    fleet: FakeFleet | None = None,
    known: Sequence[KnownSpeaker] = (),
    results: ClipResults | None = None,
    **options: object,
) -> Transcript:
    """The transcript of eight clips, with speakers."""
    fleet = fleet or FakeFleet(clip_result)
    asked = {"diarize": True, "language": "en"} | options
    return await transcribe(folder, fleet, media, results=results, known=known, **asked)


def clips_of(call: Labelled) -> list[int]:
    """The numbers of the clips whose voices a transcript was labelled with."""
    return [int(unpack_voices(content).embeddings.argmax()) for content in call.voices]


async def test_a_transcript_is_labelled_by_the_voices_in_all_its_clips_in_order(
    tmp_path: Path, labelled: list[Labelled]
) -> None:
    known = (KnownSpeaker("Ann", np.ones(1, np.float32), "model"),)
    transcript = await diarize(tmp_path, Voices(), known=known, speaker_names="Bob,Cy", max_speakers=3)
    assert [speaker_of(segment) for segment in transcript.segments] == [f"S{n}" for n in range(1, 9)]
    assert isinstance(transcript.segments, PackedSegments), "a pipe carries it in moderate time"
    [call] = labelled
    assert clips_of(call) == list(range(CLIPS))
    assert unpack_voices(call.voices[2]).windows == (transcript.speech[2],)
    assert (call.count, call.names, call.known) == (SpeakerCount(1, 3), ("Bob", "Cy"), known)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, SpeakerCount()),
        ({"num_speakers": 2}, SpeakerCount(2, 2)),
        ({"min_speakers": 2}, SpeakerCount(2)),
        ({"min_speakers": 2, "max_speakers": 5}, SpeakerCount(2, 5)),
    ],
)
async def test_the_number_of_speakers_is_that_of_the_request(
    tmp_path: Path, labelled: list[Labelled], options: dict[str, int], count: SpeakerCount
) -> None:
    await diarize(tmp_path, Voices(), **options)
    assert labelled[0].count == count


async def test_no_clip_waits_for_voices_and_no_voice_for_clips(
    tmp_path: Path, labelled: list[Labelled]
) -> None:
    media, may_decode = Voices(), asyncio.Event()

    class Blocked(FakeFleet):
        async def submit(self, job: str, request: WindowRequest, **how: Any) -> TaskResult[Any]:
            if len(self.requested) == CLIPS // 2:  # the others wait until all voices are embedded
                await may_decode.wait()
            return await super().submit(job, request, **how)

    media.may_embed.clear()
    fleet = Blocked(clip_result)
    work = asyncio.create_task(diarize(tmp_path, media, fleet))
    await until(lambda: not (len(fleet.requested) < CLIPS // 2 or len(media.embedded) < CLIPS))
    media.may_embed.set()
    await asyncio.sleep(0.05)
    assert not work.done()
    may_decode.set()
    assert len((await work).segments) == CLIPS
    assert sorted(media.embedded) == list(range(CLIPS))


async def test_words_have_times_although_nobody_asked_for_them(
    tmp_path: Path, labelled: list[Labelled]
) -> None:
    timed: list[bool] = []

    class Recorder(FakeFleet):
        async def submit(self, job: str, request: WindowRequest, **how: Any) -> TaskResult[Any]:
            timed.append(request.decoding.word_timestamps)
            return await super().submit(job, request, **how)

    await diarize(tmp_path, Voices(), Recorder(clip_result))
    assert timed == [True] * CLIPS


def broken(clip: int) -> Exception | None:
    return {3: TaskCrashes("3 processes crashed on it"), 5: MemoryError()}.get(clip)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TaskCrashes("3 processes crashed on it"), "3 processes crashed on it"),
        (MemoryError(), "a media worker has too little memory"),
    ],
)
async def test_a_clip_whose_voices_cannot_be_embedded_fails_the_request(
    tmp_path: Path, labelled: list[Labelled], error: Exception, reason: str
) -> None:
    with pytest.raises(ClipFailed, match=rf"between 49\.69 s and 55\.34 s could not be compared: {reason}"):
        await diarize(tmp_path, Voices(lambda clip: error if clip == 5 else None))
    assert not labelled


async def test_or_it_has_no_voices_if_a_partial_transcript_will_do(
    tmp_path: Path, labelled: list[Labelled]
) -> None:
    transcript = await diarize(tmp_path, Voices(broken), allow_partial=True)
    assert clips_of(labelled[0]) == [0, 1, 2, 4, 6, 7]
    assert len(transcript.segments) == CLIPS
    assert not transcript.failed_spans


@pytest.mark.parametrize("error", [SpeakerModelUnavailable("There is no model."), DiskFull("It is full.")])
async def test_what_fails_for_all_clips_fails_a_partial_transcript_too(
    tmp_path: Path, labelled: list[Labelled], error: Exception
) -> None:
    with pytest.raises(type(error), match=str(error)):
        await diarize(tmp_path, Voices(lambda clip: error), allow_partial=True)


async def test_a_retried_request_embeds_only_the_clips_that_the_first_one_did_not(
    tmp_path: Path, labelled: list[Labelled]
) -> None:
    results = CachedClipResults()
    with pytest.raises(ClipFailed):
        await diarize(tmp_path, Voices(broken), results=results)
    await asyncio.sleep(0.05)  # workers finish what they have begun
    again = Voices()
    await diarize(tmp_path, again, results=results)
    assert again.embedded == [3, 5]
    assert clips_of(labelled[0]) == list(range(CLIPS))


async def test_without_diarize_no_voice_is_embedded(tmp_path: Path, labelled: list[Labelled]) -> None:
    media = Voices()
    transcript = await transcribe(tmp_path, FakeFleet(clip_result), media, language="en")
    assert not media.embedded
    assert not labelled
    assert not any(isinstance(segment, EditedSegment) for segment in transcript.segments)


async def test_a_cancelled_request_leaves_no_error_to_log(tmp_path: Path, labelled: list[Labelled]) -> None:
    """The voices that are being embedded fail later, without their audio."""
    media = Voices(lambda clip: FileNotFoundError("the audio went with the request"))
    media.may_embed.clear()
    with no_error_left():
        request = asyncio.create_task(diarize(tmp_path, media))
        await until(lambda: media.embedded)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        del request
        media.may_embed.set()
        await asyncio.sleep(0.1)
    assert labelled == []
