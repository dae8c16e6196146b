"""A service without workers: it answers what a test told it to, and remembers what it was asked."""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import InvalidInput, UnknownModel
from app.media.uploads import Upload, clean
from app.options import Options
from app.settings import Settings
from app.transcript.timeline import Transcript
from app.transcription.pipeline import Progress
from workers.messages import SAMPLE_RATE, LoadOptions, Segment, Span, Word


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
    holds: bool = False  # no transcription ends as long as this is set
    jobs_at_once: int = 4
    calls: list[Call] = field(default_factory=list)
    began: threading.Event = field(default_factory=threading.Event)
    cancelled: threading.Event = field(default_factory=threading.Event)
    running: bool = False

    def reset(self) -> None:
        """Forget what a test said and saw."""
        running, settings = self.running, self.settings
        vars(self).clear()
        self.__init__(settings, running=running)  # type: ignore[misc]

    async def start(self) -> None:
        for folder in (self.settings.uploads_dir, self.settings.pcm_dir):
            folder.mkdir(parents=True, exist_ok=True)
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
            await self._hold()
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

    async def _hold(self) -> None:
        while self.holds:  # noqa: ASYNC110 (another thread sets it)
            await asyncio.sleep(0.005)

    async def ready(self, model: str, options: Options) -> tuple[None, str]:
        return None, model

    def load_options(self, model: str) -> LoadOptions:
        return LoadOptions(model, str(Path(__file__).parent), "cpu", "int8", 1)

    def pipeline(
        self, job: str, upload: Upload, options: Options, model: str, fleet: None, clip_results: object
    ) -> "FakePipeline":
        return FakePipeline(self, self.settings.pcm_dir / job, upload, options, model)

    def clean(self, uploads: Collection[str], pcm: Collection[str]) -> None:
        clean(self.settings.uploads_dir, uploads)
        clean(self.settings.pcm_dir, pcm)

    async def drain(self, timeout_s: float) -> None: ...

    def readiness(self) -> str | None:
        return self.reason

    def workers(self) -> list[dict[str, object]]:
        return [
            {
                "slot": 0, "device": "cpu", "visible_devices": "", "pid": 4711, "model": "tiny",
                "models": ["tiny"], "compute_type": "int8", "batch_size": 4, "state": "idle", "loads": 1,
                "batches": 12, "clips": 90, "audio_s": 2412.5, "restarts": 0, "error": None,
            }
        ]  # fmt: skip

    def models(self) -> dict[str, str]:
        return {"tiny": "loaded", "Systran/faster-whisper-tiny": "unloaded"}

    def resolve_model(self, name: str, task: str = "transcribe") -> str:
        model = "tiny" if name in ("", "whisper-1") else name
        if model not in self.models():
            raise UnknownModel(f"There is no model {name!r}.", param="model")
        if task == "translate" and not self.can_translate(model):
            raise InvalidInput(f"The model {model!r} cannot translate.", param="model")
        return model

    def can_translate(self, model: str) -> bool:
        return model == "tiny"


@dataclass
class FakePipeline:
    """A job's recording on its way: half of it is heard at once, and the rest when the service lets go."""

    service: FakeService
    pcm_path: Path
    upload: Upload
    options: Options
    model: str
    decoded: int | None = None
    on_decoded: Callable[[int], None] = lambda samples: None
    on_progress: Callable[[Progress], None] = lambda progress: None
    failed_spans: list[Span] = field(default_factory=list)

    async def run(self) -> Transcript:
        service = self.service
        total_s = service.transcript.samples / SAMPLE_RATE
        try:
            self.pcm_path.write_bytes(bytes(100))
            content = await asyncio.to_thread(self.upload.path.read_bytes)
            service.calls.append(
                Call(self.upload, hashlib.sha256(content).hexdigest(), self.options, self.model)
            )
            self.on_progress(Progress(total_s, total_s, total_s / 2, 1, 2))
            service.began.set()
            await service._hold()
            if service.error is not None:
                raise service.error
            self.on_progress(Progress(total_s, total_s, total_s, 2, 2))
            return service.transcript
        except asyncio.CancelledError:
            service.cancelled.set()
            raise
