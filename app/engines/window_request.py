"""The request to decode one window. It waits in the queue without its audio, which is read at its turn."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE, DecodingOptions, Span, Window

# Speech of 150 words a minute, as in talks, is 2.5 words a second. Whisper spells an English word in 1.3
# tokens.
TOKENS_PER_SECOND = 3.3


def expected_tokens(speech: Iterable[Span]) -> float:
    """How many tokens Whisper is expected to decode for such speech (spans in samples)."""
    return TOKENS_PER_SECOND * sum(end - start for start, end in speech) / SAMPLE_RATE


class WindowSource(Protocol):
    """Anything that gives a window with its audio."""

    @property
    def continues(self) -> bool:
        """Whether an earlier window of the same clip has been decoded."""

    @property
    def samples(self) -> int:
        """The length of its audio."""

    @property
    def model(self) -> str:
        """The model that decodes it."""

    def read(self) -> Window:
        """The window. May block while it reads from disk."""


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

    def read(self) -> Window:
        return self.window


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """One window of a recording to be decoded. Positions are samples of the recording."""

    pcm_path: Path  # the recording: s16le, mono, 16 kHz
    start: int
    end: int
    speech: tuple[Span, ...]
    decoding: DecodingOptions
    late_language: Callable[[], str | None] | None = None  # asked for the language when the audio is read
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

    def read(self) -> Window:
        """The window with its audio. Raises OSError if the recording is gone."""
        with self.pcm_path.open("rb") as file:
            file.seek(self.start * BYTES_PER_SAMPLE)
            pcm = file.read((self.end - self.start) * BYTES_PER_SAMPLE)
        speech = tuple((start - self.start, end - self.start) for start, end in self.speech)
        decoding = self.decoding
        if decoding.language is None and self.late_language is not None:
            decoding = replace(decoding, language=self.late_language())
        return Window(pcm, speech, decoding)
