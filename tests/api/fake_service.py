"""A service without workers: it answers what a test told it to, and remembers what it was asked."""

import asyncio
import hashlib
import threading
from dataclasses import dataclass, field

from app.audio.uploads import Upload
from app.errors import UnknownModel
from app.options import Options
from app.settings import Settings
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Segment, Word


def words(text: str, start: float, end: float) -> tuple[Word, ...]:
    """`text` spread evenly from `start` to `end` (s)."""
    pieces = [f" {piece}" for piece in text.split()]
    step = (end - start) / len(pieces)
    at = [int((start + step * number) * SAMPLE_RATE) for number in range(len(pieces) + 1)]
    return tuple(Word(piece, at[i], at[i + 1], 0.9) for i, piece in enumerate(pieces))


def segment(text: str, start: float, end: float) -> Segment:
    span = (int(start * SAMPLE_RATE), int(end * SAMPLE_RATE))
    return Segment(*span, f" {text}", (1, 2, 3), 0.0, -0.25, 1.5, 0.01, words(text, start, end))


TRANSCRIPT = Transcript(
    task="transcribe",
    model="tiny",
    language="en",
    samples=int(4.2 * SAMPLE_RATE),
    speech=((int(0.5 * SAMPLE_RATE), int(3.9 * SAMPLE_RATE)),),
    segments=(segment("The quick brown fox.", 0.5, 2.0), segment("Über the lazy dog.", 2.3, 3.9)),
)

# Its second segment as openai-whisper and OpenAI's API word it.
SECOND_SEGMENT = {
    "id": 1,
    "seek": 230,
    "start": 2.3,
    "end": 3.9,
    "text": " Über the lazy dog.",
    "tokens": [1, 2, 3],
    "temperature": 0.0,
    "avg_logprob": -0.25,
    "compression_ratio": 1.5,
    "no_speech_prob": 0.01,
}


@dataclass
class Call:
    upload: Upload
    sha256: str  # of the file as it lay on disk
    options: Options
    model: str


@dataclass
class FakeService:
    settings: Settings
    transcript: Transcript = TRANSCRIPT
    detected: tuple[str, float] = ("en", 0.98)  # what `detect_language` answers
    error: BaseException | None = None
    late_error: BaseException | None = None  # once all segments have been told
    reason: str | None = None
    demo: bool = False
    holds: bool = False  # transcriptions never end by themselves
    calls: list[Call] = field(default_factory=list)
    began: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)
    running: bool = False

    async def start(self) -> None:
        self.running = True

    async def stop(self) -> None:
        self.running = False

    async def transcribe(self, upload: Upload, options: Options, model: str, on_segments=None) -> Transcript:
        try:
            content = await asyncio.to_thread(upload.path.read_bytes)
            self.calls.append(Call(upload, hashlib.sha256(content).hexdigest(), options, model))
            self.began.set()
            if self.error is not None:
                raise self.error
            if self.holds:
                await asyncio.Event().wait()
            if on_segments is not None:
                for heard in self.transcript.segments:
                    on_segments([heard])
                await asyncio.sleep(0.01)
            if self.late_error is not None:
                raise self.late_error
            return self.transcript
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            upload.remove()

    async def detect_language(self, upload: Upload) -> tuple[str, float]:
        content = await asyncio.to_thread(upload.path.read_bytes)
        self.calls.append(Call(upload, hashlib.sha256(content).hexdigest(), Options(), "tiny"))
        self.began.set()
        if self.error is not None:
            raise self.error
        return self.detected

    def readiness(self) -> str | None:
        return self.reason

    def workers(self) -> list[dict[str, object]]:
        return [{"slot": 0, "device": "cpu", "state": "idle"}]

    def models(self) -> dict[str, str]:
        return {"tiny": "loaded", "Systran/faster-whisper-tiny": "unloaded"}

    def resolve_model(self, name: str) -> str:
        if name in ("", "whisper-1"):
            return "tiny"
        if name not in self.models():
            raise UnknownModel(f"There is no model {name!r}.", param="model")
        return name

    def can_translate(self, model: str) -> bool:
        return model == "tiny"
