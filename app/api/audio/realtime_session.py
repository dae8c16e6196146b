"""One transcription session of OpenAI's Realtime API: a live stream, and what its client knows of it.

A session outlives a connection that breaks: its events are kept for a while, and sent again.
"""

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import structlog

from app.api.audio.realtime_events import (
    Append,
    AudioInput,
    Clear,
    ClientEvent,
    Commit,
    Format,
    InvalidEvent,
    ServerVad,
    Transcription,
    Update,
    parse_event,
)
from app.common.concurrency import BackgroundTasks, Wakeup, end_tasks
from app.common.errors import STOPPING, InvalidInput, StreamRefused, TooLarge, WhisperfleetError
from app.common.options import Options
from app.jobs.job import Submission
from app.jobs.running.live_job import LiveJob
from app.jobs.service import JobService
from app.live.events import (
    Agreed,
    Cleared,
    Committed,
    Completed,
    Failed,
    LiveEvent,
    SpeechStarted,
    SpeechStopped,
    StreamOptions,
)
from app.live.stream import LiveStream
from app.server.errors import error_detail
from app.server.handshakes import INTERNAL_ERROR, POLICY_VIOLATION, SERVICE_RESTART
from app.transcript.terms import Term
from workers.messages import SAMPLE_RATE, Segment, seconds

IDLE_S = 300.0  # without audio
MAX_ERRORS = 20  # in succession
KEPT_CHARS = 1 << 17  # of the latest events that the client has got
UNSENT_CHARS = 1 << 20  # of all events
PART_BYTES = 1 << 16  # of audio that is passed on at once
FINISH_S = 60.0  # for the texts that are still to come, at the end of a session
EVENT_PREFIX = "event_"

log = structlog.get_logger("whisperfleet.live")

_AUDIO = "conversation.item.input_audio_transcription"


class Ending(NamedTuple):
    """How a WebSocket is closed."""

    code: int
    reason: str


class Lagging(Exception):
    """The events that a client has not seen are no longer kept."""


class KeptEvents:
    """The latest events of a session, as JSON. They are numbered from 1."""

    def __init__(self) -> None:
        self.last = 0  # the number of the latest one
        self.sent = 0  # the number of the last one that a connection has sent
        self._texts: deque[str] = deque()
        self._chars = 0

    def add(self, kind: str, **fields: Any) -> None:
        self.last += 1
        event = {"type": kind, "event_id": f"{EVENT_PREFIX}{self.last}", **fields}
        text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        self._texts.append(text)
        self._chars += len(text)
        while len(self._texts) > 1 and self._chars > self._limit:
            self._chars -= len(self._texts.popleft())

    @property
    def _limit(self) -> int:
        # The last one that was sent may be lost with its connection, as those that follow.
        is_oldest_received = self.last - len(self._texts) + 1 < self.sent
        return KEPT_CHARS if is_oldest_received else UNSENT_CHARS

    def after(self, number: int) -> str | None:
        """The event that follows one; None if there is none yet. Raises Lagging."""
        if number >= self.last:
            return None
        index = len(self._texts) - (self.last - number)
        if index < 0:
            raise Lagging
        return self._texts[index]


