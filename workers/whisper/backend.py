"""What a model is to its worker, and what a backend computes for `LoadedModel`.

A worker knows `Model` alone. `LoadedModel` is one, above a `WhisperBackend`: the network of one library.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from workers.messages import Window, WindowResult

Prepared = Any  # what `Model.prepare` gives to `Model.decode`
E = TypeVar("E")  # what a backend keeps of encoded windows

MAX_TOKENS = 448  # that Whisper's decoder has positions for
FRAMES_PER_SECOND = 50  # of the encoder's output, and of timestamps


class Model(Protocol):
    """A loaded model. Keeps no state between batches."""

    backend: str  # the library that computes: "ctranslate2" or "torch"
    compute_type: str
    languages: tuple[str, ...]  # ISO 639-1 codes that the model knows
    note: str | None  # what every result lacks, and why
    batch_size: int  # windows at once that it has memory for: as many as it was to have, or fewer

    def prepare(self, windows: Sequence[Window]) -> Prepared:
        """What the host computes for a batch before the device decodes it."""

    def decode(self, windows: Sequence[Window], prepared: Prepared) -> list[WindowResult]:
        """The transcripts of a batch of windows with one `batch_key`, in order."""

    def close(self) -> None:
        """Free the model's memory."""


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The tokens of a model that the search treats specially."""

    sot: int
    eot: int
    no_timestamps: int  # the token before that for 0.00 s
    no_speech: int
    suppressed: tuple[int, ...]  # never in a text


@dataclass(frozen=True, slots=True)
class Search:
    """How texts are found."""

    beams: int  # texts side by side; samples if there is a temperature
    temperature: float = 0.0  # 0: beam search
    no_repeat_ngram_size: int = 0  # a text may not repeat any run of so many tokens; 0: it may


@dataclass(frozen=True, slots=True)
class Generated:
    """The best text of a window."""

    tokens: tuple[int, ...]  # without the end of text
    score: float  # its log-probability with the end of text, divided by the number of `tokens`
    no_speech_prob: float


@dataclass(frozen=True, slots=True)
class TextToAlign:
    """A window's text, without timestamps."""

    start: tuple[int, ...]  # the tokens before it, which name language and task
    tokens: tuple[int, ...]
    frames: int  # of the window's audio, in `FRAMES_PER_SECOND`


@dataclass(frozen=True, slots=True)
class Alignment:
    """When each token of a text begins, and how probable it is."""

    starts: tuple[int, ...]  # frame of each token, and last the frame at which the text ends
    probabilities: tuple[float, ...]  # of each token among all text tokens


def places_by_key(keys: Iterable[Hashable]) -> list[list[int]]:
    """The places of equal keys, in the order in which keys come first."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return list(places.values())


class WhisperBackend(Protocol[E]):
    """The network of a model, in one library. Raises RuntimeError, and no type of the library's own."""

    compute_type: str
    multilingual: bool
    batch_size: int  # see `Model`
    threads: int  # how many may each decode a part of a batch

    def divide(self, prompt_tokens: Sequence[int], beams: int) -> list[list[int]]:
        """Which windows of a batch are decoded together: their places.

        `prompt_tokens`: the length of each window's prompt.
        """

    def prepare(self, audio: Sequence[bytes], context_s: int) -> list[Any]:
        """What `encode` needs of each window (int16 samples), computed on the host."""

    def encode(self, prepared: Sequence[Any]) -> E:
        """Windows as the decoder sees them."""

    def detect_language(self, encoded: E) -> list[list[tuple[str, float]]]:
        """The languages of each window, and their probabilities, in any order."""

    def generate(self, encoded: E, prompts: Sequence[Sequence[int]], search: Search) -> list[Generated]:
        """The best text of each window after its prompt. `divide` has put the windows together."""

    def align(self, encoded: E, texts: Sequence[TextToAlign | None]) -> list[Alignment | Exception | None]:
        """The times of each window's text, or why it has none; None where there is no text."""

    def close(self) -> None:
        """Free the model's memory."""
