"""What a worker is asked for: one clip of a recording. Its audio is read only when a worker is free."""

from collections.abc import Iterable

from workers.messages import SAMPLE_RATE, Span

# Speech of 150 words a minute, as in talks, is 2.5 words a second. Whisper spells an English word in 1.3
# tokens.
TOKENS_PER_SECOND = 3.3


def expected_tokens(speech: Iterable[Span]) -> float:
    """How many tokens Whisper is expected to decode for such speech (spans in samples)."""
    return TOKENS_PER_SECOND * sum(end - start for start, end in speech) / SAMPLE_RATE
