"""Clip decoding with a fake decoder, whose results each test defines."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from workers.whisper.clip_decoding import (
    RETRY_NGRAM_SIZE,
    SAMPLES_PER_TIMESTAMP,
    Thresholds,
    TimestampedText,
    Window,
    WindowResult,
    decode_clip,
    split_at_timestamps,
)

from app.transcript.timeline import ClipResult
from workers.messages import SAMPLE_RATE, Clip, Decoding, Segment, Span
from workers.whisper.scores import LOWEST_LOGPROB

ZERO = 1000  # the token for 0.00 s


def at(seconds: float) -> int:
    return ZERO + round(seconds * 50)


def samples(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)


def clip_of(duration: float, *speech: tuple[float, float], temperature: float = 0) -> Clip:
    spans: tuple[Span, ...] = tuple((samples(start), samples(end)) for start, end in speech)
    return Clip(bytes(2 * samples(duration)), spans, Decoding("demo", temperature=temperature))


def segment(start: float, end: float, text: str) -> Segment:
    return Segment(samples(start), samples(end), f" {text}", (), 0, -0.2, 1, 0)


def window_result(*segments: Segment, tail: Segment | None = None, **changes: object) -> WindowResult:
    usual = WindowResult("en", (("en", 0.9),), segments, tail, 10, -0.2, 0.01, 1.0)
    return replace(usual, **changes)  # type: ignore[arg-type]


def decode(clip: Clip, decoder: Callable[[Window], WindowResult]) -> tuple[ClipResult, list[Window]]:
    """Decode a clip with a fake decoder. Returns the result and the requested windows."""
    windows: list[Window] = []
    decoding = decode_clip(clip)
    window = next(decoding)
    while True:
        windows.append(window)
        assert len(windows) < 200, "decoding does not end"
        try:
            window = decoding.send(decoder(window))
        except StopIteration as done:
            return done.value, windows


def script(*results: WindowResult) -> Callable[[Window], WindowResult]:
    left = list(results)
    return lambda window: left.pop(0)


def texts(result: ClipResult) -> list[tuple[float, float, str]]:
    return [(s.start / SAMPLE_RATE, s.end / SAMPLE_RATE, s.text.strip()) for s in result.segments]


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
        [TimestampedText(samples(0.5), samples(5), (at(0.5), 1, 2))],
        None,
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


def test_a_clip_is_decoded_in_one_window() -> None:
    result, windows = decode(clip_of(5, (0.3, 4.7)), script(window_result(segment(0.3, 4.7, "all of it"))))
    assert windows == [Window(0, samples(5), None)]
    assert texts(result) == [(0.3, 4.7, "all of it")]
    assert (result.language, result.language_probs) == ("en", (("en", 0.9),))


def test_text_that_was_cut_off_is_decoded_again_from_its_start() -> None:
    result, windows = decode(
        clip_of(10, (0.3, 4), (5, 9.7)),
        script(
            window_result(segment(0.3, 4, "one two"), tail=segment(5, 10, "three")),
            window_result(segment(0.3, 5, "three four")),
        ),
    )
    assert windows[1] == Window(samples(4.7), samples(10), "en")
    assert texts(result) == [(0.3, 4, "one two"), (5, 9.7, "three four")]


def test_the_rest_is_decoded_if_the_decoder_stops_early() -> None:
    result, windows = decode(
        clip_of(10, (0.3, 4), (5, 9.7)),
        script(window_result(segment(0.3, 4, "one two")), window_result(segment(0.3, 5, "three four"))),
    )
    assert len(windows) == 2
    assert [text for _, _, text in texts(result)] == ["one two", "three four"]


def test_a_short_rest_gets_no_further_window() -> None:
    _, windows = decode(clip_of(5, (0.3, 4.7)), script(window_result(segment(0.3, 4.2, "all of it"))))
    assert len(windows) == 1


def test_the_tail_is_kept_if_the_decoder_makes_no_progress() -> None:
    result, windows = decode(
        clip_of(5, (0, 5)), script(window_result(segment(0, 0.02, "a"), tail=segment(0.02, 5, "one two")))
    )
    assert len(windows) == 1
    assert [text for _, _, text in texts(result)] == ["a", "one two"]


def test_a_silent_window_has_no_text() -> None:
    result, _ = decode(
        clip_of(5, (0, 5)),
        script(window_result(segment(0, 5, "Thank you."), no_speech_prob=0.9, avg_logprob=-1.4)),
    )
    assert result.segments == ()


def test_a_confident_result_is_kept_despite_a_high_no_speech_probability() -> None:
    result, _ = decode(clip_of(5, (0, 5)), script(window_result(segment(0, 5, "yes"), no_speech_prob=0.9)))
    assert len(result.segments) == 1


def test_a_repetitive_result_is_retried_without_repetition() -> None:
    result, windows = decode(
        clip_of(5, (0, 5)),
        script(
            window_result(segment(0, 5, "la la la la"), compression_ratio=5.0),
            window_result(segment(0, 5, "la, she sang")),
        ),
    )
    assert windows[1].no_repeat_ngram_size == RETRY_NGRAM_SIZE
    assert [text for _, _, text in texts(result)] == ["la, she sang"]


def test_a_poor_result_is_retried_in_halves_and_the_best_attempt_counts() -> None:
    clip = clip_of(20, (0, 9), (10, 20))
    better_halves = script(
        window_result(segment(0, 20, "guess"), avg_logprob=-1.5),
        window_result(segment(0, 9, "left"), avg_logprob=-0.3),
        window_result(segment(0, 10, "right"), avg_logprob=-0.4),
    )
    result, windows = decode(clip, better_halves)
    assert [(w.start / SAMPLE_RATE, w.end / SAMPLE_RATE) for w in windows] == [(0, 20), (0, 10), (10, 20)]
    assert texts(result) == [(0, 9, "left"), (10, 20, "right")]
    result, _ = decode(
        clip,
        lambda window: window_result(
            segment(0, 20, "hm"), avg_logprob=-1.1 if window.end - window.start == samples(20) else -2.0
        ),
    )
    assert texts(result) == [(0, 20, "hm")]


def test_poor_halves_are_halved_three_times_at_most() -> None:
    _, windows = decode(
        clip_of(30, (0, 30)), lambda window: window_result(segment(0, 30, "hm"), avg_logprob=-2.0)
    )
    lengths = {(window.end - window.start) / SAMPLE_RATE for window in windows}
    assert lengths == {30, 15, 7.5, 3.75}


def test_a_sampled_result_is_final() -> None:
    """At a temperature above 0, there are no retries."""
    _, windows = decode(
        clip_of(10, (0, 10), temperature=0.5), script(window_result(segment(0, 10, "hm"), avg_logprob=-3.0))
    )
    assert len(windows) == 1


def test_a_model_may_have_its_own_thresholds() -> None:
    uncertain = window_result(avg_logprob=-0.5)
    assert not uncertain.poor
    assert replace(uncertain, thresholds=Thresholds(logprob=-0.25)).poor


@given(st.data())
def test_decoding_ends_and_stays_inside_the_clip_with_any_results(data: st.DataObject) -> None:
    edges = sorted(data.draw(st.lists(st.integers(0, 480_000), min_size=2, max_size=12, unique=True)))
    speech = tuple(zip(edges[::2], edges[1::2], strict=False))
    clip = Clip(bytes(2 * 480_000), speech, Decoding("demo"))

    def decoder(window: Window) -> WindowResult:
        assert 0 <= window.start < window.end <= 480_000
        length = window.end - window.start
        times = sorted(data.draw(st.lists(st.integers(0, length), min_size=2, max_size=4)))
        segments = [
            Segment(a, b, " x", (), 0, 0, 1, 0) for a, b in zip(times[::2], times[1::2], strict=False)
        ]
        tail = Segment(times[-1], length, " y", (), 0, 0, 1, 0) if data.draw(st.booleans()) else None
        return window_result(
            *segments,
            tail=tail,
            avg_logprob=data.draw(st.sampled_from([-0.1, -2.0])),
            compression_ratio=data.draw(st.sampled_from([1.0, 3.0])),
            no_speech_prob=data.draw(st.sampled_from([0.0, 0.9])),
        )

    result, _ = decode(clip, decoder)
    assert all(0 <= s.start <= s.end <= 480_000 for s in result.segments)


def test_a_score_that_overflowed_is_poor_and_not_silence() -> None:
    overflowed = window_result(segment(0, 20, "!!!!"), avg_logprob=LOWEST_LOGPROB, no_speech_prob=0.9)
    assert (overflowed.poor, overflowed.silent) == (True, False)
    result, windows = decode(
        clip_of(20, (0, 9), (10, 20)),
        script(
            overflowed,
            window_result(segment(0, 9, "left"), avg_logprob=-0.3),
            window_result(segment(0, 10, "right"), avg_logprob=-0.9),
        ),
    )
    assert len(windows) == 3
    assert texts(result) == [(0, 9, "left"), (10, 20, "right")]
