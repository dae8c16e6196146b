"""The events of a live stream, and its options. Pure.

Positions are samples at 16 kHz, counted from the start of the stream. `item` numbers a stream's turns from 0:
the speech between two silences, or what the client has committed.
"""

from dataclasses import dataclass

from app.common.errors import WhisperfleetError
from workers.messages import Segment


@dataclass(frozen=True, slots=True)
class TurnDetection:
    """When a turn begins and ends. Names, meanings and defaults are OpenAI's `server_vad`."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a client may change while a stream runs; it counts from the next item on."""

    language: str | None = None  # ISO 639-1; None: detected
    languages: tuple[str, ...] = ()  # that are expected; one means `language`
    prompt: str | None = None
    hotwords: str | None = None
    turns: TurnDetection | None = TurnDetection()  # None: the client commits


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    item: int
    position: int  # of the first sample of the turn, before which its padding is taken off


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    item: int
    position: int  # of the last sample of the turn, with its padding


@dataclass(frozen=True, slots=True)
class Committed:
    """The audio of an item is complete, by silence or by the client. Its text follows."""

    item: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """The audio that was not committed is gone, at the client's wish."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """Two drafts agree on these words, which follow those of the item before. Nearly always they stay."""

    item: int
    text: str  # with the space before it, if there is one


@dataclass(frozen=True, slots=True)
class Completed:
    """The text of an item. It replaces what drafts have agreed on."""

    item: int
    text: str
    segments: tuple[Segment, ...]  # positions in the stream; their words have times
    samples: int  # of its audio
    language: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The text of an item is not to be had."""

    item: int
    error: WhisperfleetError


LiveEvent = SpeechStarted | SpeechStopped | Committed | Cleared | Agreed | Completed | Failed
