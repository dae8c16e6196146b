"""A service without workers. Tests set what it returns, and read how it was called."""

import asyncio
import hashlib
import math
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np

from app.common.errors import ClipFailed, UnknownNode, WhisperfleetError
from app.common.options import Options
from app.engines.catalogue import ModelCatalogue
from app.engines.gpu_usage import GpuMonitor
from app.engines.ledger import BatchLedger, JobName
from app.intake.budgets import Allowance, budgets_of
from app.intake.data_folder import DataFolder
from app.intake.uploads import Upload
from app.media.pcm_files import remove_channels
from app.media.sound_copies import SoundCopies
from app.pool.cluster.node_places import NO_CLUSTER, find_node, node_row
from app.pool.cluster.ray_messages import RayNode
from app.pool.helper import Helper
from app.pool.tasks import SlotStatus
from app.recording.clip_decoding import ClipRequest
from app.recording.clip_search import FoundSpeech
from app.recording.recording_work import Observer, Progress, WindowDispatcher
from app.recording.result_cache import ClipResults
from app.recording.speech import VadParameters
from app.settings import Settings
from app.telemetry.work import current_work
from app.transcript.edited import EditedSegment
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.speakers.voices import Voices, pack_voices
from app.transcript.terms import Term, replace_terms
from app.transcript.timeline import ClipResult, Transcript
from tests.sample_peaks import collected
from workers.messages import (
    EVERYTHING,
    SAMPLE_RATE,
    Decoded,
    DecodingOptions,
    LoadOptions,
    Segment,
    Selection,
    SoundTrack,
    Span,
    SpeakerModel,
    TrackChoice,
    Word,
)

OTHER_MODEL = "Systran/faster-whisper-tiny.en"  # cannot translate


def words(text: str, start: float, end: float) -> tuple[Word, ...]:
    """`text` spread evenly from `start` to `end` (s)."""
    texts = [f" {word}" for word in text.split()]
    step = (end - start) / len(texts)
    at = [int((start + step * number) * SAMPLE_RATE) for number in range(len(texts) + 1)]
    return tuple(Word(word, at[i], at[i + 1], 0.9) for i, word in enumerate(texts))


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


def spoken(speaker: str | None, *turns: tuple[int, str], id: str, of: Segment) -> EditedSegment:
    """A segment with its speaker, and other speakers from some of its words on."""
    values = {field.name: getattr(of, field.name) for field in fields(Segment)}
    return EditedSegment(**values, id=id, speaker=speaker, turns=turns)


# Somebody, Bob, and somebody else.
DIALOGUE = replace(
    TRANSCRIPT,
    segments=(
        spoken("S1", id="0-0", of=TRANSCRIPT.segments[0]),
        spoken("Bob", id="0-1", of=TRANSCRIPT.segments[1]),
        spoken("S2", id="0-2", of=segment("Amen.", 3.9, 4.1)),
    ),
)

FAKE_VOICES = SpeakerModel("fake", "", "fake")

# Twenty seconds, in which somebody speaks from 0.5 s to 18 s. At 10 s it is least likely.
FOUND = FoundSpeech(
    spans=((8_007, 18 * SAMPLE_RATE),),
    probabilities=np.where(abs(np.arange(625) - 312) < 2, 0.6, 0.9).astype(np.float32),
    samples=20 * SAMPLE_RATE,
)

