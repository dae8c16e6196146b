"""What the front end and its child processes exchange: frozen dataclasses and an error, stdlib only.

Audio is 16 kHz mono int16 everywhere; times are whole samples of it, so that an offset is one integer
and nothing drifts. Milliseconds exist in subtitle files only.
"""

from dataclasses import dataclass

SAMPLE_RATE = 16_000  # Hz
BYTES_PER_SAMPLE = 2  # int16
MAX_CLIP_SAMPLES = 30 * SAMPLE_RATE  # Whisper's window
FRAME_SAMPLES = 512  # one step of silero-vad: 32 ms

# A half-open span of samples: [start, end).
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How a clip is to be decoded; everything a worker must know beside the audio."""

    model: str
    task: str = "transcribe"  # or "translate"
    language: str | None = None  # ISO 639-1 code; None: detected from the clip itself
    prompt: str | None = None
    hotwords: str | None = None
    temperature: float = 0.0
    beam_size: int = 5
    word_timestamps: bool = False

    @property
    def batch_key(self) -> tuple[str, float, int]:
        """Clips with equal keys may share one batch; language, task and prompt are set row by row."""
        return (self.model, self.temperature, self.beam_size)


@dataclass(frozen=True, slots=True)
class Clip:
    """An unbroken span of a recording, at most `MAX_CLIP_SAMPLES` long."""

    pcm: bytes  # int16, little-endian
    speech: tuple[Span, ...]  # where the clip has speech, in samples from the clip's start
    decoding: Decoding

    @property
    def samples(self) -> int:
        return len(self.pcm) // BYTES_PER_SAMPLE


@dataclass(frozen=True, slots=True)
class Word:
    """One word as Whisper spells it, with the space before it if there is one. Times in samples."""

    text: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text between two timestamps of the decoder. Times in samples.

    In a `ClipResult` times count from the clip's start, in a timeline from the recording's.
    """

    start: int
    end: int
    text: str
    tokens: tuple[int, ...]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class ClipResult:
    """What a worker heard in one clip."""

    language: str  # ISO 639-1: the one asked for, or the likeliest
    language_probs: tuple[tuple[str, float], ...]  # likeliest first; empty where it was asked for
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a worker needs to load its model."""

    model: str  # the name that requests use
    path: str  # folder in CTranslate2 format; empty where the model is simulated
    device: str  # "cuda" or "cpu"; with "cuda" always the first visible one
    compute_type: str
    cpu_threads: int
    safe: bool = False  # `auto` means the compute type that takes the least memory


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker tells of itself once its model is loaded."""

    pid: int
    visible_devices: str | None  # CUDA_VISIBLE_DEVICES as the worker itself reads it
    model: str
    device: str
    compute_type: str
    loads: int  # how often this process has loaded a model
    languages: tuple[str, ...]  # ISO 639-1 codes that the model knows


class RecordingRefused(Exception):
    """A child process cannot use a client's file or URL.

    `code` is a short constant that a program can test for; `message` says what is wrong and what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type["RecordingRefused"], tuple[str, str]]:
        # The default would call the class with the message alone.
        return (type(self), (self.code, self.message))
