"""From a recording to its transcript: find clips, transcribe, merge. All at once."""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import structlog

from app.engines.window_request import WindowSource, expected_tokens
from app.errors import ClipFailed, Interrupted, TaskCrashes, WhisperfleetError
from app.media.clip_planner import MAX_SILENCE_SAMPLES, PlannedClip
from app.media.clip_search import ClipSearch
from app.media.peaks import PeakCollector
from app.media.pool import Decoded, MediaPool
from app.media.speech import VadParameters
from app.media.uploads import Upload
from app.options import Options
from app.scheduling.dispatcher import Dispatcher
from app.transcript.packed import PackedSegments
from app.transcript.rendering import clip_segments
from app.transcript.timeline import NO_LANGUAGE, ClipResult, Transcript
from app.transcription.clip_decoding import ClipKey, ClipRequest, decode_clip
from app.transcription.language_vote import VOTERS, LanguageVote
from app.transcription.result_cache import ClipResults
from app.transcription.speakers import SpeakerFinder
from workers.messages import (
    EVERYTHING,
    FULL_CONTEXT_S,
    SAMPLE_RATE,
    DecodingOptions,
    Segment,
    Selection,
    Span,
    Warnings,
    WindowResult,
)

log = structlog.get_logger(__name__)

WindowDispatcher = Dispatcher[WindowSource, WindowResult]

_SILENT_LANGUAGE = "en"  # of a recording without speech, for clients that want some language


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a recording, or of its part. Times in s; totals are None until they are known."""

    decoded_s: float = 0.0
    total_s: float | None = None
    done_s: float = 0.0  # audio in clips that are done
    clips_done: int = 0
    clips_total: int | None = None
    declared_s: float | None = None  # the total as the file gives it

    @property
    def expected_s(self) -> float | None:
        """The total, or what is known of it before all is decoded."""
        if self.total_s is not None or self.declared_s is None:
            return self.total_s
        return max(self.declared_s, self.decoded_s)


@dataclass(frozen=True, slots=True)
class DecodedAudio:
    """The decoded audio of a recording, complete."""

    samples: int
    channels: tuple[int, ...] = (0,)  # those with a file; (0,) for the mix of all
    warnings: Warnings = ()  # about the recording


class Observer:
    """Is called as a pipeline makes progress. Override what you need."""

    peaks: PeakCollector | None = None  # gets the peaks of the recording, unless an earlier run decoded it

    def decoded(self, decoded: Decoded) -> None:
        """Called once, when the recording is decoded. Not called if an earlier run decoded it."""

    def progressed(self, progress: Progress) -> None:
        """Called with the new progress, at every change."""

    def transcribed(self, segments: Sequence[Segment]) -> None:
        """Called with the next segments of the transcript, in order and without a gap."""

    def published(self, clip: Span, key: ClipKey | None, channel: int = 0, until: int | None = None) -> None:
        """Called for each clip, in the order of its channel, once the transcript has its segments.

        `key`: of the clip's result. None if the clip failed and the request allows that. `until`: the
        transcript has the segments of all channels up to this sample. None: up to the clip's end.
        """


@dataclass(frozen=True, slots=True)
class _ClipTranscript:
    """A clip's part in the transcript."""

    key: ClipKey  # of the result, among those of the recording
    result: ClipResult
    packed: bytes  # the result


