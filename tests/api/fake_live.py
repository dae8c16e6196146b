"""Live streams without workers. Tests say what the streams tell, and read what they were told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from app.common.errors import StreamRefused, WhisperfleetError
from app.live.events import Agreed, Cleared, Committed, Completed, LiveEvent, StreamOptions
from app.live.metrics import LiveMetrics
from app.transcript.timeline import ClipResult
from workers.messages import PCM_16K, SAMPLE_RATE, Encoding, Span


@dataclass
class FakeStream:
    """Commits what it has, with the length as its text, or has the events of a test at its end."""

    model: str
    options: StreamOptions
    events: list[LiveEvent] | None = None
    audio: bytearray = field(default_factory=bytearray)
    encodings: list[Encoding] = field(default_factory=list)
    uncommitted: int = 0  # bytes
    items: int = 0
    paused: bool = False  # no append ends
    fault = None  # why it takes no more
    owes_text = False
    id = "4f"
    is_finished: bool = False
    is_closed: bool = False
    on_event: Callable[[LiveEvent], None] = lambda event: None
    on_clip: Callable[[Span, ClipResult], None] = lambda clip, result: None

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def tell(self, *events: LiveEvent) -> None:
        """Let the client have events. Called by the thread of a test."""
        self._loop.call_soon_threadsafe(lambda: [self.on_event(event) for event in events])

    def show(self, clip: Span, result: ClipResult) -> None:
        """Have the text of a clip. Called by the thread of a test."""
        self._loop.call_soon_threadsafe(lambda: self.on_clip(clip, result))

    def configure(self, options: StreamOptions) -> None:
        self.options = options

    async def until_ready(self) -> None: ...

    async def append(self, audio: bytes, encoding: Encoding = PCM_16K) -> None:
        while self.paused:  # noqa: ASYNC110 (another thread sets it)
            await asyncio.sleep(0.005)
        if self.fault is not None:
            raise self.fault
        self.audio += audio
        self.encodings.append(encoding)
        self.uncommitted += len(audio)
        while self.events and isinstance(self.events[0], Agreed):
            self.on_event(self.events.pop(0))

    def commit(self) -> None:
        if not self.uncommitted:
            raise StreamRefused("There is no audio to commit.", code="input_audio_buffer_commit_empty")
        number, self.items = self.items, self.items + 1
        self.on_event(Committed(number))
        self.on_event(Completed(number, f"{self.uncommitted} bytes.", (), SAMPLE_RATE, "en"))
        self.uncommitted = 0

    def clear(self) -> None:
        self.uncommitted = 0
        self.on_event(Cleared())

    async def finish(self) -> None:
        self.is_finished = True
        if self.events is not None:
            for event in self.events:
                self.on_event(event)
        elif self.uncommitted:
            self.commit()

    async def close(self) -> None:
        self.is_closed = True


class FakeLiveService:
    """Opens streams, unless it has an error."""

    def __init__(self, service: object = None) -> None:
        self.metrics = LiveMetrics()
        self.reset()

    def reset(self) -> None:
        self.streams: list[FakeStream] = []
        self.error: WhisperfleetError | None = None
        self.events: list[LiveEvent] | None = None  # of the streams, instead of their own

    async def open(self, model: str, options: StreamOptions) -> FakeStream:
        if self.error is not None:
            raise self.error
        events = None if self.events is None else list(self.events)
        self.streams.append(FakeStream(model, options, events))
        return self.streams[-1]

    async def stop(self) -> None: ...
