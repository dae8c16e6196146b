"""The messages between the front end and its child processes: frozen dataclasses and an error, stdlib only.

Audio is 16 kHz mono int16 everywhere. Times are integer counts of its samples, so adding offsets is exact.
Milliseconds exist in subtitle files only.
"""

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

SAMPLE_RATE = 16_000  # Hz
BYTES_PER_SAMPLE = 2  # int16
MAX_CLIP_SAMPLES = 30 * SAMPLE_RATE  # Whisper's window
FULL_CONTEXT_S = 30  # of audio that Whisper's encoder sees
FRAME_SAMPLES = 512  # one step of silero-vad: 32 ms
CHUNK_FRAMES = 60 * SAMPLE_RATE // FRAME_SAMPLES  # of a recording, that silero-vad gets at a time
PEAK_SAMPLES = 320  # one bin of a waveform: 20 ms
MIN_WORD_SAMPLES = 3 * SAMPLE_RATE // 100  # nobody says a shorter word
MAX_SEPARATE_CHANNELS = 8  # of a recording whose channels are transcribed separately

# The lists in a job's document, and so in its events and webhooks. Those that clients send have limits, too.
MAX_TRACKS = 64  # of a recording; a warning says how many there are
MAX_WARNINGS = 20  # of a recording; the others are counted
MAX_FAILED_SPANS = 1000  # in a document; the last one goes to the end of all others
MAX_LISTED_SPEAKERS = 250  # of a transcript that people correct, and in a document

LOWEST_LOGPROB = -100.0  # stands for a log-probability that is not finite: far below any that a model gives
SILENT_LOGPROB = -1.0  # nobody speaks if the average is lower and the no-speech probability is high
SAMPLED_TEXTS = 5  # of each window at temperature > 0; the likeliest is the result. openai-whisper's default

NO_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})  # of a full disk; EDQUOT: of a used-up quota

# A half-open span of samples: [start, end).
Span = tuple[int, int]


def seconds(samples: int) -> float:
    """The time in s, rounded to the millisecond."""
    return round(samples / SAMPLE_RATE, 3)


def clock(seconds: float) -> str:
    """A time as `1:02:03`, or `2:03` below an hour, rounded down to seconds as the page does."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """The options for decoding a window: all that a worker needs besides the audio."""

    model: str
    task: str = "transcribe"  # or "translate"
    language: str | None = None  # ISO 639-1 code; None: detect it from the window
    languages: tuple[str, ...] = ()  # the only ones that are detected; empty: all
    language_only: bool = False  # detect the language and decode no text
    prompt: str | None = None
    hotwords: str | None = None
    temperature: float = 0.0
    beam_size: int = 5
    word_timestamps: bool = False
    no_repeat_ngram_size: int = 0  # the text may not repeat any run of so many tokens; 0: it may
    context_s: int = FULL_CONTEXT_S  # of audio for the encoder: the window is padded to this length

    @property
    def prompted(self) -> bool:
        """Whether the decoder gets text before that of the window."""
        return bool(self.prompt or self.hotwords)

    @property
    def batch_key(self) -> tuple[str, float, int, int, int, bool]:
        """Windows with equal keys may be in one batch; language, task and prompt may differ within it."""
        return (
            self.model,
            self.temperature,
            self.beam_size,
            self.no_repeat_ngram_size,
            self.context_s,
            self.language_only,
        )

    @property
    def beams(self) -> int:
        """How many texts are decoded side by side for each window."""
        return SAMPLED_TEXTS if self.temperature > 0 else self.beam_size


@dataclass(frozen=True, slots=True)
class Window:
    """What a model decodes at once: a continuous span of a recording, at most `MAX_CLIP_SAMPLES` long.

    It holds its audio, or names a file on the worker's machine, from which the worker reads it.
    """

    pcm: bytes  # int16, little-endian; empty until it is read from the file
    speech: tuple[Span, ...]  # in samples from the window's start; simulated workers need it
    decoding: DecodingOptions
    pcm_path: str | None = None  # a file of decoded audio: s16le, mono, 16 kHz
    start: int = 0  # the window in the recording, in samples
    end: int = 0
    stretches: tuple[Span, ...] = ()  # whose languages are detected, too; in samples from the window's start

    @property
    def samples(self) -> int:
        """The length of its audio."""
        return len(self.pcm) // BYTES_PER_SAMPLE if self.pcm_path is None else self.end - self.start

    def read(self) -> "Window":
        """The window with its audio. Raises OSError if the file is gone or ends before the window does."""
        if self.pcm_path is None:
            return self
        with Path(self.pcm_path).open("rb") as file:
            file.seek(self.start * BYTES_PER_SAMPLE)
            pcm = file.read(self.samples * BYTES_PER_SAMPLE)
        if len(pcm) < self.samples * BYTES_PER_SAMPLE:
            raise OSError(f"the decoded audio ends before sample {self.end}")
        return replace(self, pcm=pcm, pcm_path=None)


@dataclass(frozen=True, slots=True)
class Word:
    """One word with Whisper's spelling, including a space before it if there is one. Times in samples."""

    text: str
    start: int
    end: int
    probability: float

    def __reduce__(self) -> tuple[type["Word"], tuple[str, int, int, float]]:
        # Python would copy the state of a frozen dataclass field by field, in five times the time.
        return (Word, (self.text, self.start, self.end, self.probability))