class RealtimeSession:
    """A stream for `RealtimeSessions`. All methods are called in the event loop."""

    def __init__(
        self,
        owner: str,
        open_stream: Callable[[str, StreamOptions], Awaitable[LiveStream]],
        resolve_model: Callable[[str, str | None], str],
        max_duration_s: float,
    ) -> None:
        """`resolve_model` knows the model that a name means, for a language. Both functions raise the
        service's errors.
        """
        self.id = f"sess_{uuid.uuid4().hex}"
        self.owner = owner
        self.events = KeptEvents()
        self.changed = Wakeup()  # for the connection: there are events, or the ending
        self.ending: Ending | None = None  # once all events are there
        self.active_at = asyncio.get_running_loop().time()  # audio came, or a text was complete
        self.is_known = False  # the client may know its id
        self.is_ending = False  # no more audio is taken
        self.admitted = ExitStack()  # closed with the session
        # Ends the connection that the client has, or had last.
        self.end_connection: Callable[[], Awaitable[None]] | None = None
        self._open_stream = open_stream
        self._resolve_model = resolve_model
        self._max_duration_s = max_duration_s
        self._input = AudioInput(turn_detection=ServerVad())
        self._includes = False  # the client wants what no event has
        self._model = ""
        self._stream: LiveStream | None = None
        self._received_bytes, self._received_s = 0, 0.0
        self._committed_bytes = 0  # of those received, up to the client's last commit
        self._last_item: str | None = None  # that was committed
        self._errors = 0  # in succession
        self._tasks = BackgroundTasks()
        self._job: LiveJob | None = None  # which stores the sound, and goes on after the stream
        self._end_job: Callable[[LiveJob], Awaitable[None]] | None = None
        self._of_job: dict[str, str] = {}  # in all events

    async def open(self, words: Transcription) -> None:
        """Open the stream. Raises UnknownModel, NotReady and the other errors of `LiveService.open`."""
        self._input = self._input.model_copy(update={"transcription": words})
        await self._open(self._resolved(self._input), self._input.options)

    async def make_job(self, jobs: JobService, submission: Submission, terms: tuple[Term, ...]) -> None:
        """Make a job of the stream, before audio comes. Raises as `JobService.open_live` does."""
        options = _options_of_job(submission.options, self._input)
        job = await jobs.open_live(replace(submission, model=self._model, options=options), terms)
        self._take(job, jobs)

    async def take_up(self, jobs: JobService, job_id: str) -> None:
        """Go on with a job instead. Raises as `JobService.resume_live` does."""
        job = await jobs.resume_live(job_id, self.owner)
        if not job.is_silent:
            self._input = self._input.model_copy(update={"format": Format.of(job.encoding)})
            self._received_bytes = job.received
            self._received_s = job.received / job.encoding.bytes_per_second
        self._take(job, jobs)

    def _take(self, job: LiveJob, jobs: JobService) -> None:
        self._job, self._end_job, self._of_job = job, jobs.end_live, {"job_id": job.job.id}
        deleted = StreamRefused("The job of the stream was deleted.", code="job_deleted")
        job.on_cancel = lambda: self.end(POLICY_VIOLATION, deleted)
        assert self._stream is not None
        self._stream.on_clip = job.publish

    def created(self, seen: int) -> str:
        """The first event of a connection whose client has seen the events up to a number."""
        self.is_known = True
        event = {"type": "session.created", "event_id": f"{EVENT_PREFIX}{seen}", **self._of_job}
        return json.dumps(event | {"session": self._document()}, ensure_ascii=False)

    async def handle(self, message: bytes) -> None:
        """Do what an event of the client says. A faulty one is answered with an error."""
        if self.is_ending:
            return
        event_id = None
        try:
            event = parse_event(message)
            del message
            event_id = event.event_id
            await self._handle(event)
        except InvalidEvent as error:
            self._refuse(error, error.event_id)
        except WhisperfleetError as error:
            self._refuse(error, event_id)
            if self._stream is not None and self._stream.fault is not None:
                self.end(INTERNAL_ERROR, self._stream.fault)
        except OSError as error:  # of the disk: it would be taken for that of a connection that broke
            raise RuntimeError("an event of a live stream failed") from error
        else:
            self._errors = 0

    async def until_ready(self) -> None:
        """Wait until the stream is below its limits of queued work."""
        if self._stream is not None and not self.is_ending:
            await self._stream.until_ready()

    @property
    def owes_text(self) -> bool:
        """Whether the client waits for the text of audio that is committed."""
        return self._stream is not None and self._stream.owes_text

    def end(self, code: int, error: WhisperfleetError) -> None:
        """Take no more audio, send the texts that are still to come, and say why."""
        if not self.is_ending:
            self.is_ending = True
            self._tasks.spawn(self._end(code, error))

    def stop(self) -> None:
        """The service stops."""
        self.end(SERVICE_RESTART, StreamRefused(STOPPING, code="service_stopping"))

    async def close(self) -> None:
        self.is_ending = True
        self.ending = self.ending or Ending(POLICY_VIOLATION, "The stream has ended.")
        self.changed.set()
        try:
            await end_tasks(*self._tasks)
            if self._stream is not None:
                await self._stream.close()
        finally:
            self.admitted.close()
            if self._job is not None and self._end_job is not None:
                await self._end_job(self._job)

    async def _end(self, code: int, error: WhisperfleetError) -> None:
        assert self._stream is not None
        try:
            async with asyncio.timeout(FINISH_S):
                await self._stream.finish()
        except TimeoutError:
            log.warning("a live stream has ended without its last texts", session=self.id)
        self._send("error", error=error_detail(error) | {"event_id": None})
        self.ending = Ending(code, error.message)
        self.changed.set()

    # From the client

    async def _handle(self, event: ClientEvent) -> None:
        assert self._stream is not None
        match event:
            case Append(audio=audio):
                await self._append(self._stream, audio)
            case Commit():
                self._stream.commit()
                self._committed_bytes = self._received_bytes
                self._end_sample()
            case Clear():
                self._stream.clear()
                self._end_sample()
            case Update():
                await self._update(event)

    async def _append(self, stream: LiveStream, audio: bytes) -> None:
        encoding = self._input.encoding
        for start in range(0, len(audio), PART_BYTES):
            part = audio[start : start + PART_BYTES]
            if self.is_ending:
                return
            if self._received_s > self._max_duration_s:
                error = TooLarge(
                    f"The stream has lasted {self._max_duration_s:.0f} s, the longest that the service takes "
                    "(WHISPER_MAX_DURATION_S). Open a new one.",
                    code="stream_too_long",
                )
                self.end(POLICY_VIOLATION, error)
                return
            await stream.append(part, encoding)
            if self._job is not None:
                try:
                    await self._job.append(part, encoding)
                except WhisperfleetError as error:
                    self.end(INTERNAL_ERROR, error)
                    return
            self.active_at = asyncio.get_running_loop().time()
            self._received_bytes += len(part)
            self._received_s += len(part) / encoding.bytes_per_second

    async def _update(self, event: Update) -> None:
        assert self._stream is not None
        audio = event.session.audio
        wanted = self._input.changed(audio.input) if audio and audio.input else self._input
        options, model = wanted.options, self._resolved(wanted)
        if self._job is not None and self._received_bytes and wanted.encoding != self._input.encoding:
            raise InvalidInput(
                "The format of a stream with a job cannot change once there is audio, which is stored as it "
                "comes.",
                param="session.audio.input.format",
            )
        if model == self._model:
            self._stream.configure(options)
        elif self._received_bytes:
            raise InvalidInput(
                "The model of a stream cannot change once there is audio: open another stream.",
                param="session.audio.input.transcription.model",
            )
        else:
            before = self._stream
            await self._open(model, options)
            await before.close()
        is_changed, self._input = wanted is not self._input, wanted
        if self._job is not None and is_changed:
            options_of_job = _options_of_job(self._job.job.submission.options, wanted)
            await self._job.configure(model, options_of_job)
        if event.session.include is not None:
            self._includes = bool(event.session.include)
        self._send("session.updated", session=self._document())

    def _resolved(self, wanted: AudioInput) -> str:
        """The model that counts. Raises UnknownModel, and InvalidInput if it does not know a language."""
        options, name = wanted.options, wanted.words.model or ""
        languages = options.languages or (options.language,)
        for language in languages:
            model = self._resolve_model(name, language)
        return model

    async def _open(self, model: str, options: StreamOptions) -> None:
        stream = await self._open_stream(model, options)
        stream.on_event = self._report
        if self._job is not None:
            stream.on_clip = self._job.publish
        self._stream, self._model = stream, model

    def _end_sample(self) -> None:
        if self._job is not None:
            self._job.end_sample()

    # To the client

    def _document(self) -> dict[str, Any]:
        """The session. Programs that continue one need the last fields, which are not OpenAI's."""
        return {
            "type": "transcription",
            "object": "realtime.transcription_session",
            "id": self.id,
            "audio": {"input": self._input.document(self._model)},
            "without_effect": [*self._input.without_effect, *(["include"] if self._includes else [])],
            "received_bytes": self._received_bytes,
            "committed_bytes": self._committed_bytes,
            "received_ms": round(1000 * self._received_s, 3),
        }

    def _refuse(self, error: WhisperfleetError, event_id: str | None) -> None:
        self._send("error", error=error_detail(error) | {"event_id": event_id})
        # A stream that takes nothing now makes no event faulty.
        self._errors += not isinstance(error, StreamRefused)
        if self._errors >= MAX_ERRORS:
            refusal = StreamRefused(
                f"{MAX_ERRORS} events in succession were faulty. Correct the client.", code="too_many_errors"
            )
            self.end(POLICY_VIOLATION, refusal)

    def _send(self, kind: str, **fields: Any) -> None:
        self.events.add(kind, **self._of_job, **fields)
        self.changed.set()

    def _item_id(self, number: int) -> str:
        return f"item_{self.id[-12:]}_{number}"

    def _report(self, event: LiveEvent) -> None:
        match event:
            case SpeechStarted(number, position):
                ms, item = _ms(position), self._item_id(number)
                self._send("input_audio_buffer.speech_started", audio_start_ms=ms, item_id=item)
            case SpeechStopped(number, position):
                ms, item = _ms(position), self._item_id(number)
                self._send("input_audio_buffer.speech_stopped", audio_end_ms=ms, item_id=item)
            case Committed(number):
                self._send_item(self._item_id(number))
            case Cleared():
                self._send("input_audio_buffer.cleared")
            case Agreed(number, text):
                self._send_text(number, "delta", delta=text)
            case Completed():
                self.active_at = asyncio.get_running_loop().time()
                self._send_completed(event)
            case Failed(number, error):
                self._send_text(number, "failed", error=error_detail(error))

    def _send_item(self, id: str) -> None:
        previous, self._last_item = self._last_item, id
        self._send("input_audio_buffer.committed", item_id=id, previous_item_id=previous)
        item = {
            "id": id,
            "object": "realtime.item",
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_audio", "transcript": None}],
        }
        for kind in ("conversation.item.added", "conversation.item.done"):
            self._send(kind, item=item, previous_item_id=previous)

    def _send_completed(self, event: Completed) -> None:
        for number, segment in enumerate(event.segments):
            self._send_text(
                event.item,
                "segment",
                id=f"{self._item_id(event.item)}_{number}",
                start=seconds(segment.start),
                end=seconds(segment.end),
                text=segment.text.strip(),
                speaker="",  # nobody knows who speaks
            )
        self._send_text(
            event.item,
            "completed",
            transcript=event.text,
            usage={"type": "duration", "seconds": seconds(event.samples)},
            languages=[{"code": event.language}] if event.language else [],
            words=[word for segment in event.segments for word in _words(segment)],
        )

    def _send_text(self, item: int, kind: str, **fields: Any) -> None:
        self._send(f"{_AUDIO}.{kind}", item_id=self._item_id(item), content_index=0, **fields)


def _options_of_job(submitted: Options, wanted: AudioInput) -> Options:
    """The options of a job, with those of its stream."""
    options = wanted.options
    return submitted.model_copy(
        update={
            "language": options.language,
            "languages": ",".join(options.languages) or None,
            "prompt": options.prompt,
            "hotwords": options.hotwords,
        }
    )


def _ms(position: int) -> int:
    return round(1000 * position / SAMPLE_RATE)


def _words(segment: Segment) -> list[dict[str, Any]]:
    """The words of a segment; times in seconds of the stream."""
    return [
        {"word": word.text.strip(), "start": seconds(word.start), "end": seconds(word.end)}
        for word in segment.words
    ]
