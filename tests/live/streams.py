"""A live stream without processes: speech is what is loud, and its words say where they were spoken."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from app.engines.window_request import WindowRequest
from app.intake.budgets import Allowance
from app.live.decoder import StreamModel
from app.live.detection import Speaker, SpeechDetection
from app.live.events import LiveEvent, StreamOptions
from app.live.metrics import LiveMetrics
from app.live.stream import LiveStream
from app.pool.tasks import TaskResult
from app.recording.clip_planner import MAX_SILENCE_SAMPLES
from app.recording.recording_work import WindowDispatcher
from workers.messages import (
    BYTES_PER_SAMPLE,
    FRAME_SAMPLES,
    FULL_CONTEXT_S,
    SAMPLE_RATE,
    CarriedAudio,
    DetectedSpeech,
    NewAudio,
    Segment,
    Window,
    WindowResult,
    Word,
)

WORD_SAMPLES = SAMPLE_RATE // 2


def loud(seconds: float) -> bytes:
    return np.full(round(seconds * SAMPLE_RATE), 1000, "<i2").tobytes()


def silent(seconds: float) -> bytes:
    return bytes(round(seconds * SAMPLE_RATE) * BYTES_PER_SAMPLE)


class LoudDetection(SpeechDetection):
    """Finds speech in whatever is loud, in this process."""

    def wake(self, stream: Speaker) -> None:
        asyncio.get_running_loop().call_soon(self._examine, stream)

    def _examine(self, stream: Speaker) -> None:
        audio = stream.next_audio()
        if audio is not None:
            stream.detected(detect_in(audio))
            self.wake(stream)


def detect_in(new: NewAudio) -> DetectedSpeech | OSError:
    path = Path(new.pcm_path)
    try:
        if new.copied is not None:
            source, first = new.copied
            before = Path(source).read_bytes()[first * BYTES_PER_SAMPLE :]
            with path.open("wb") as file:
                file.seek(first * BYTES_PER_SAMPLE)
                file.write(before)
        with path.open("ab") as file:
            file.truncate(new.carried.position * BYTES_PER_SAMPLE)
            file.write(new.audio)
    except OSError as error:
        return error
    samples = np.frombuffer(new.carried.unexamined + new.audio, "<i2")
    whole = len(samples) // FRAME_SAMPLES * FRAME_SAMPLES
    probabilities = samples[:whole].reshape(-1, FRAME_SAMPLES).max(axis=1, initial=0) > 0
    position = new.carried.position + len(new.audio) // BYTES_PER_SAMPLE
    carried = CarriedAudio(position=position, unexamined=samples[whole:].tobytes())
    return DetectedSpeech(carried, probabilities.astype(np.float32).tobytes())


def words_in(pcm: bytes, start: int) -> Iterator[Word]:
    """A word for each loud half second of a stream, counted from its start; `start`: of these samples."""
    samples = np.frombuffer(pcm, "<i2")
    first = -(-start // WORD_SAMPLES)
    for number in range(first, (start + len(samples)) // WORD_SAMPLES):
        at = number * WORD_SAMPLES - start
        if samples[at : at + WORD_SAMPLES].all():
            yield Word(f" w{number}", at, at + WORD_SAMPLES, 1.0)


@dataclass
class FakeDispatcher:
    """Answers windows with the words in their audio, each after `delay_s`."""

    delay_s: float = 0.0
    # Called with each window before it is answered; may raise.
    on_window: Callable[[Window, bool], None] = lambda window, is_draft: None
    windows: list[tuple[Window, bool]] = field(default_factory=list)  # and whether it is a draft
    urgent_clips: list[bool] = field(default_factory=list)  # of the windows that are no drafts, as they come
    cancelled: list[str] = field(default_factory=list)
    streams: int = 0  # that are open

    async def submit(
        self,
        job: str,
        payload: WindowRequest,
        *,
        deadline: float | None = None,
        urgent: bool = False,
        **others: Any,
    ) -> TaskResult[WindowResult]:
        if deadline is None:
            self.urgent_clips.append(urgent)
        await asyncio.sleep(self.delay_s)
        window = payload.for_worker()
        self.windows.append((window, deadline is not None))
        self.on_window(window, deadline is not None)
        words = tuple(words_in(window.read().pcm, window.start))
        segments = ()
        if words:
            text = "".join(word.text for word in words)
            segments = (Segment(words[0].start, words[-1].end, text, (), 0.0, 0.0, 1.0, 0.0, words),)
        result = WindowResult(window.decoding.language or "en", (), segments, None, len(words), 0.0, 0.0, 1.0)
        return TaskResult(result, 0, 0)

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)

    @contextmanager
    def expecting_urgent(self) -> Iterator[None]:
        self.streams += 1
        yield
        self.streams -= 1

    async def until_ended(self, job: str) -> None: ...


@asynccontextmanager
async def opened_stream(
    folder: Path,
    options: StreamOptions = StreamOptions(),
    dispatcher: FakeDispatcher | None = None,
    allowance: Allowance | None = None,
) -> AsyncIterator[tuple[LiveStream, list[LiveEvent]]]:
    """A stream, which is closed at the end, and its events so far."""
    model = StreamModel(
        "model",
        cast(WindowDispatcher, dispatcher or FakeDispatcher()),
        MAX_SILENCE_SAMPLES,
        FULL_CONTEXT_S,
        FULL_CONTEXT_S,
    )
    stream = LiveStream(model, options, folder, LoudDetection(), LiveMetrics(), allowance)
    events: list[LiveEvent] = []
    stream.on_event = events.append
    try:
        yield stream, events
    finally:
        await stream.close()
