"""A decoder's output is split at its timestamps."""

from hypothesis import given
from hypothesis import strategies as st

from workers.messages import SAMPLE_RATE
from workers.whisper.results import SAMPLES_PER_TIMESTAMP, TimestampedText, split_at_timestamps

ZERO = 1000  # the token for 0.00 s


def at(seconds: float) -> int:
    return ZERO + round(seconds * 50)


def samples(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)


def test_text_is_split_at_timestamps() -> None:
    tokens = [at(0), 1, 2, at(2), at(2.4), 3, at(4)]
    closed, rest = split_at_timestamps(tokens, ZERO, samples(5))
    assert closed == [
        TimestampedText(0, samples(2), (at(0), 1, 2, at(2))),
        TimestampedText(samples(2.4), samples(4), (at(2.4), 3, at(4))),
    ]
    assert rest is None


def test_text_after_the_last_closing_timestamp_is_the_rest() -> None:
    tokens = [at(0), 1, 2, at(2), at(2.4), 3, 4]
    closed, rest = split_at_timestamps(tokens, ZERO, samples(5))
    assert len(closed) == 1
    assert rest == TimestampedText(samples(2.4), samples(5), (at(2.4), 3, 4))


def test_the_only_text_of_a_window_ends_with_the_window() -> None:
    assert split_at_timestamps([at(0.5), 1, 2], ZERO, samples(5)) == (
        [],
        TimestampedText(samples(0.5), samples(5), (at(0.5), 1, 2)),
    )


def test_text_in_the_padding_is_dropped() -> None:
    tokens = [at(0), 1, at(2), at(6), 2, at(7)]
    closed, rest = split_at_timestamps(tokens, ZERO, samples(5))
    assert [text.tokens for text in closed] == [(at(0), 1, at(2))]
    assert rest is None
    assert split_at_timestamps([at(0), 1, at(9)], ZERO, samples(5))[0][0].end == samples(5)


@given(st.lists(st.integers(0, ZERO + 1500)), st.integers(1, 480_000))
def test_any_tokens_give_texts_inside_the_window(tokens: list[int], length: int) -> None:
    closed, rest = split_at_timestamps(tokens, ZERO, length)
    for text in [*closed, *([rest] if rest else [])]:
        assert 0 <= text.start <= text.end <= length or text.start % SAMPLES_PER_TIMESTAMP == 0
        assert any(token < ZERO for token in text.tokens)
