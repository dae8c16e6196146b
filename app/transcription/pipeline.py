"""The way of a recording: decode, find speech, plan clips, hear them, merge. All of it at once."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

from app.engines.clip_request import expected_tokens
from app.engines.slot import ClipSource
from app.errors import ClipFailed, TaskCrashes, TooLarge, WhisperfleetError
from app.media.clip_planner import ClipPlanner, PlannedClip
from app.media.pool import Media
from app.media.speech import SPAN_FRAMES, SpeechDetector, VadParameters
from app.media.uploads import Upload
from app.options import Options
from app.scheduling.dispatcher import Dispatcher
from app.transcript.chinese import LANGUAGES as CHINESE
from app.transcript.chinese import convert_segments
from app.transcript.packed_segments import PackedSegments
from app.transcript.timeline import Transcript, merge
from app.transcription.language_vote import VOTERS, LanguageVote
from app.transcription.result_cache import ClipResults
from workers.messages import (
    BYTES_PER_SAMPLE,
    FRAME_SAMPLES,
    SAMPLE_RATE,
    Clip,
    ClipResult,
    Decoding,
    Segment,
    Span,
)

log = structlog.get_logger(__name__)

Fleet = Dispatcher[ClipSource, ClipResult]
Probabilities = npt.NDArray[np.float32]

_SPANS_AHEAD = 8  # that children are asked to look at: two for each of the most that there are
_NOTHING = ClipResult("", (), ())  # of a clip that failed
_SILENT_LANGUAGE = "en"  # of a recording in which nobody speaks, where none was asked for


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a recording has come. Times in s; totals are None until they are known."""

    decoded_s: float = 0.0
    total_s: float | None = None
    done_s: float = 0.0  # of clips that were heard
    clips_done: int = 0
    clips_total: int | None = None


