"""The pipeline from a recording to its transcript: find clips, transcribe, merge. All at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog

from app.common.errors import ClipFailed
from app.recording.clip_decoder import ClipDecoder
from app.recording.clip_decoding import ClipKey, ClipRequest
from app.recording.clip_planner import PlannedClip
from app.recording.clip_search import ClipSearch
from app.recording.language_vote import VOTERS, LanguageVote
from app.recording.recording_work import Progress, TranscriptionWork, clip_failed, is_due_to_clip
from app.recording.speakers import SpeakerFinder
from app.recording.speech import VadParameters
from app.transcript.packed import PackedSegments
from app.transcript.rendering import clip_segments
from app.transcript.timeline import NO_LANGUAGE, ClipResult, Transcript, samples_by_language
from workers.messages import SAMPLE_RATE, Decoded, DecodingOptions, Span

log = structlog.get_logger(__name__)

_SILENT_LANGUAGE = "en"  # of a recording without speech, for clients that want some language


@dataclass(frozen=True, slots=True)
class _ClipTranscript:
    """A clip's part in the transcript."""

    key: ClipKey  # of the result, among those of the recording
    result: ClipResult
    packed: bytes  # the result


class Pipeline:
    """Makes the transcript of one recording, or of one channel of it, once."""

    def __init__(self, work: TranscriptionWork, vote: LanguageVote | None = None) -> None:
        """`vote`: of all channels. Then their owner cancels what is queued when all have ended."""
        options = work.options
        self.work = work
        self._vote = vote or LanguageVote()
        self._is_alone = vote is None
        self._search = ClipSearch(
            work,
            VadParameters(
                options.vad_threshold, options.min_speech_ms, options.min_silence_ms, options.speech_pad_ms
            ),
            work.max_silence,
            work.observer.peaks,
            on_step=self._decoded,
            # Clips that wait take memory, and finding them takes cores from workers on the CPU.
            wants_clips=lambda: self._unfinished < work.dispatcher.prefetch_limit,
        )
        self._decoder = ClipDecoder(work.dispatcher, work.job, work.results)
        self._speakers = SpeakerFinder(work) if options.diarize else None
        self._progress = Progress()
        self._segments = PackedSegments()
        self._unfinished = 0  # clips that are planned and not done
        # Clips in order; None after the last one.
        self._unpublished: asyncio.Queue[tuple[PlannedClip, asyncio.Task[_ClipTranscript | None]] | None]
        self._unpublished = asyncio.Queue()
        self._published_spans: list[Span] = []
        self._failed_spans: list[Span] = []
        self._languages: Counter[str] = Counter()

    @property
    def errors(self) -> list[ClipFailed]:
        """Those with which it went on: see `Options.allow_partial`."""
        return self.work.errors

    async def run(self) -> Transcript:
        """Transcribe the recording. Cancelling this cancels all work that is not in flight.

        Raises InvalidInput if the file cannot be transcribed, TooLarge if the recording is too long,
        InsufficientQuota if that is more than its owner's budget, DiskFull or OutgrowsDisk, NotReady if there
        are no workers, and ClipFailed if a clip cannot be transcribed.
        """
        work = self.work
        async with self._task_group() as group, aclosing(self._search.clips()) as clips:
            planned = 0
            group.create_task(self._publish_in_order())
            async for clip in clips:
                transcribing = group.create_task(self._transcribe(clip))
                self._unpublished.put_nowait((clip, transcribing))
                if self._speakers is not None:
                    group.create_task(self._speakers.embed(clip))
                self._unfinished += 1
                planned += 1
            self._vote.limit(planned, work.channel)
            self._report(clips_total=planned)
            self._unpublished.put_nowait(None)
        silent = work.options.language or NO_LANGUAGE
        transcript = Transcript(
            task=work.options.task,
            model=work.model,
            language=max(sorted(self._languages), key=self._languages.__getitem__, default=silent),
            samples=self._search.decoded.samples,
            speech=tuple(self._search.speech),
            segments=self._segments,
            failed_spans=tuple(sorted(self._failed_spans)),
            clips=tuple(self._published_spans),
            start=work.selection.start,
            warnings=self._search.decoded.warnings,
        )
        return transcript if self._speakers is None else await self._speakers.label(transcript)

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
            self._vote.limit(voters, self.work.channel)
        self._cancel_queued()  # the rest of the recording
        return await self._vote.outcome() if voters else (_SILENT_LANGUAGE, 0.0)

    @asynccontextmanager
    async def _task_group(self) -> AsyncGenerator[asyncio.TaskGroup]:
        """Tasks for the clips. After an error queued work is cancelled; it is raised without its group."""
        try:
            async with asyncio.TaskGroup() as group:
                yield group
        except BaseException as error:
            self._cancel_queued()
            if isinstance(error, BaseExceptionGroup):
                raise first_error(error) from None
            raise

    def _cancel_queued(self) -> None:
        """Cancel the work that is not in flight; that of all channels is their owner's to cancel."""
        self._decoder.has_ended = True
        if self._is_alone:
            self.work.media_pool.cancel(self.work.job)
            self.work.dispatcher.cancel(self.work.job)

    def _decoded(self, decoded: Decoded) -> None:
        """The recording is decoded up to here."""
        work = self.work
        if decoded.finished and work.decoded is None:
            work.observer.decoded(decoded)
        ends = (decoded.samples, decoded.declared)
        seconds, declared_s = (max(0, end - work.selection.start) / SAMPLE_RATE for end in ends)
        total_s = seconds if decoded.finished else None
        if work.allowance is not None:
            work.allowance.reserve(total_s or max(seconds, declared_s))
        self._report(decoded_s=seconds, total_s=total_s, declared_s=declared_s or None)

    async def _transcribe(self, clip: PlannedClip) -> _ClipTranscript | None:
        """Transcribe a clip. Returns None if it fails and the request allows a partial transcript."""
        transcribed: _ClipTranscript | None = None
        try:
            transcribed = await self._transcribe_in_language(clip)
        except ClipFailed as error:
            if not self.work.options.allow_partial:
                raise
            self._failed_spans.append((clip.start, clip.end))
            self.errors.append(error)
            log.warning("continuing without a clip", error=error.message)
            self._vote.abstain(clip.index, self.work.channel)  # the other clips may wait for its vote
        self._unfinished -= 1
        self._search.advanced.set()
        self._report(
            done_s=self._progress.done_s + (clip.end - clip.start) / SAMPLE_RATE,
            clips_done=self._progress.clips_done + 1,
        )
        return transcribed

    async def _transcribe_in_language(self, clip: PlannedClip) -> _ClipTranscript:
        """Transcribe a clip in the language of the recording."""
        options = self.work.options
        if options.language or options.multilingual:
            return await self._transcribe_clip(clip, options.language)
        # No worker waits for the vote: until it is decided, each clip is transcribed in the language detected
        # in it, which is nearly always the one that is elected.
        transcribed = await (
            self._cast_vote(clip)
            if clip.index < VOTERS
            else self._transcribe_clip(clip, None, follows_vote=True)
        )
        language = await self._vote.language()
        result = transcribed.result
        spoken = {segment.language for segment in result.segments}
        is_divided = options.multilingual is False and spoken - {None, language}
        if language is None or (language == result.language and not is_divided):
            return transcribed
        return await self._transcribe_clip(clip, language, outvoted=True)

    async def _cast_vote(self, clip: PlannedClip) -> _ClipTranscript:
        """Transcribe a clip in the language detected in it, and vote for that language."""
        weight = sum(end - start for start, end in clip.speech)
        self._vote.announce(clip.index, weight, self.work.channel)
        transcribed = await self._transcribe_clip(clip, None)
        self._vote.cast(clip.index, weight, transcribed.result, self.work.channel)
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
        work, options = self.work, self.work.options
        votes = language is None and not follows_vote
        request = ClipRequest(
            pcm_path=work.pcm_path,
            start=clip.start,
            end=clip.end,
            speech=clip.speech,
            decoding=DecodingOptions(
                model=work.model,
                task=options.task,
                language=language,
                languages=options.expected_languages,
                prompt=options.prompt,
                hotwords=options.hotwords,
                temperature=options.temperature,
                beam_size=options.beam_size,
                # A speaker has words, not segments.
                word_timestamps=options.word_timestamps or options.diarize,
            ),
            late_language=(lambda: self._vote.elected) if follows_vote else None,
            speculative=follows_vote and self._vote.elected is None,
            outvoted=outvoted,
            min_context_s=work.min_context_s,
            channel=work.channel,
            # With one language for all clips, only voters say which ones are spoken in them.
            detect_changes=options.language is None
            and (options.multilingual is None or (options.multilingual is False and votes)),
        )
        try:
            made = await work.results.get_or_transcribe(request, self._decoder.decode)
        except Exception as error:
            if not is_due_to_clip(error):
                raise
            raise clip_failed(clip, error) from error
        return _ClipTranscript(request.key, *made)

    async def _publish_in_order(self) -> None:
        """Add each result to the transcript once it and all before it are there.

        One in each turn of the event loop: behind a clip that takes long, hundreds of others may wait.
        """
        observer = self.work.observer
        while (entry := await self._unpublished.get()) is not None:
            clip, task = entry
            span = (clip.start, clip.end)
            await asyncio.wait([task])
            if task.cancelled() or task.exception() is not None:
                return  # the task group ends all others
            transcribed = task.result()
            if transcribed is not None:
                result = transcribed.result
                self._languages.update(samples_by_language(result.segments, result.language))
                self._published_spans.append(span)
                place = partial(clip_segments, span, options=self.work.options, terms=self.work.terms)
                self._segments.add(transcribed.packed, place)
                if observer.wants_segments and (segments := place(transcribed.result)):
                    observer.transcribed(segments)
            observer.published(span, None if transcribed is None else transcribed.key)
            await asyncio.sleep(0)

    def _report(self, **changes: float | int | None) -> None:
        self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]
        self.work.observer.progressed(self._progress)


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group of tasks, however deep the group is nested."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
