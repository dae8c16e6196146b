"""The request to transcribe one clip. It waits in the queue without its audio, which is read at its turn."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE, Clip, Decoding, Span

# Speech of 150 words a minute, as in talks, is 2.5 words a second. Whisper spells an English word in 1.3
# tokens.
TOKENS_PER_SECOND = 3.3

# What tells the results of a recording's clips apart: first and last sample, and the language asked for.
ClipKey = tuple[int, int, str | None]


def expected_tokens(speech: Iterable[Span]) -> float:
    """How many tokens Whisper is expected to decode for such speech (spans in samples)."""
    return TOKENS_PER_SECOND * sum(end - start for start, end in speech) / SAMPLE_RATE


class ClipSource(Protocol):
    """Anything that gives a clip with its audio."""

    def read(self) -> Clip:
        """The clip. May block while it reads from disk."""


@dataclass(frozen=True, slots=True)
class ClipInMemory:
    """A clip whose audio has been read already."""

    clip: Clip

    def read(self) -> Clip:
        return self.clip


@dataclass(frozen=True, slots=True)
class ClipRequest:
    """One clip of a recording to be transcribed. Positions are samples of the recording."""

    pcm_path: Path  # the recording: s16le, mono, 16 kHz
    start: int
    end: int
    speech: tuple[Span, ...]
    decoding: Decoding
    late_language: Callable[[], str | None] | None = None  # asked for the language when the audio is read
    speculative: bool = False  # queued while the first clips still decide on the language

    @property
    def key(self) -> ClipKey:
        """Identifies the clip's result among those of its recording with the same options."""
        return (self.start, self.end, self.decoding.language)

    @property
    def batch_key(self) -> Hashable:
        """Requests with equal keys may share a batch.

        Speculative ones stay among themselves: a clip that decides on the language must not wait for clips
        that could come later.
        """
        return (self.decoding.batch_key, self.speculative)

    def read(self) -> Clip:
        """The clip with its audio. Raises OSError if the recording is gone."""
        with self.pcm_path.open("rb") as file:
            file.seek(self.start * BYTES_PER_SAMPLE)
            pcm = file.read((self.end - self.start) * BYTES_PER_SAMPLE)
        speech = tuple((start - self.start, end - self.start) for start, end in self.speech)
        decoding = self.decoding
        if self.late_language is not None:
            decoding = replace(decoding, language=self.late_language())
        return Clip(pcm, speech, decoding)
