"""The request to decode one window, while it waits for a worker."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from workers.messages import SAMPLE_RATE, DecodingOptions, Span, Window

# Speech of 150 words a minute, as in talks, is 2.5 words a second. Whisper spells an English word in 1.3
# tokens.
TOKENS_PER_SECOND = 3.3


def expected_tokens(speech: Iterable[Span]) -> float:
    """How many tokens Whisper is expected to decode for such speech (spans in samples)."""
    return TOKENS_PER_SECOND * sum(end - start for start, end in speech) / SAMPLE_RATE


# A recording, the first and the last sample of a window in it, and the speech in that.
Audio = tuple[Path, int, int, tuple[Span, ...]]


@dataclass(slots=True)
class WindowRequest:
    """One window of a recording to be decoded. Positions are samples of the recording.

    Its audio and its language may be chosen late: when a worker gets the window.
    """

    # The recording, from which the worker reads, or the window's own samples: s16le, mono, 16 kHz.
    pcm: Path | bytes
    start: int
    end: int
    speech: tuple[Span, ...]
    decoding: DecodingOptions
    late_language: Callable[[], str | None] | None = None  # the elected one, if none was requested
    speculative: bool = False  # queued while the first clips still decide on the language
    continues: bool = False  # an earlier window of the same clip has been decoded
    late_audio: Callable[[], Audio] | None = None  # what it is by now
    stretches: tuple[Span, ...] = ()  # whose languages are detected, too

    @property
    def samples(self) -> int:
        """The length of its audio."""
        return self.end - self.start

    @property
    def batch_key(self) -> Hashable:
        """Requests with equal keys may share a batch.

        Speculative ones stay among themselves: a clip that decides on the language must not wait for clips
        that could come later.
        """
        return (self.decoding.batch_key, self.speculative)

    def for_worker(self) -> Window:
        """The window as a worker gets it now."""
        if self.late_audio is not None:
            self.pcm, self.start, self.end, self.speech = self.late_audio()
        decoding = self.decoding
        if decoding.language is None and self.late_language is not None:
            decoding = replace(decoding, language=self.late_language())
        speech, stretches = (
            tuple((start - self.start, end - self.start) for start, end in spans)
            for spans in (self.speech, self.stretches)
        )
        pcm, path = (self.pcm, None) if isinstance(self.pcm, bytes) else (b"", str(self.pcm))
        return Window(pcm, speech, decoding, path, self.start, self.end, stretches)