@dataclass(slots=True)
class Pipeline:
    """Makes the transcript of one recording, once."""

    job: str
    upload: Upload
    options: Options
    model: str
    media_pool: MediaPool
    dispatcher: WindowDispatcher
    pcm_path: Path  # for the decoded audio, which the caller removes
    results: ClipResults
    observer: Observer | None = None
    max_duration_s: float = math.inf
    max_silence: int = MAX_SILENCE_SAMPLES  # inside a clip
    min_context_s: float = FULL_CONTEXT_S  # of audio for the encoder, see `audio_context`
    selection: Selection = EVERYTHING  # what of the recording is transcribed
    speakers: SpeakerFinder | None = None  # None: nobody asks who speaks
    decoded: DecodedAudio | None = None  # at `pcm_path` from an earlier run, if that has all of it
    channel: int = 0  # of the recording
    vote: LanguageVote = field(default_factory=LanguageVote)  # of all channels
    # Other pipelines have the same `job`. Its owner cancels what is queued when all have ended.
    shares_job: bool = False
    failed_spans: list[Span] = field(default_factory=list)
    errors: list[ClipFailed] = field(default_factory=list)  # with which it went on: `allow_partial`
    _search: ClipSearch = field(init=False)
    _progress: Progress = field(default_factory=Progress)
    _segments: PackedSegments = field(default_factory=PackedSegments)
    _unfinished: int = 0  # clips that are planned and not done
    # Clips in order; None after the last one.
    _unpublished: asyncio.Queue[tuple[PlannedClip, asyncio.Task[_ClipTranscript | None]] | None] = field(
        default_factory=asyncio.Queue
    )
    _published_spans: list[Span] = field(default_factory=list)  # the clips that are published
    _languages: Counter[str] = field(default_factory=Counter)
    _ended: bool = False  # no further window is decoded

    def __post_init__(self) -> None:
        options = self.options
        self._search = ClipSearch(
            self.job,
            self.upload,
            self.media_pool,
            self.pcm_path,
            VadParameters(
                options.vad_threshold, options.min_speech_ms, options.min_silence_ms, options.speech_pad_ms
            ),
            self.max_duration_s,
            self.max_silence,
            self.selection,
            None if self.decoded is None else self.decoded.samples,
            self.observer.peaks if self.observer is not None else None,
            on_decoded=self.observer.decoded if self.observer is not None else None,
            on_progress=self._decoded_up_to,
            wants_clips=self._wants_clips,
            warnings=() if self.decoded is None else self.decoded.warnings,
        )

    async def run(self) -> Transcript:
        """Transcribe the recording. Cancelling this cancels all work that is not in flight.

        Raises InvalidInput if the file cannot be transcribed, TooLarge if the recording is too long,
        DiskFull or OutgrowsDisk, NotReady if there are no workers, and ClipFailed if a clip cannot be
        transcribed.
        """
        async with self._task_group() as group, aclosing(self._search.clips()) as clips:
            planned = 0
            group.create_task(self._publish_in_order())
            async for clip in clips:
                self._unpublished.put_nowait((clip, group.create_task(self._transcribe(clip))))
                if self.speakers is not None:
                    group.create_task(self.speakers.embed(clip))
                self._unfinished += 1
                planned += 1
            self.vote.limit(planned, self.channel)
            self._report(clips_total=planned)
            self._unpublished.put_nowait(None)
        silent = self.options.language or NO_LANGUAGE
        transcript = Transcript(
            task=self.options.task,
            model=self.model,
            language=max(sorted(+self._languages), key=self._languages.__getitem__, default=silent),
            samples=self._search.samples,
            speech=tuple(self._search.speech),
            segments=self._segments,
            failed_spans=tuple(sorted(self.failed_spans)),
            clips=tuple(self._published_spans),
            start=self.selection.start,
            warnings=self._search.warnings,
        )
        return transcript if self.speakers is None else await self.speakers.label(transcript)

    async def detect_language(self) -> tuple[str, float]:
        """The language, ISO 639-1, and its probability, 0 to 1. Transcribes only as many clips as that needs.

        Without speech the probability is 0. Raises as `run` does.
        """
        async with self._task_group() as group, aclosing(self._search.clips()) as clips:
            voters = 0
            async for clip in clips:
                group.create_task(self._cast_vote(clip))
                voters += 1
                if voters == VOTERS:
                    break
            self.vote.limit(voters, self.channel)
        return await self.vote.outcome() if voters else (_SILENT_LANGUAGE, 0.0)

    @asynccontextmanager
    async def _task_group(self) -> AsyncGenerator[asyncio.TaskGroup]:
        """Tasks for the clips. At the end queued work is cancelled; an error is raised without its group."""
        try:
            async with asyncio.TaskGroup() as group:
                yield group
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        finally:
            self._ended = True
            if not self.shares_job:
                self.media_pool.cancel(self.job)
                self.dispatcher.cancel(self.job)

    def _decoded_up_to(self, samples: int, finished: bool, declared: int) -> None:
        start = self.selection.start
        seconds, declared_s = (max(0, end - start) / SAMPLE_RATE for end in (samples, declared))
        self._report(decoded_s=seconds, total_s=seconds if finished else None, declared_s=declared_s or None)

    def _wants_clips(self) -> bool:
        """Not while enough clips wait for workers.

        Waiting clips take memory, and finding them takes cores from workers on the CPU.
        """
        return self._unfinished < self.dispatcher.prefetch_limit

    async def _transcribe(self, clip: PlannedClip) -> _ClipTranscript | None:
        """Transcribe a clip. Returns None if it fails and the request allows a partial transcript."""
        transcribed: _ClipTranscript | None = None
        try:
            transcribed = await self._transcribe_in_language(clip)
        except ClipFailed as error:
            if not self.options.allow_partial:
                raise
            self.failed_spans.append((clip.start, clip.end))
            self.errors.append(error)
            log.warning("continuing without a clip", error=error.message)
            self.vote.abstain(clip.index, self.channel)  # the other clips may wait for its vote
        self._unfinished -= 1
        self._search.advanced.set()
        self._report(
            done_s=self._progress.done_s + (clip.end - clip.start) / SAMPLE_RATE,
            clips_done=self._progress.clips_done + 1,
        )
        return transcribed

    async def _transcribe_in_language(self, clip: PlannedClip) -> _ClipTranscript:
        """Transcribe a clip in the language of the recording."""
        requested = self.options.language
        if requested or self.options.multilingual:
            return await self._transcribe_clip(clip, requested)
        # No worker waits for the vote: until it is decided, each clip is transcribed in the language detected
        # in it, which is nearly always the one that is elected.
        transcribed = await (
            self._cast_vote(clip)
            if clip.index < VOTERS
            else self._transcribe_clip(clip, None, follows_vote=True)
        )
        language = await self.vote.language()
        if language in (None, transcribed.result.language):
            return transcribed
        return await self._transcribe_clip(clip, language, outvoted=True)

    async def _cast_vote(self, clip: PlannedClip) -> _ClipTranscript:
        """Transcribe a clip in the language detected in it, and vote for that language."""
        weight = sum(end - start for start, end in clip.speech)
        self.vote.announce(clip.index, weight, self.channel)
        transcribed = await self._transcribe_clip(clip, None)
        self.vote.cast(clip.index, weight, transcribed.result, self.channel)
        return transcribed

    async def _transcribe_clip(
        self,
        clip: PlannedClip,
        language: str | None,
        *,
        follows_vote: bool = False,
        outvoted: bool = False,
    ) -> _ClipTranscript:
        """Transcribe a clip in a language. None: in the one that is detected in the clip.

        `follows_vote`: in the elected language, if there is one when the clip's turn comes. `outvoted`: after
        another language lost the vote.
        """
        options = self.options
        request = ClipRequest(
            pcm_path=self.pcm_path,
            start=clip.start,
            end=clip.end,
            speech=clip.speech,
            decoding=DecodingOptions(
                model=self.model,
                task=options.task,
                language=language,
                prompt=options.prompt,
                hotwords=options.hotwords,
                temperature=options.temperature,
                beam_size=options.beam_size,
                # A speaker has words, not segments.
                word_timestamps=options.word_timestamps or options.diarize,
            ),
            late_language=(lambda: self.vote.elected) if follows_vote else None,
            speculative=follows_vote and self.vote.elected is None,
            outvoted=outvoted,
            min_context_s=self.min_context_s,
            channel=self.channel,
        )
        try:
            made = await self.results.get_or_transcribe(request, self._decode_windows)
            return _ClipTranscript(request.key, *made)
        except (TaskCrashes, Interrupted) as error:
            raise clip_failed(clip, error) from error
        except WhisperfleetError:
            raise
        except Exception as error:
            raise clip_failed(clip, error) from error

    async def _decode_windows(self, request: ClipRequest) -> ClipResult:
        """Have workers transcribe a clip, window by window."""
        windows = decode_clip(request)
        window = next(windows)
        while not self._ended:
            answer = await self.dispatcher.submit(
                self.job,
                window,
                key=window.batch_key,
                crash_count=self.results.crash_count(request.key),
                on_crash=partial(self.results.record_crash, request.key),
                isolated=self.results.is_suspect(request.key),
                size=expected_tokens(window.speech),
                weight=window.decoding.beams,
                continues=window.continues or request.outvoted,
            )
            try:
                window = windows.send(answer.result)
            except StopIteration as done:
                clip_result: ClipResult = done.value
                return clip_result
        raise asyncio.CancelledError  # the rest of the clip would be for nobody

    async def _publish_in_order(self) -> None:
        """Add each result to the transcript once it and all before it are there.

        One in each turn of the event loop: behind a clip that takes long, hundreds of others may wait.
        """
        while (entry := await self._unpublished.get()) is not None:
            clip, task = entry
            await asyncio.wait([task])
            if task.cancelled() or task.exception() is not None:
                return  # the task group ends all others
            self._publish((clip.start, clip.end), task.result())
            await asyncio.sleep(0)

    def _publish(self, span: Span, transcribed: _ClipTranscript | None) -> None:
        if transcribed is not None:
            self._languages[transcribed.result.language] += bool(transcribed.result.segments)
            self._published_spans.append(span)
            place = partial(clip_segments, span, options=self.options)
            self._segments.add(transcribed.packed, place)
            if self.observer is not None and (segments := place(transcribed.result)):
                self.observer.transcribed(segments)
        if self.observer is not None:
            self.observer.published(span, None if transcribed is None else transcribed.key)

    def _report(self, **changes: float | int | None) -> None:
        if self.observer is not None:
            self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]
            self.observer.progressed(self._progress)


def clip_failed(clip: PlannedClip, error: Exception) -> ClipFailed:
    """The error for a clip that cannot be transcribed; its code says whether the clip is to blame."""
    return ClipFailed(
        f"The span from {clip.start / SAMPLE_RATE:.2f} s to {clip.end / SAMPLE_RATE:.2f} s could not be "
        f"transcribed: {error}",
        code="clip_interrupted" if isinstance(error, Interrupted) else "clip_failed",
    )


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group of tasks, however deep the group is nested."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
