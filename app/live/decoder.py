"""The decoder of a live stream: drafts of its speech while it is open, and its clips once closed."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from app.common.errors import Expired, NotReady, ProcessCrashed
from app.engines.ledger import JobName
from app.engines.window_request import Audio, WindowRequest, expected_tokens
from app.live.events import StreamOptions
from app.live.items import Draft
from app.recording.audio_context import context_s, repeats_itself, text_of
from app.recording.clip_decoder import ClipDecoder
from app.recording.clip_decoding import ClipRequest
from app.recording.clip_planner import PlannedClip
from app.recording.language_vote import LanguageVote
from app.recording.recording_work import WindowDispatcher, clip_failed
from app.recording.result_cache import CachedClipResults
from app.transcript.timeline import ClipResult
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, DecodingOptions

# A draft that waits for longer is not sent: its words would come too late, and the next one has them too.
# Where workers are busy, the first words of a turn come before more of another's.
_DRAFT_DEADLINE_S, _FIRST_DEADLINE_S = 2.0, 0.7
# Of open speech, before its first draft: with less, drafts agree on words that nobody has said. A model that
# was trained for a short context hears short speech better.
_LEAST_S, _LEAST_SHORT_S = 1.0, 0.25
_GROWTH_WHILE_WAITING = SAMPLE_RATE // 2  # of open speech while its draft waits: the context has space for it
_AFTER_FAILURE_S = 1.0  # until the next draft: what makes one fail may take a moment to end
# While no worker can be started, closed speech is sent again; after two minutes its text counts as failed.
_RETRY_S = 1.0
_NOT_READY_RETRIES = 120

log = structlog.get_logger(__name__)

# The file with the audio of a stream, and the clip in it that is open now; None if none is open any more.
OpenSpeech = Callable[[], tuple[Path, PlannedClip] | None]


@dataclass(frozen=True, slots=True)
class StreamModel:
    """A model, as streams use it."""

    name: str
    dispatcher: WindowDispatcher
    max_silence: int  # see `ClipPlanner`
    min_context_s: float  # of audio for the encoder, for clips: see `audio_context`
    draft_context_s: float  # the same for drafts: less only if the model was trained for it


class StreamDecoder:
    """Decodes one stream. `job`: its name in the queue."""

    def __init__(self, job: JobName, model: StreamModel) -> None:
        self._model = model
        self._clip_decoder = ClipDecoder(model.dispatcher, job, CachedClipResults(), urgent=True)
        self._vote = LanguageVote()
        self._clips = 0
        self._doubted: int | None = None  # start of the clip whose drafts need the full context

    def may_draft(self, clip: PlannedClip) -> bool:
        """Whether so much of an open clip was said that a draft can be trusted."""
        least_s = _LEAST_S if self._model.draft_context_s == FULL_CONTEXT_S else _LEAST_SHORT_S
        return clip.end - clip.speech[0][0] >= least_s * SAMPLE_RATE

    async def draft(
        self,
        options: StreamOptions,
        open_speech: OpenSpeech,
        *,
        until: int | None = None,
        first: bool = False,
    ) -> Draft | None:
        """What the open speech says so far, up to the sample `until`, or up to now.

        `first`: its turn has no words yet. Returns None if nothing is open, or it came too late or failed.

        Raises ProcessCrashed if its worker crashed: it may be why, so no other draft of that clip may follow.
        """
        if (speech := open_speech()) is None:
            return None
        path, clip = speech
        is_doubted = clip.start == self._doubted
        least_s = FULL_CONTEXT_S if is_doubted else self._model.draft_context_s
        decoding = replace(
            self._decoding(options),
            context_s=context_s(clip.end - clip.start + _GROWTH_WHILE_WAITING, least_s),
        )

        def newest() -> Audio:
            """The open speech when a worker gets it: a draft that waits is always the newest one."""
            path, clip = open_speech() or speech
            end = min(clip.end, clip.start + decoding.context_s * SAMPLE_RATE)
            if until is not None:
                end = min(end, until)
            spoken = tuple((start, min(stop, end)) for start, stop in clip.speech if start < end)
            return path, clip.start, end, spoken

        window = WindowRequest(path, clip.start, clip.end, clip.speech, decoding, late_audio=newest)
        patience_s = _FIRST_DEADLINE_S if first else _DRAFT_DEADLINE_S
        try:
            answer = await self._model.dispatcher.submit(
                self._clip_decoder.job,
                window,
                key=decoding.batch_key,
                size=expected_tokens(clip.speech),
                weight=decoding.beams,
                deadline=asyncio.get_running_loop().time() + patience_s,
            )
        except Expired:
            return None
        except ProcessCrashed:
            raise
        except Exception as error:
            log.warning("draft failed", error=str(error))
            await asyncio.sleep(_AFTER_FAILURE_S)
            return None
        result = answer.result
        # Improbable words count: they do if the next draft has them, too.
        text = "" if result.silent else text_of(result)
        said_until = max((stop for _, stop in window.speech), default=0)
        # People do repeat themselves: what a model says with the full context counts.
        if result.repetitive or (repeats_itself(text) and decoding.context_s < FULL_CONTEXT_S):
            self._doubted = clip.start
            return Draft(None, window.end, said_until)
        return Draft(text, window.end, said_until)

    async def decode(self, options: StreamOptions, path: Path, clip: PlannedClip) -> ClipResult:
        """The result of a clip that is closed, as in a recording. Raises ClipFailed and NotReady."""
        decoding = self._decoding(options)
        request = ClipRequest(
            path,
            clip.start,
            clip.end,
            clip.speech,
            replace(decoding, word_timestamps=True),
            late_language=lambda: self._elected(options),
            min_context_s=self._model.min_context_s,
            detect_changes=decoding.language in (None, self._elected(options)),
        )
        votes = decoding.language is None and self._vote.elected is None
        index, weight = self._clips, sum(end - start for start, end in clip.speech)
        if votes:
            self._clips += 1
            self._vote.announce(index, weight)
        try:
            result = await self._decode_when_ready(request)
        except Exception as error:
            if votes:
                self._vote.abstain(index)
            raise error if isinstance(error, NotReady) else clip_failed(clip, error) from error
        if votes:
            self._vote.cast(index, weight, result)
        return result

    async def _decode_when_ready(self, request: ClipRequest) -> ClipResult:
        """Decode a clip, and wait for a worker if none can be started. Busy ones may take any time."""
        for _ in range(_NOT_READY_RETRIES):
            with suppress(NotReady):
                return await self._clip_decoder.decode(request)
            await asyncio.sleep(_RETRY_S)
        return await self._clip_decoder.decode(request)

    def _decoding(self, options: StreamOptions) -> DecodingOptions:
        language = options.language or (options.languages[0] if len(options.languages) == 1 else None)
        return DecodingOptions(
            model=self._model.name,
            language=language or self._elected(options),
            languages=options.languages,
            prompt=options.prompt,
            hotwords=options.hotwords,
        )

    def _elected(self, options: StreamOptions) -> str | None:
        """The language that the first clips have voted for, if the client expects it."""
        elected = self._vote.elected
        return elected if not options.languages or elected in options.languages else None
