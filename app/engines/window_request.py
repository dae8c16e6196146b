"""The request to decode one window. It never holds the audio: the worker reads that from a file."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from workers.messages import SAMPLE_RATE, AnyWindow, DecodingOptions, Span, Window, WindowInFile

# Speech of 150 words a minute, as in talks, is 2.5 words a second. Whisper spells an English word in 1.3
# tokens.
TOKENS_PER_SECOND = 3.3


def expected_tokens(speech: Iterable[Span]) -> float:
    """How many tokens Whisper is expected to decode for such speech (spans in samples)."""
    return TOKENS_PER_SECOND * sum(end - start for start, end in speech) / SAMPLE_RATE


class WindowSource(Protocol):
    """Anything that gives a window."""

    @property
    def continues(self) -> bool:
        """Whether an earlier window of the same clip has been decoded."""

    @property
    def samples(self) -> int:
        """The length of its audio."""

    @property
    def model(self) -> str:
        """The model that decodes it."""

    def for_worker(self) -> AnyWindow:
        """The window as a worker gets it now."""


@dataclass(frozen=True, slots=True)
class WindowInMemory:
    """A window whose audio has been read already."""

    window: Window
    continues: bool = False

    @property
    def samples(self) -> int:
        return self.window.samples

    @property
    def model(self) -> str:
        return self.window.decoding.model

    def for_worker(self) -> Window:
        return self.window


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """One window of a recording to be decoded. Positions are samples of the recording."""

    pcm_path: Path  # the recording: s16le, mono, 16 kHz
    start: int
    end: int
    speech: tuple[Span, ...]
    decoding: DecodingOptions
    late_language: Callable[[], str | None] | None = None  # asked when a worker gets the window
    speculative: bool = False  # queued while the first clips still decide on the language
    continues: bool = False

    @property
    def samples(self) -> int:
        return self.end - self.start

    @property
    def model(self) -> str:
        return self.decoding.model

    @property
    def batch_key(self) -> Hashable:
        """Requests with equal keys may share a batch.

        Speculative ones stay among themselves: a clip that decides on the language must not wait for clips
        that could come later.
        """
        return (self.decoding.batch_key, self.speculative)

    def for_worker(self) -> WindowInFile:
        """The window as a worker gets it now. Its audio stays in the file."""
        speech = tuple((start - self.start, end - self.start) for start, end in self.speech)
        decoding = self.decoding
        if decoding.language is None and self.late_language is not None:
            decoding = replace(decoding, language=self.late_language())
        return WindowInFile(str(self.pcm_path), self.start, self.samples, speech, decoding)
