"""One live stream: its turns, and the text of each."""

import asyncio
import contextvars
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.common.concurrency import BackgroundTasks
from app.common.errors import InsufficientQuota, ProcessCrashed, StreamRefused, WhisperfleetError
from app.engines.ledger import JobName
from app.intake.budgets import Allowance, Budgets
from app.intake.disk import disk_full
from app.live.audio import AudioFile, StreamAudio
from app.live.decoder import StreamDecoder, StreamModel
from app.live.detection import SpeechDetection
from app.live.events import (
    Agreed,
    Cleared,
    Committed,
    LiveEvent,
    SpeechStarted,
    SpeechStopped,
    StreamOptions,
)
from app.live.items import ClipText, Item
from app.live.metrics import LiveMetrics
from app.live.turns import ClipClosed, TurnFinder, TurnStarted, TurnStep
from app.recording.clip_planner import PlannedClip
from app.recording.speech import SAMPLES_PER_MS
from app.transcript.timeline import ClipResult, place_segments
from workers.messages import PCM_16K, SAMPLE_RATE, Encoding, Span

MAX_UNCOMMITTED_S = 1800.0  # of audio, if only the client ends turns
# Of closed speech that waits for workers: further audio waits with its client. Its files and tasks are many
# then, and a client may send an hour within two minutes.
MAX_UNDECODED_SAMPLES = 600 * SAMPLE_RATE
LEAST_COMMIT_S = 0.1
_CHECK_SPACE_S = 60.0  # of audio between two looks at the disk
_LAST_BATCH_S = 5.0  # that the audio of a closed stream stays for the batch in flight
_KEPT_SAMPLES = 10 * SAMPLE_RATE  # of silence, for a turn that begins with it