@dataclass(slots=True)
class Pipeline:
    """One recording on its way from a file to a transcript. To be used once."""

    job: str
    upload: Upload
    options: Options
    model: str
    media: Media
    fleet: Fleet
    pcm_path: Path  # written and left there
    clip_results: ClipResults
    max_duration_s: float | None = None
    decoded: int | None = None  # samples that lie at `pcm_path` already, if all of them do
    on_decoded: Callable[[int], None] = lambda samples: None
    on_progress: Callable[[Progress], None] = lambda progress: None
    on_segments: Callable[[Sequence[Segment]], None] = lambda segments: None
    _progress: Progress = field(default_factory=Progress)
    _speech: list[Span] = field(default_factory=list)
    _segments: PackedSegments = field(default_factory=PackedSegments)
    failed_spans: list[Span] = field(default_factory=list)
    _samples: int = 0  # decoded
    _unheard: int = 0  # clips that have been planned
    _moved: asyncio.Event = field(default_factory=asyncio.Event)  # something got further
    _vote: LanguageVote = field(default_factory=LanguageVote)
    _hearing: deque[tuple[PlannedClip, asyncio.Task[ClipResult]]] = field(default_factory=deque)
    _languages: Counter[str] = field(default_factory=Counter)

    async def run(self) -> Transcript:
        """The transcript. Cancelling this takes back all work that no process has in hand yet.

        `on_segments` is given the segments in order, each as soon as all before it are known.
        Raises InvalidInput for a file that cannot be transcribed, TooLarge for one that is too long,
        NotReady where there are no workers, ClipFailed where a span cannot be transcribed.
        """
        async with self._group() as group, aclosing(self._clips()) as clips:
            planned = 0
            async for clip in clips:
                task = group.create_task(self._hear(clip))
                self._hearing.append((clip, task))
                self._unheard += 1
                task.add_done_callback(self._heard)
                planned += 1
            self._vote.limit(planned)
            self._report(clips_total=planned)
        self._tell()
        return self._transcript()

    async def detect_language(self) -> tuple[str, float]:
        """The language spoken, ISO 639-1, and how likely it is, 0 to 1; no more is heard than that takes.

        Where nobody speaks the probability is 0. Raises what `run` raises.
        """
        async with self._group() as group, aclosing(self._clips()) as clips:
            voters = 0
            async for clip in clips:
                group.create_task(self._cast_vote(clip))
                voters += 1
                if voters == VOTERS:
                    break
            self._vote.limit(voters)
        return await self._vote.outcome() if voters else (_SILENT_LANGUAGE, 0.0)

    @asynccontextmanager
    async def _group(self) -> AsyncGenerator[asyncio.TaskGroup]:
        """Tasks for the clips. Whatever ends them, their work is taken back; an error is raised bare."""
        try:
            async with asyncio.TaskGroup() as group:
                yield group
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            self.media.cancel(self.job)
            self.fleet.cancel(self.job)

    async def _probabilities(self) -> AsyncGenerator[Probabilities]:
        """The frames' speech probabilities, in order, span by span, while decoding goes on.

        No further ahead of the workers than does them good: clips that wait take memory, and finding them
        takes cores from workers on the CPU.
        """
        spans: deque[asyncio.Task[Probabilities]] = deque()
        asked = 0  # frames
        decoding = asyncio.create_task(self._decode())
        decoding.add_done_callback(self._move)
        try:
            while True:
                self._moved.clear()
                while spans and spans[0].done():
                    yield spans.popleft().result()
                finished = decoding.done()
                if finished:
                    decoding.result()
                frames = -(-self._samples // FRAME_SAMPLES) if finished else self._samples // FRAME_SAMPLES
                while self._may_ask(len(spans)) and (
                    frames - asked >= SPAN_FRAMES or (finished and frames > asked)
                ):
                    count = min(SPAN_FRAMES, frames - asked)
                    span = self.media.speech_probabilities(self.job, self.pcm_path, asked, count)
                    spans.append(asyncio.create_task(span))
                    spans[-1].add_done_callback(self._move)
                    asked += count
                if finished and asked == frames and not spans:
                    return
                await self._moved.wait()
        finally:
            for task in (decoding, *spans):
                task.cancel()
            await asyncio.gather(decoding, *spans, return_exceptions=True)

    def _may_ask(self, spans: int) -> bool:
        """Whether another span is to be looked at, besides so many."""
        return spans < _SPANS_AHEAD and self._unheard < self.fleet.prefetch_limit

    def _move(self, _: asyncio.Task[Any]) -> None:
        self._moved.set()

    async def _decode(self) -> None:
        """Decode all of the recording, unless that has been done, and note how far it is."""
        if self.decoded is not None:
            self._decoded(self.decoded, finished=True)
            return
        async with aclosing(self.media.decode(self.job, self.upload, self.pcm_path)) as steps:
            async for samples, finished in steps:
                if finished:
                    self.on_decoded(samples)
                self._decoded(samples, finished)
                self._moved.set()

    async def _clips(self) -> AsyncGenerator[PlannedClip]:
        """The clips of the recording, each as soon as it is certain."""
        options = self.options
        detector = SpeechDetector(
            VadParameters(
                options.vad_threshold, options.min_speech_ms, options.min_silence_ms, options.speech_pad_ms
            )
        )
        planner = ClipPlanner()
        async with aclosing(self._probabilities()) as pieces:
            async for probabilities in pieces:
                spans = detector.feed(probabilities)
                self._speech += spans
                settled = detector.settled_until
                for clip in planner.extend(spans, detector.ongoing, settled, probabilities):
                    yield clip
        spans = detector.finish(self._samples)
        self._speech += spans
        for clip in planner.finish(spans, self._samples):
            yield clip

    async def _hear(self, clip: PlannedClip) -> ClipResult:
        """What is said in a clip; nothing where that fails and the request does without it."""
        try:
            result = await self._hear_in_language(clip)
        except ClipFailed as error:
            self.failed_spans.append((clip.start, clip.end))
            if not self.options.allow_partial:
                raise
            log.warning("going on without a clip", error=error.message)
            result = _NOTHING
            self._vote.cast(clip.index, 0, result)  # or the others would wait for it
        self._report(
            done_s=self._progress.done_s + (clip.end - clip.start) / SAMPLE_RATE,
            clips_done=self._progress.clips_done + 1,
        )
        return result

    async def _hear_in_language(self, clip: PlannedClip) -> ClipResult:
        """What is said in a clip, in the language of the recording."""
        if self.options.language or self.options.multilingual:
            result = await self._submit(clip, self.options.language)
        else:
            # No worker stands still until the first clips have voted: what it is given before is heard in the
            # language that it seems to be in, which is nearly always the one that is elected.
            result = await (
                self._cast_vote(clip) if clip.index < VOTERS else self._submit(clip, None, follows_vote=True)
            )
            language = await self._vote.language()
            if result.language != language:
                result = await self._submit(clip, language)
        return result

    async def _cast_vote(self, clip: PlannedClip) -> ClipResult:
        """What is said in a clip, in the language that it seems to be in, which gets its vote."""
        weight = sum(end - start for start, end in clip.speech)
        self._vote.announce(clip.index, weight)
        result = await self._submit(clip, None)
        self._vote.cast(clip.index, weight, result)
        return result

    async def _submit(
        self, clip: PlannedClip, language: str | None, *, follows_vote: bool = False
    ) -> ClipResult:
        """What is said in a clip, in a language or, where none is given, in what it seems to be in.

        `follows_vote`: in the elected language, if there is one by the time that its turn comes.
        """
        decoding = Decoding(
            model=self.model,
            task=self.options.task,
            language=language,
            prompt=self.options.prompt,
            hotwords=self.options.hotwords,
            temperature=self.options.temperature,
            beam_size=self.options.beam_size,
            word_timestamps=self.options.word_timestamps,
        )

        key = (clip.start, clip.end, language)
        # The last vote is not to wait for the rest of a batch that could as well come after it.
        early = follows_vote and self._vote.elected is None

        def source() -> Clip:
            elected = self._vote.elected if follows_vote else None
            return read_clip(self.pcm_path, clip, replace(decoding, language=language or elected))

        async def work() -> ClipResult:
            done = await self.fleet.submit(
                self.job,
                source,
                key=(decoding.batch_key, early),
                deaths=self.clip_results.deaths(key),
                on_crash=partial(self.clip_results.died, key),
                size=expected_tokens(clip.speech),
            )
            return done.result

        try:
            return await self.clip_results.hear(key, work)
        except TaskCrashes as error:
            raise self._clip_failed(clip, error) from error
        except WhisperfleetError:
            raise
        except Exception as error:
            raise self._clip_failed(clip, error) from error

    def _clip_failed(self, clip: PlannedClip, error: Exception) -> ClipFailed:
        return ClipFailed(
            f"The span from {clip.start / SAMPLE_RATE:.2f} s to {clip.end / SAMPLE_RATE:.2f} s could not be "
            f"transcribed: {error}",
            code="clip_failed",
        )

    def _decoded(self, samples: int, finished: bool) -> None:
        # A child that takes over from a dead one begins anew.
        self._samples = samples if finished else max(self._samples, samples)
        seconds = self._samples / SAMPLE_RATE
        if self.max_duration_s is not None and seconds > self.max_duration_s:
            raise TooLarge(
                f"The recording is longer than {self.max_duration_s:.0f} s, the most that is taken here. "
                "Send it in parts.",
                param="file",
                code="audio_too_long",
            )
        self._report(decoded_s=seconds, total_s=seconds if finished else None)

    def _report(self, **changes: float | int | None) -> None:
        self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]
        self.on_progress(self._progress)

    def _heard(self, task: asyncio.Task[ClipResult]) -> None:
        self._unheard -= 1
        self._move(task)
        self._tell()

    def _tell(self) -> None:
        """Lay out what has been heard without a hole from the recording's start, and tell of it."""
        while self._hearing and _succeeded(self._hearing[0][1]):
            clip, task = self._hearing.popleft()
            result = task.result()
            if result is not _NOTHING:
                self._languages[result.language] += 1
            # Clips do not overlap, and so the timeline can be merged one by one.
            segments = merge([((clip.start, clip.end), result)])
            if (
                self.options.chinese != "keep"
                and result.language in CHINESE
                and self.options.task == "transcribe"
            ):
                segments = convert_segments(segments, self.options.chinese)
            self._segments.extend(segments)
            if segments:
                self.on_segments(segments)

    def _transcript(self) -> Transcript:
        otherwise = self.options.language or _SILENT_LANGUAGE
        heard = max(sorted(self._languages), key=self._languages.__getitem__, default=otherwise)
        return Transcript(
            task=self.options.task,
            model=self.model,
            language=heard,
            samples=self._samples,
            speech=tuple(self._speech),
            segments=self._segments,
            failed_spans=tuple(sorted(self.failed_spans)),
        )


def _succeeded(task: asyncio.Task[ClipResult]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def read_clip(pcm_path: Path, clip: PlannedClip, decoding: Decoding) -> Clip:
    """A planned clip with its audio, read from the recording's PCM."""
    with pcm_path.open("rb") as file:
        file.seek(clip.start * BYTES_PER_SAMPLE)
        pcm = file.read((clip.end - clip.start) * BYTES_PER_SAMPLE)
    speech = tuple((start - clip.start, end - clip.start) for start, end in clip.speech)
    return Clip(pcm, speech, decoding)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that a group of tasks failed with: the first one, out of whatever it is wrapped in."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