# A tone of 4.2 s, from the amplitude -0.9922 to 0.5. It is half as loud in its second third, and then silent.
TRACKS = (SoundTrack(0, "eng", None, "flac", 1, True),)
TONE = np.concatenate(
    [
        np.resize(np.array(wave, np.int16), TRANSCRIPT.samples // 3)
        for wave in ([-32512, 16384], [-16384, 8192], [0])
    ]
)

# The second segment in the format of openai-whisper and OpenAI's API.
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


def catalogue(
    default: str = "tiny", other: str = OTHER_MODEL, aliases: Mapping[str, str] = MappingProxyType({})
) -> ModelCatalogue:
    """Two models, whose files are on this machine. The default one is loaded."""
    options = {
        name: LoadOptions(name, str(Path(__file__).parent), "cpu", "int8", 1) for name in (default, other)
    }
    return ModelCatalogue(default, 300.0, options, (other,), aliases, default.__eq__)


@dataclass
class Call:
    """A recording that the service was to transcribe."""

    upload: Upload
    sha256: str  # of the file on disk
    options: Options
    model: str
    known: Sequence[KnownSpeaker] = ()


def with_terms(transcript: Transcript, terms: tuple[Term, ...]) -> Transcript:
    """The transcript as the pipeline makes it with terms."""
    if not terms:
        return transcript
    return replace(transcript, segments=replace_terms(transcript.segments, terms, transcript.language))


class FakeEncoder:
    """Writes what it was asked for into the file, instead of sound. Tests pause it and let it fail."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.made: list[str] = []  # what it was asked for
        self.paused = False
        self.error: BaseException | None = None
        self.cancelled = 0

    async def encode(
        self,
        source: Path,
        target: Path,
        form: str,
        *,
        track: TrackChoice = None,
        start_s: float = 0.0,
        end_s: float = math.inf,
    ) -> None:
        asked = (
            f"{form} {start_s:g}-{end_s:g} of {'the copy' if source.suffix == '.flac' else 'the recording'}"
        )
        await asyncio.to_thread(target.write_bytes, b"incomplete")
        self.made.append(asked)
        try:
            while self.paused:  # noqa: ASYNC110 (another thread sets it)
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        await asyncio.to_thread(target.write_text, asked)


@dataclass
class FakeFleet:
    """Workers without processes, as a test describes them."""

    catalogue: ModelCatalogue = field(default_factory=catalogue)
    reason: str | None = None  # why the service is not ready
    jobs_at_once: int = 4
    is_asleep: bool = False
    gpus: GpuMonitor = field(default_factory=lambda: GpuMonitor(()))
    ledger: BatchLedger = field(default_factory=BatchLedger)
    on_nodes: Counter[tuple[str, str]] = field(default_factory=Counter)  # workers: node and state
    statuses: list[SlotStatus] = field(default_factory=lambda: [SlotStatus("idle")])
    waiting: tuple[int, float] = (0, 0.0)  # clips, and how long the oldest has waited
    row: dict[str, object] = field(default_factory=dict)  # what differs in the worker's row
    cluster: Sequence[RayNode] | None = None  # its nodes; None: another engine
    drained: set[str] = field(default_factory=set)  # ids of nodes
    workers_of_nodes: Sequence[int] = (0, 1)  # slots of each node

    async def drain(self, timeout_s: float) -> None: ...

    async def ready(self, model: str, options: Options) -> tuple[WindowDispatcher | None, str]:
        return None, model

    def readiness(self) -> str | None:
        return self.reason

    def workers(self) -> list[dict[str, object]]:
        return [
            {
                "slot": 0, "node": None, "node_name": None, "actor": None,
                "device": "cpu", "visible_devices": "", "pid": 4711, "model": "tiny",
                "models": ["tiny"], "backend": "ctranslate2", "compute_type": "int8", "batch_size": 4,
                "state": "idle", "loads": 1, "batches": 12, "clips": 90, "audio_s": 2412.5, "restarts": 0,
                "error": None, "notes": [], "gpu": None, "working": [],
            }
            | self.row
        ]  # fmt: skip

    def nodes(self) -> list[dict[str, object]]:
        return [self._node(node) for node in self.cluster or ()]

    def drain_node(self, name: str, *, undo: bool = False) -> dict[str, object]:
        if self.cluster is None:
            raise UnknownNode(NO_CLUSTER)
        node = find_node(self.cluster, name)
        (self.drained.discard if undo else self.drained.add)(node.id)
        return self._node(node)

    def _node(self, node: RayNode) -> dict[str, object]:
        drains = node.id in self.drained
        state = "draining" if drains else "busy"
        return node_row(node, dict.fromkeys(self.workers_of_nodes, state), drains=drains)

    def slot_statuses(self) -> dict[int, SlotStatus]:
        return dict(enumerate(self.statuses))

    def workers_by_node(self) -> Counter[tuple[str, str]]:
        return self.on_nodes

    def backlog(self) -> tuple[int, float]:
        return self.waiting


@dataclass
class FakeMedia:
    """The data folder, without media workers."""

    service: "FakeService"
    folder: DataFolder
    encoder: FakeEncoder
    copies: SoundCopies
    found: FoundSpeech = FOUND
    parameters: VadParameters | None = None  # of the last search for speech
    peaks_made: int = 0  # on demand
    no_voices: WhisperfleetError | None = None  # why voices cannot be embedded
    voices_made: int = 0  # on demand
    pool: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(busy_ratio=0.0))
    speaker_model: SpeakerModel = FAKE_VOICES
    speaker_models: SimpleNamespace = field(init=False)

    def __post_init__(self) -> None:
        self.speaker_models = SimpleNamespace(get=self._speaker_model, check=self._check)

    async def _speaker_model(self) -> SpeakerModel:
        return self.speaker_model

    async def find_speech(self, upload: Upload, parameters: VadParameters) -> FoundSpeech:
        self.parameters = parameters
        await self.service.work(upload)
        return self.found

    async def peaks(self, upload: Upload, selection: Selection = EVERYTHING) -> bytes:
        self.peaks_made += 1
        await self.service.work(upload)
        return collected(TONE).pack()

    async def voices(
        self, upload: Upload, windows: Mapping[Span, Sequence[Span]], selection: Selection = EVERYTHING
    ) -> dict[Span, bytes]:
        """Those of the service, in the first clip."""
        self.voices_made += 1
        await self.service.work(upload)
        assert self.service.voices is not None
        return {next(iter(windows)): pack_voices(self.service.voices)}

    def _check(self) -> None:
        if self.no_voices is not None:
            raise self.no_voices

    async def known_speakers(
        self, names: Sequence[str], references: Sequence[str]
    ) -> tuple[KnownSpeaker, ...]:
        """Voices that tell the length of the references."""
        return tuple(
            KnownSpeaker(name, np.array([len(reference)], np.float32), "fake")
            for name, reference in zip(names, references, strict=True)
        )


@dataclass
class FakeService:
    """As the real service, it leaves the file of an upload to the caller."""

    settings: Settings
    transcript: Transcript = TRANSCRIPT
    detected: tuple[str, float] = ("en", 0.98)  # what `detect_language` returns
    finds_peaks: bool = False  # while it decodes a job's recording
    error: BaseException | None = None
    failure: ClipFailed | None = None  # of a clip of jobs; the others are transcribed
    clips: Sequence[tuple[Span, ClipResult | None]] = ()  # of jobs; None: the clip fails
    voices: Voices | None = None  # in recordings of jobs with `diarize`
    late_error: BaseException | None = None  # raised after all segments were published
    work_on_job: "WorkOnJob | None" = None  # instead of what pipelines do
    paused: bool = False  # no transcription ends while this is set
    calls: list[Call] = field(default_factory=list)
    started: threading.Event = field(default_factory=threading.Event)  # a transcription was
    cancelled: threading.Event = field(default_factory=threading.Event)
    running: bool = False
    fleet: FakeFleet = field(default_factory=FakeFleet)
    media: FakeMedia = field(init=False)
    helper: Helper = field(default_factory=Helper)

    def __post_init__(self) -> None:
        folder, encoder = DataFolder(self.settings.data_dir), FakeEncoder()
        copies = SoundCopies(folder.uploads, folder.copies, self.settings.audio_cache_bytes, encoder)
        self.media = FakeMedia(self, folder, encoder, copies)
        self.budgets = budgets_of(self.settings)

    def reset(self) -> None:
        """Forget what a test set and did."""
        settings, running, helper, fleet, media, budgets = (
            self.settings, self.running, self.helper, self.fleet, self.media, self.budgets
        )  # fmt: skip
        vars(fleet).clear()
        fleet.__init__()  # type: ignore[misc]
        vars(self).clear()
        self.__init__(settings, running=running, fleet=fleet, helper=helper)  # type: ignore[misc]
        # The folder knows the space that uploads have reserved, and the copies know their files.
        media.encoder.reset()
        media.__init__(self, media.folder, media.encoder, media.copies)  # type: ignore[misc]
        self.media, self.budgets = media, budgets

    async def start(self) -> None:
        for folder in (self.media.folder.uploads, self.media.folder.pcm, self.media.folder.copies):
            folder.mkdir(parents=True, exist_ok=True)
        self.running = True

    async def stop(self) -> None:
        await self.media.copies.stop()
        await self.helper.stop()
        self.running = False

    async def transcribe(
        self,
        upload: Upload,
        options: Options,
        model: str,
        observer: Observer | None = None,
        known: Sequence[KnownSpeaker] = (),
        terms: tuple[Term, ...] = (),
    ) -> Transcript:
        allowance = Allowance(self.budgets, current_work().owner)
        allowance.reserve(self.transcript.seconds)
        try:
            await self.work(upload, options, model, known)
            transcript = with_terms(self.transcript, terms)
            for segment in transcript.segments:
                if observer is not None:
                    observer.transcribed([segment])
            await asyncio.sleep(0.01)
            if self.late_error is not None:
                raise self.late_error
            allowance.charge(model, transcript.transcribed_s)
            return transcript
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            allowance.reserve(0.0)

    async def detect_language(self, upload: Upload) -> tuple[str, float]:
        await self.work(upload, model=self.fleet.catalogue.default)
        return self.detected

    async def work(
        self,
        upload: Upload,
        options: Options | None = None,
        model: str = "",
        known: Sequence[KnownSpeaker] = (),
    ) -> None:
        """Record a call, and wait while the service is paused. Raises the error that the test wants."""
        try:
            await self.record(upload, options or Options(), model, known)
            await self.resumed()
            if self.error is not None:
                raise self.error
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    def pipeline(
        self,
        job: JobName,
        upload: Upload,
        options: Options,
        model: str,
        fleet: WindowDispatcher | None,
        results: ClipResults,
        observer: Observer,
        decoded: Decoded | None = None,
        known: Sequence[KnownSpeaker] = (),
        terms: tuple[Term, ...] = (),
        allowance: Allowance | None = None,
    ) -> "FakePipeline":
        more = (results, observer, decoded, known, terms, allowance)
        return FakePipeline(self, self.media.folder.pcm / job.file, upload, options, model, *more)

    async def remove_decoded(self, job: JobName) -> None:
        remove_channels(self.media.folder.pcm / job.file)

    async def keep_decoded(self, job: JobName) -> None: ...

    async def record(
        self, upload: Upload, options: Options, model: str, known: Sequence[KnownSpeaker] = ()
    ) -> None:
        """Record a call."""
        content = await asyncio.to_thread(upload.path.read_bytes)
        self.calls.append(Call(upload, hashlib.sha256(content).hexdigest(), options, model, known))
        self.started.set()

    async def resumed(self) -> None:
        """Wait while the service is paused."""
        while self.paused:  # noqa: ASYNC110 (another thread sets it)
            await asyncio.sleep(0.005)


@dataclass
class FakePipeline:
    """Transcribes half of a job's recording at once, and the rest when the service is not paused.

    Publishes the service's clips meanwhile.
    """

    service: FakeService
    pcm_path: Path
    upload: Upload
    options: Options
    model: str
    results: ClipResults
    observer: Observer = field(default_factory=Observer)
    decoded: Decoded | None = None
    known: Sequence[KnownSpeaker] = ()
    terms: tuple[Term, ...] = ()
    allowance: Allowance | None = None

    @property
    def errors(self) -> list[ClipFailed]:
        return [] if self.service.failure is None else [self.service.failure]

    async def run(self) -> Transcript:
        service = self.service
        total_s = service.transcript.samples / SAMPLE_RATE
        try:
            self.pcm_path.write_bytes(bytes(100))
            if self.allowance is not None:
                self.allowance.reserve(total_s)
            if service.work_on_job is not None:
                return await service.work_on_job(self)
            await service.record(self.upload, self.options, self.model, self.known)
            if self.options.diarize and service.voices is not None:
                await self.results.get_or_embed((0, service.transcript.samples), self._voices)
            if service.finds_peaks:
                collected(TONE, self.observer.peaks)
                self.observer.decoded(Decoded(len(TONE), True, TRACKS))
            half = len(service.clips) // 2
            await self._publish(service.clips[:half])
            self.observer.progressed(Progress(total_s, total_s, total_s / 2, 1, 2))
            await service.resumed()
            if service.error is not None:
                raise service.error
            await self._publish(service.clips[half:])
            self.observer.progressed(Progress(total_s, total_s, total_s, 2, 2))
            return with_terms(service.transcript, self.terms)
        except asyncio.CancelledError:
            service.cancelled.set()
            raise

    async def _voices(self, clip: Span) -> bytes:
        assert self.service.voices is not None
        return pack_voices(self.service.voices)

    async def _publish(self, clips: Sequence[tuple[Span, ClipResult | None]]) -> None:
        decoding = DecodingOptions(self.model, language=self.options.language)
        for (start, end), result in clips:
            request = ClipRequest(self.pcm_path, start, end, (), decoding)
            if result is not None:
                await self.results.get_or_transcribe(request, partial(_answer, result))
            self.observer.published((start, end), None if result is None else request.key)


WorkOnJob = Callable[[FakePipeline], Awaitable[Transcript]]


async def _answer(result: ClipResult, request: ClipRequest) -> ClipResult:
    return result