class LiveStream:
    """Finds the turns in the audio of one client, and has them transcribed while they are spoken.

    All methods are called in the event loop. Positions are samples at 16 kHz.
    """

    def __init__(
        self,
        model: StreamModel,
        options: StreamOptions,
        folder: Path,
        detection: SpeechDetection,
        metrics: LiveMetrics,
        allowance: Allowance | None = None,
        on_close: Callable[["LiveStream"], None] = lambda stream: None,
        has_space: Callable[[], bool] = lambda: True,
    ) -> None:
        """`folder`: for its audio. `allowance`: of its owner. `on_close` is called once, when it ends.
        `has_space` says whether there is space for more audio, in a thread.
        """
        self.id = uuid.uuid4().hex
        self.job = JobName("stream", self.id)
        # Called with each event, in order. It must not wait.
        self.on_event: Callable[[LiveEvent], None] = lambda event: None
        # Called with the span and the result of each clip, nearly always in order.
        self.on_clip: Callable[[Span, ClipResult], None] = lambda clip, result: None
        self._model = model
        self._options = options
        self._metrics = metrics
        self._allowance = allowance or Allowance(Budgets())
        self._on_close = on_close
        self._has_space = has_space
        self._space_until_s = _CHECK_SPACE_S  # of audio in all, before the next look at the disk
        self._audio = StreamAudio(folder, self.id, detection, self._detected, self._kept_from)
        self._decoder = StreamDecoder(self.job, model)
        self._turns = TurnFinder(options.turns, model.max_silence)
        self._received_s = 0.0  # of audio, in all
        self._committed_s = 0.0  # of it, by the client; it may not be examined yet
        self._received_at = 0.0  # when the last audio came, in the event loop's time
        self._item_start = 0  # of the audio that no item has
        self._next_number = 0
        self._items: deque[Item] = deque()  # whose text is not complete; the last one may be open
        self._undecoded = 0  # samples of closed speech that wait for workers
        self._decoded = asyncio.Event()  # set for a moment, also when the stream is closed
        self._draft: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()
        self._is_closed = False
        self._expecting = ExitStack()
        self._expecting.enter_context(model.dispatcher.expecting_urgent())
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()  # its tasks are for the owner of the stream

    @property
    def fault(self) -> WhisperfleetError | None:
        """Why the stream takes no more audio."""
        return self._audio.fault

    @property
    def owes_text(self) -> bool:
        """Whether the text of a committed item is still to come."""
        return any(item.end is not None for item in self._items)

    def configure(self, options: StreamOptions) -> None:
        """Change the options, from the next item on. The open one ends by itself if the next ones do."""

        def change() -> None:
            self._options = options
            self._turns.silence_ms = None if options.turns is None else options.turns.silence_duration_ms
            if self._open is not None and options.turns is not None:
                self._begin_turn(self._open)
            self._renew_turns()

        self._audio.then(change, ends_sample=False)

    async def append(self, audio: bytes, encoding: Encoding = PCM_16K) -> None:
        """Add audio. Waits while too much of it is ahead of the detection of speech.

        Raises StreamRefused if the stream has ended, or has more audio without a commit than it may have,
        InsufficientQuota, and DiskFull.
        """
        if self._items:  # whose text is still to come
            try:
                self._allowance.reserve((self._turns.position - self._items[0].start) / SAMPLE_RATE)
            except InsufficientQuota as error:
                self._audio.fail(error)
        self._check_open()
        seconds = len(audio) / encoding.bytes_per_second
        if self._options.turns is None and self._uncommitted_s + seconds > MAX_UNCOMMITTED_S:
            raise StreamRefused(
                f"{MAX_UNCOMMITTED_S:.0f} s of audio are not committed, the most that a stream may have. "
                "Commit or clear it, or let the service find the turns (`turn_detection`).",
                code="input_audio_buffer_full",
            )
        self._received_s += seconds
        self._received_at = self._loop.time()
        await self._audio.append(audio, encoding)
        if self._received_s >= self._space_until_s:
            self._space_until_s = self._received_s + _CHECK_SPACE_S
            if not await asyncio.to_thread(self._has_space):
                self._audio.fail(disk_full())
                self._check_open()

    async def until_ready(self) -> None:
        """Wait until the stream is below its limits of queued audio and undecoded speech, or closed."""
        await self._audio.until_ready()
        while self._undecoded > MAX_UNDECODED_SAMPLES and not self._is_closed:
            await self._decoded.wait()

    def commit(self) -> None:
        """End the open item. Raises StreamRefused if there is too little audio for one."""
        self._check_open()
        if self._uncommitted_s < LEAST_COMMIT_S:
            raise StreamRefused(
                f"There is too little audio to commit: {1000 * self._uncommitted_s:.0f} ms of the "
                f"{1000 * LEAST_COMMIT_S:.0f} ms that an item needs. Append more first.",
                code="input_audio_buffer_commit_empty",
            )
        self._committed_s = self._received_s
        self._audio.then(self._commit)

    def clear(self) -> None:
        """Forget the audio that is not committed."""
        self._check_open()
        self._committed_s = self._received_s
        self._audio.then(self._clear)

    async def finish(self) -> None:
        """No more audio follows: commit the speech that is open, and wait for all texts."""
        self._audio.then(self._end_speech)
        await self._audio.until_examined()
        while self._items and not self._is_closed:
            await self._decoded.wait()

    async def close(self) -> None:
        """End the stream: cancel its work, and remove its audio. It may be closed already."""
        if self._is_closed:
            return
        self._is_closed = True
        self._expecting.close()
        self._audio.stop()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        self._model.dispatcher.cancel(self.job)
        self._notify_decoded()
        for item in self._items:
            self._charge(item)
        self._allowance.reserve(0.0)
        self._on_close(self)
        await asyncio.gather(*tasks, return_exceptions=True)
        # Workers read it: without it, they would report errors that nobody waits for.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_BATCH_S):
                await self._model.dispatcher.until_ended(self.job)
        await self._audio.remove()

    @property
    def _uncommitted_s(self) -> float:
        """How much audio a commit would take, to a microsecond: lengths that are summed are not exact."""
        start = self._item_start if self._open is None else self._open.start
        return round(self._received_s - max(self._committed_s, start / SAMPLE_RATE), 6)

    def _check_open(self) -> None:
        if self._audio.fault is not None:
            raise self._audio.fault
        if self._is_closed:
            raise StreamRefused("The stream has ended: open another one.", code="stream_ended")

    # What is examined becomes turns, and these become items.

    def _detected(self, probabilities: npt.NDArray[np.float32]) -> None:
        before = self._turns.position
        self._take(self._turns.feed(probabilities))
        self._renew_turns()
        self._draft_if_due(self._turns.position - before)

    def _take(self, steps: Iterable[TurnStep]) -> None:
        for step in steps:
            if isinstance(step, TurnStarted):
                self._open_item(step.start)
            elif isinstance(step, ClipClosed):
                self._close_clip(step.clip)
            else:
                self._close_item(step.end)

    @property
    def _open(self) -> Item | None:
        """The item that is not committed, in which somebody has spoken."""
        return self._items[-1] if self._items and self._items[-1].end is None else None

    def _open_item(self, speech_start: int | None = None) -> None:
        """Begin an item, when speech starts; or for audio in which nobody speaks."""
        turns, start = self._options.turns, self._item_start
        item = Item(self._next_number, start, self._options)
        if turns is not None and speech_start is not None:
            item.start = max(start, speech_start - turns.prefix_padding_ms * SAMPLES_PER_MS)
            self._begin_turn(item)
        self._next_number += 1
        self._items.append(item)

    def _begin_turn(self, item: Item) -> None:
        """The service will find the end of an item, unless it does so already."""
        if not item.is_turn:
            item.is_turn = True
            self.on_event(SpeechStarted(item.number, item.start))

    def _close_item(self, end: int) -> None:
        item = self._items[-1]
        item.end = self._item_start = max(end, item.start)
        item.error = item.error or self.fault  # audio is missing
        item.clips.pop()  # the open one
        item.committed_at = self._loop.time()
        if item.is_turn:
            self.on_event(SpeechStopped(item.number, item.end))
        self.on_event(Committed(item.number))
        self._send_text(item)

    def _commit(self) -> None:
        """Commit the open item, or else one in which nobody speaks: each commit is answered."""
        before = self._item_start
        self._end_speech()
        if self._item_start == before:
            self._open_item()
            self._close_item(self._turns.position)

    def _end_speech(self) -> None:
        """Commit the open item, if there is one, and begin anew behind it."""
        self._take(self._turns.finish())
        self._find_turns()

    def _clear(self) -> None:
        if self._open is not None:
            self._charge(self._items.pop())  # whatever comes of it is for nobody
            self._cancel_draft()
        self._find_turns()
        self._item_start = self._turns.position
        self.on_event(Cleared())

    def _charge(self, item: Item) -> None:
        """Charge an item that ends, if it has its text, or the client has drafts of it."""
        if item.has_sent or (item.is_done and item.error is None):
            end = self._turns.position if item.end is None else item.end
            self._allowance.charge(self._model.name, (end - item.start) / SAMPLE_RATE)

    def _renew_turns(self) -> None:
        """Find turns as the client wants now, once none is open."""
        if self._options.turns != self._turns.detection and self._open is None:
            self._find_turns()
            self._item_start = self._turns.position

    def _find_turns(self) -> None:
        self._turns = self._turns.renewed(self._options.turns)

    def _kept_from(self) -> int:
        return max(0, min(self._turns.needed_from, self._audio.position - _KEPT_SAMPLES))

    # Speech becomes text.

    def _open_speech(self) -> tuple[Path, PlannedClip] | None:
        clip = self._turns.open_clip
        return None if clip is None else (self._audio.file.path, clip)

    def _draft_if_due(self, new: int = 0) -> None:
        """Begin a draft of the open speech, unless one is under way or would say nothing new.

        One between the two that have to agree is enough: with more, as many words are taken back.

        `new`: how many samples have come since the last call. If they are many, the first draft leaves out
        so many that the one after it, which follows at once, can agree with it.
        """
        item, speech = self._open, self._open_speech()
        is_drafting = self._draft is not None and not self._draft.done()
        if item is None or speech is None or is_drafting:
            return
        text, clip = item.clips[-1], speech[1]
        grown = clip.end - text.drafted_until
        has_grown = 2 * grown >= text.agreement.needs and self._decoder.may_draft(clip)
        if text.may_be_drafted and has_grown and clip.speech[-1][1] > text.agreement.said_until:
            shorter = replace(clip, end=clip.end - text.agreement.needs)
            is_divided = new > text.agreement.needs and self._decoder.may_draft(shorter)
            making = self._make_draft(item, text, shorter.end if is_divided else None)
            self._draft = self._context.run(self._tasks.spawn, making)

    async def _make_draft(self, item: Item, text: ClipText, until: int | None) -> None:
        draft = None
        try:
            draft = await self._decoder.draft(
                item.options, self._open_speech, until=until, first=not item.has_sent
            )
        except ProcessCrashed:
            text.may_be_drafted = False
        if draft is None:
            self._metrics.drafts_dropped += 1
        else:
            text.add_draft(draft)
            self._send_text(item)
        self._draft = None
        self._draft_if_due()

    def _cancel_draft(self) -> None:
        if self._draft is not None:
            self._draft.cancel()
            self._draft = None

    def _close_clip(self, clip: PlannedClip) -> None:
        self._cancel_draft()
        item = self._items[-1]
        text = item.clips[-1]
        text.end = clip.end
        item.clips.append(ClipText())
        self._undecoded += clip.end - clip.start
        self._context.run(self._tasks.spawn, self._decode(item, text, clip, self._audio.hold()))

    async def _decode(self, item: Item, text: ClipText, clip: PlannedClip, file: AudioFile) -> None:
        try:
            result = await self._decoder.decode(item.options, file.path, clip)
            text.result = place_segments(result.segments, (clip.start, clip.end))
            item.language = result.spoken_language
            self.on_clip((clip.start, clip.end), result)
        except WhisperfleetError as error:
            text.result, item.error = (), error
        finally:
            self._audio.release(file)
            self._undecoded -= clip.end - clip.start
            self._notify_decoded()
        self._send_text(item)

    def _send_text(self, item: Item) -> None:
        """Send what can be sent of an item's text, and all of it once it is there."""
        if item not in self._items:  # it was cleared
            return
        for text, until in item.sendable():
            if not item.has_sent:
                item.has_sent = True
                self._metrics.first_words_s.add(self._since_received(until))
            self.on_event(Agreed(item.number, text))
        if not item.is_done:
            return
        self._items.remove(item)
        self._metrics.final_s.add(self._loop.time() - item.committed_at)
        self._charge(item)
        self.on_event(item.outcome())
        self._notify_decoded()

    def _notify_decoded(self) -> None:
        self._decoded.set()
        self._decoded.clear()

    def _since_received(self, position: int) -> float:
        """How long ago a sample came (s), if the client sends its audio as it is spoken."""
        ahead_s = (self._audio.position - position) / SAMPLE_RATE
        return max(0.0, self._loop.time() - self._received_at + ahead_s)