@dataclass(frozen=True, slots=True)
class Segment:
    """Text between two timestamps of the decoder. Times in samples.

    Times count from the start of the window, the clip or the recording, whichever holds the segment.
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
    language: str | None = None  # spoken, ISO 639-1; None: that of the transcript

    def __reduce__(self) -> tuple[type["Segment"], tuple[Any, ...]]:
        # As words; also segments with more fields.
        return (type(self), tuple([getattr(self, name) for name in self.__match_args__]))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When to doubt the decoder. The names are those of transformers' `GenerationConfig` for Whisper."""

    compression_ratio: float = 2.4  # above: the text repeats itself
    logprob: float = -1.0  # below: the decoder guessed
    no_speech: float = 0.6  # above, with a low log-probability: nobody speaks


LanguageProbs = tuple[tuple[str, float], ...]  # ISO 639-1 codes with their probabilities, likeliest first


@dataclass(frozen=True, slots=True)
class WindowResult:
    """The transcript of one window. Times in samples from the window's start."""

    language: str  # ISO 639-1: the requested one, or the likeliest
    language_probs: LanguageProbs  # empty if a language was requested
    # None of these if only the language was.
    segments: tuple[Segment, ...] = ()
    tail: Segment | None = None  # text at the end that has no closing timestamp
    token_count: int = 0
    avg_logprob: float = 0.0
    no_speech_prob: float = 0.0
    compression_ratio: float = 0.0
    thresholds: Thresholds = Thresholds()
    note: str | None = None  # what is missing in the result, and why
    # Of each of the window's stretches; empty if the model knows one language.
    stretch_probs: tuple[LanguageProbs, ...] = ()

    @property
    def silent(self) -> bool:
        # A log-probability that overflowed says nothing about silence.
        guessed = LOWEST_LOGPROB < self.avg_logprob < SILENT_LOGPROB
        return guessed and self.no_speech_prob > self.thresholds.no_speech

    @property
    def texts(self) -> tuple[Segment, ...]:
        """The segments, with the tail."""
        return (*self.segments, self.tail) if self.tail else self.segments

    @property
    def compressible(self) -> bool:
        return self.compression_ratio > self.thresholds.compression_ratio

    @property
    def repetitive(self) -> bool:
        """Whether the text repeats itself more often than anybody has said it, as far as its words show.

        Who says a sentence three times takes the time for it. Words that nobody says have no sound, and
        cross-attention leaves several in a row without a duration.
        """
        short = self._are_short
        return self.compressible and any(all(short[at : at + 3]) for at in range(len(short) - 2))

    @property
    def looping(self) -> bool:
        """Whether the text repeats itself, and nobody has said most of it."""
        short = self._are_short
        return self.compressible and sum(short) > len(short) / 2

    @property
    def _are_short(self) -> list[bool]:
        """Of each word, whether it is too short to be said. Without word times, of three that are."""
        return [w.end - w.start < MIN_WORD_SAMPLES for text in self.texts for w in text.words] or [True] * 3

    @property
    def poor(self) -> bool:
        return not self.silent and (self.repetitive or self.avg_logprob < self.thresholds.logprob)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the client of a live stream encodes its audio. PCM is little-endian; a single byte is unsigned."""

    rate: int = SAMPLE_RATE  # Hz
    width: int = BYTES_PER_SAMPLE  # bytes of one channel
    channels: int = 1
    law: str = ""  # "ulaw" or "alaw": ITU-T G.711; empty: PCM

    @property
    def bytes_per_second(self) -> int:
        return self.rate * self.bytes_per_sample

    @property
    def bytes_per_sample(self) -> int:
        """Those of all channels."""
        return self.width * self.channels


PCM_16K, PCM_24K = Encoding(), Encoding(24_000)
ULAW, ALAW = Encoding(8_000, 1, law="ulaw"), Encoding(8_000, 1, law="alaw")


@dataclass(frozen=True, slots=True)
class CarriedAudio:
    """What a live stream needs of the audio before. Positions are samples at 16 kHz."""

    encoding: Encoding = PCM_16K
    unconverted: bytes = b""  # int16, one channel, at the rate of the encoding: what the filter still needs
    position: int = 0  # of the next sample
    unexamined: bytes = b""  # int16: what the speech model needs of the samples before
    model_states: bytes = b""  # of the speech model, after them; empty before the first frame
    levels: bytes = b""  # of the sound so far, float32: see `live_gains`; empty before the first frame

    def for_encoding(self, encoding: Encoding) -> "CarriedAudio":
        """The same for audio of an encoding from here on."""
        return self if encoding == self.encoding else replace(self, encoding=encoding, unconverted=b"")


@dataclass(frozen=True, slots=True)
class NewAudio:
    """The next audio of a live stream."""

    pcm_path: str  # the file for it, at its position: s16le, mono, 16 kHz
    audio: bytes  # as the client has sent it: whole samples
    carried: CarriedAudio
    copied: tuple[str, int] | None = None  # the file before, and from which sample on a new one has its audio


@dataclass(frozen=True, slots=True)
class DetectedSpeech:
    """What was found in it."""

    carried: CarriedAudio
    probabilities: bytes  # of speech, in each frame that is complete now: float32


# Which sound track of a file: its place among them, from 0, or the names that its language may have in the
# file: first as it was given; `zh-yue` after that means that `yue` does if no other name is there. None: the
# one that a player would choose.
TrackChoice = int | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a recording is wanted, and from which sound track. By default all of it."""

    track: TrackChoice = None
    start: int = 0  # first sample
    end: int | None = None  # first sample that is not wanted; None: until the recording ends


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class SoundTrack:
    """One of the sound tracks of a recording, as the file describes it: anything may be wrong."""

    index: int  # among the sound tracks, from 0
    language: str | None  # as in the file, nearly always ISO 639-2: `ger` or `deu`
    title: str | None
    codec: str | None
    channels: int | None
    default: bool  # the file says that players should prefer it


