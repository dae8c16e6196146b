"""The request to transcribe one clip of a recording."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workers.messages import FULL_CONTEXT_S, Decoding, Span

# What tells the results of a recording's clips apart: first and last sample, the language asked for, and the
# channel, which is 0 for the mix of all.
ClipKey = tuple[int, int, str | None, int]


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
    outvoted: bool = False  # has a result in another language; the text after it waits for this one
    min_context_s: float = FULL_CONTEXT_S  # of audio for the encoder, see `audio_context`
    channel: int = 0  # of the recording

    @property
    def key(self) -> ClipKey:
        """Identifies the clip's result among those of its recording with the same options."""
        return (self.start, self.end, self.decoding.language, self.channel)
