"""The audio context of a window, and which results of a short one are doubtful."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recording.audio_context import context_s, is_doubtful
from tests.cases import read_cases
from workers.messages import (
    FULL_CONTEXT_S,
    LOWEST_LOGPROB,
    MAX_CLIP_SAMPLES,
    SAMPLE_RATE,
    Segment,
    Thresholds,
    WindowResult,
)

TEXTS = read_cases("repetitions")


def segment(text: str) -> Segment:
    return Segment(0, SAMPLE_RATE, text, (), 0, -0.1, 1, 0)


def result(
    *texts: str, tail: str | None = None, logprob: float = -0.1, no_speech: float = 0.01, ratio: float = 1.0
) -> WindowResult:
    segments = tuple(map(segment, texts))
    last = None if tail is None else segment(tail)
    return WindowResult("en", (), segments, last, 10, logprob, no_speech, ratio)


@pytest.mark.parametrize(
    ("seconds", "min_s", "context"),
    read_cases("audio_context")["contexts"],
)
def test_the_context_has_steps_a_margin_and_a_least_length(
    seconds: float, min_s: float, context: int
) -> None:
    assert context_s(round(seconds * SAMPLE_RATE), min_s) == context


@given(st.integers(0, MAX_CLIP_SAMPLES), st.integers(0, MAX_CLIP_SAMPLES), st.floats(0.1, 30))
def test_the_context_holds_the_window_and_a_second_more(one: int, other: int, min_s: float) -> None:
    shorter, longer = sorted((one, other))
    context = context_s(longer, min_s)
    assert context == FULL_CONTEXT_S or context >= longer / SAMPLE_RATE + 1
    assert min_s <= context <= FULL_CONTEXT_S
    assert context_s(shorter, min_s) <= context
    assert context_s(longer, FULL_CONTEXT_S) == FULL_CONTEXT_S


@pytest.mark.parametrize(
    "poor",
    [
        result("one two", logprob=-1.2),
        result("one two", ratio=2.5),
        result("one two", logprob=-0.6),  # half as improbable as a poor one
        result("one two", logprob=-1.2, no_speech=0.9),  # silence: the full context decides
        result("one two", logprob=LOWEST_LOGPROB, no_speech=0.9),
        result(),
        result("  ", " ... ", tail=" ♪ -"),
    ],
)
def test_poor_improbable_and_empty_results_are_doubtful(poor: WindowResult) -> None:
    assert is_doubtful(poor)


def test_a_probable_text_is_not_doubtful() -> None:
    assert not is_doubtful(result("one two", logprob=-0.49))
    assert not is_doubtful(result(tail="one two"))
    strict = Thresholds(logprob=-0.3)
    kept, doubted = (
        WindowResult("en", (), (segment("one two"),), None, 3, logprob, 0, 1, strict)
        for logprob in (-0.14, -0.16)
    )
    assert not is_doubtful(kept)
    assert is_doubtful(doubted)


@pytest.mark.parametrize("text", TEXTS["repeated"])
def test_text_that_repeats_itself_is_doubtful(text: str) -> None:
    assert is_doubtful(result(text))


def test_a_repetition_may_span_segments_and_the_tail() -> None:
    assert is_doubtful(result(" The bridge remains small.", " the bridge remains SMALL!"))
    assert is_doubtful(result(" The bridge remains small.", tail=" The bridge remains small"))
    assert not is_doubtful(result(" The bridge remains small.", tail=" The house remains large"))


@pytest.mark.parametrize("text", TEXTS["ordinary"])
def test_ordinary_sentences_are_not_doubtful(text: str) -> None:
    assert not is_doubtful(result(text))


def square_free(letters: int) -> str:
    """A text without any repetition, and so the longest search. After Axel Thue, 1912."""
    text = "a"
    while len(text) < letters:
        text = "".join({"a": "abc", "b": "ac", "c": "b"}[letter] for letter in text)
    return text[:letters]


@pytest.mark.parametrize(
    ("text", "doubtful"),
    [
        (square_free(3000), False),
        ("".join(square_free(199) + chr(0x4E00 + number) for number in range(15)), False),  # nearly repeats
        (square_free(2800) + "x" + square_free(190) * 2, True),
    ],
)
def test_long_texts_are_searched_at_once(text: str, doubtful: bool) -> None:
    began = time.process_time()
    assert is_doubtful(result(text)) is doubtful
    assert time.process_time() - began < 1  # it takes some 30 ms; catastrophic backtracking takes hours
