"""What a backend computes for `LoadedModel`: the network of a model, in one library."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

MAX_TOKENS = 448  # that Whisper's decoder has positions for
FRAMES_PER_SECOND = 50  # of the encoder's output, and of timestamps
MAX_INITIAL_TIMESTAMP = FRAMES_PER_SECOND  # a text begins within the first second


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


MIN_SLICE_FRAMES = FRAMES_PER_SECOND  # fewer say too little about the language
MAX_SLICE_FRAMES = 3 * FRAMES_PER_SECOND  # more say no more
# Each slice is filled up with the end of 30 s of silence, encoded alone. Without it, the decoder misses the
# end of the audio, as it never did in training: it took one of three stretches for another language, and with
# it one of ten. With silence of 5 or 10 s it suspects another in every other clip.
FILLED_FRAMES = 4 * FRAMES_PER_SECOND


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the encoding of a window."""

    window: int  # its place in the batch
    start: int  # first frame
    frames: int


class WhisperBackend(Protocol):
    """The network of a model, in one library. Raises RuntimeError, and no type of the library's own."""

    compute_type: str
    multilingual: bool
    batch_size: int  # windows at once that it has memory for: as many as it was to have, or fewer
    threads: int  # how many may each decode a part of a batch

    def divide(self, prompt_tokens: Sequence[int], beams: int) -> list[list[int]]:
        """Which windows of a batch are decoded together: their places.

        `prompt_tokens`: the length of each window's prompt.
        """

    def encode(self, audio: Sequence[bytes], context_s: int) -> Any:
        """Windows (int16 samples), padded to the context, as the decoder sees them. Measures its parts."""

    def detect_language(self, encoded: Any) -> list[list[tuple[str, float]]]:
        """The languages of each window, and their probabilities, in any order."""

    def detect_in_slices(self, encoded: Any, slices: Sequence[Slice]) -> list[list[tuple[str, float]]]:
        """The languages of each slice, filled up with silence, as of a window."""

    def generate(self, encoded: Any, prompts: Sequence[Sequence[int]], search: Search) -> list[Generated]:
        """The best text of each window after its prompt. `divide` has put the windows together."""

    def align(self, encoded: Any, texts: Sequence[TextToAlign | None]) -> list[Alignment | Exception | None]:
        """The times of each window's text, or why it has none; None where there is no text."""

    def close(self) -> None:
        """Free the model's memory."""
