"""The windows of speech whose voices are compared. Pure."""

from collections.abc import Iterable

from workers.messages import Span


def voice_windows(speech: Iterable[Span]) -> tuple[Span, ...]:
    """The windows of a clip's speech, in order, in samples of the recording."""
    raise NotImplementedError