@dataclass(frozen=True, slots=True)
class RecordingWarning:
    """What the sender of a recording should know about a part of it."""

    code: str  # what it is, for programs: see `workers.media.findings`
    message: str  # the same in English
    start: float | None  # the part (s); None: no part
    end: float | None


Warnings = tuple[RecordingWarning, ...]  # about one recording


@dataclass(frozen=True, slots=True)
class Decoded:
    """How far a recording, or a part of it, is decoded. Positions are those in the recording."""

    samples: int  # up to which one
    finished: bool = True
    tracks: tuple[SoundTrack, ...] = ()  # that its file has
    channels: tuple[int, ...] = (0,)  # once finished: those with a file; (0,) for the mix of all
    declared: int = 0  # where the recording or the part ends, as the file gives it; 0 if it does not
    warnings: Warnings = ()  # once finished: what the sender should know
    files: int = 1  # written, or that will be while nothing is decoded; 0 if that is not known yet
    # Of the bins that are complete since the last step, as `PeakFinder.take` gives them, if they are wanted.
    peaks: bytes = b""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options for loading a model in a worker."""

    model: str  # the name in requests
    path: str  # folder in CTranslate2 format; empty if the model is simulated
    device: str  # "cuda" (always the first visible GPU) or "cpu"
    compute_type: str
    cpu_threads: int
    safe: bool = False  # `auto` then means the compute type that takes the least memory
    min_context_s: float = FULL_CONTEXT_S  # of audio for the encoder, with short windows
    backend: str = "ctranslate2"  # or "torch": the library that computes
    batch_size: int = 1  # most windows of a batch with the usual number of beams: torch takes memory for them


@dataclass(frozen=True, slots=True)
class SpeakerModel:
    """A model that embeds voices."""

    name: str  # as the setting names it; that of the package if it is the bundled one
    path: str  # of its file
    # Embeddings of models with equal identities may be compared: the name, and the state of the file.
    identity: str


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker's report after it has loaded a model."""

    pid: int
    visible_devices: str | None  # CUDA_VISIBLE_DEVICES in the worker's environment
    model: str
    device: str
    compute_type: str
    loads: int  # how often this process has loaded a model
    languages: tuple[str, ...]  # ISO 639-1 codes that the model knows
    note: str | None = None  # what every result of the model lacks, and why
    backend: str = "ctranslate2"  # the library that computes
    batch_size: int | None = None  # windows at once that it has memory for; None: as many as it gets


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a worker did in a call. Times in Unix seconds."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class FoundRecording:
    """The recording behind a URL. All fields come from its site, so they may be wrong."""

    title: str
    extension: str  # without a dot; may be empty
    duration_s: float | None


class BackendUnfit(RuntimeError):
    """The library does not compute on this device what it should; the message says what. Another one may."""


class RecordingRefused(Exception):
    """A child process cannot use a client's file or URL.

    `code` is a short constant for programs; `message` says what is wrong and what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type["RecordingRefused"], tuple[str, str]]:
        # The default calls the class with the message alone.
        return (type(self), (self.code, self.message))
