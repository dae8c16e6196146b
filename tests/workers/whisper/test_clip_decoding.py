"""How a clip is heard, with a decoder that says what the test tells it to."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from workers.messages import SAMPLE_RATE, Clip, ClipResult, Decoding, Segment, Span
from workers.whisper.clip_decoding import (
    RETRY_NGRAM_SIZE,
    SAMPLES_PER_TIMESTAMP,
    Piece,
    Thresholds,
    Window,
    WindowResult,
    decode_clip,
    split_at_timestamps,
)

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


def heard(*segments: Segment, tail: Segment | None = None, **changes: object) -> WindowResult:
    usual = WindowResult("en", (("en", 0.9),), segments, tail, 10, -0.2, 0.01, 1.0)
    return replace(usual, **changes)  # type: ignore[arg-type]


def play(clip: Clip, decoder: Callable[[Window], WindowResult]) -> tuple[ClipResult, list[Window]]:
    """Listen to a clip with a decoder; the result, and the windows that were asked for."""
    windows: list[Window] = []
    listening = decode_clip(clip)
    window = next(listening)
    while True:
        windows.append(window)
        assert len(windows) < 200, "listening does not end"
        try:
            window = listening.send(decoder(window))
        except StopIteration as done:
            return done.value, windows


def script(*answers: WindowResult) -> Callable[[Window], WindowResult]:
    left = list(answers)
    return lambda window: left.pop(0)


def texts(result: ClipResult) -> list[tuple[float, float, str]]:
    return [(s.start / SAMPLE_RATE, s.end / SAMPLE_RATE, s.text.strip()) for s in result.segments]


def test_closed_text_becomes_pieces() -> None:
    tokens = [at(0), 1, 2, at(2), at(2.4), 3, at(4)]
    pieces, rest = split_at_timestamps(tokens, ZERO, samples(5))
    assert pieces == [
        Piece(0, samples(2), (at(0), 1, 2, at(2))),
        Piece(samples(2.4), samples(4), (at(2.4), 3, at(4))),
    ]
    assert rest is None


def test_text_behind_the_last_closed_timestamp_is_what_is_left_open() -> None:
    tokens = [at(0), 1, 2, at(2), at(2.4), 3, 4]
    pieces, rest = split_at_timestamps(tokens, ZERO, samples(5))
    assert len(pieces) == 1
    assert rest == Piece(samples(2.4), samples(5), (at(2.4), 3, 4))


def test_a_window_whose_only_text_is_open_ends_with_it() -> None:
    assert split_at_timestamps([at(0.5), 1, 2], ZERO, samples(5)) == (
        [Piece(samples(0.5), samples(5), (at(0.5), 1, 2))],
        None,
    )


def test_text_in_the_padding_was_not_spoken() -> None:
    tokens = [at(0), 1, at(2), at(6), 2, at(7)]
    pieces, rest = split_at_timestamps(tokens, ZERO, samples(5))
    assert [piece.tokens for piece in pieces] == [(at(0), 1, at(2))]
    assert rest is None
    assert split_at_timestamps([at(0), 1, at(9)], ZERO, samples(5))[0][0].end == samples(5)


@given(st.lists(st.integers(0, ZERO + 1500)), st.integers(1, 480_000))
def test_any_tokens_give_pieces_inside_the_window(tokens: list[int], length: int) -> None:
    pieces, rest = split_at_timestamps(tokens, ZERO, length)
    for piece in [*pieces, *([rest] if rest else [])]:
        assert 0 <= piece.start <= piece.end <= length or piece.start % SAMPLES_PER_TIMESTAMP == 0
        assert any(token < ZERO for token in piece.tokens)


def test_a_clip_is_heard_in_one_window() -> None:
    result, windows = play(clip_of(5, (0.3, 4.7)), script(heard(segment(0.3, 4.7, "all of it"))))
    assert windows == [Window(0, samples(5), None)]
    assert texts(result) == [(0.3, 4.7, "all of it")]
    assert (result.language, result.language_probs) == ("en", (("en", 0.9),))


def test_text_that_was_cut_off_is_heard_again_from_its_beginning() -> None:
    result, windows = play(
        clip_of(10, (0.3, 4), (5, 9.7)),
        script(
            heard(segment(0.3, 4, "one two"), tail=segment(5, 10, "three")),
            heard(segment(0.3, 5, "three four")),
        ),
    )
    assert windows[1] == Window(samples(4.7), samples(10), "en")
    assert texts(result) == [(0.3, 4, "one two"), (5, 9.7, "three four")]


def test_a_decoder_that_stops_early_is_asked_for_the_rest() -> None:
    result, windows = play(
        clip_of(10, (0.3, 4), (5, 9.7)),
        script(heard(segment(0.3, 4, "one two")), heard(segment(0.3, 5, "three four"))),
    )
    assert len(windows) == 2
    assert [text for _, _, text in texts(result)] == ["one two", "three four"]


def test_a_breath_at_the_end_is_not_worth_another_window() -> None:
    _, windows = play(clip_of(5, (0.3, 4.7)), script(heard(segment(0.3, 4.2, "all of it"))))
    assert len(windows) == 1


def test_text_that_never_closes_is_kept() -> None:
    """Where the decoder does not get on, what it began is better than nothing."""
    result, windows = play(
        clip_of(5, (0, 5)), script(heard(segment(0, 0.02, "a"), tail=segment(0.02, 5, "one two")))
    )
    assert len(windows) == 1
    assert [text for _, _, text in texts(result)] == ["a", "one two"]


def test_nobody_speaks() -> None:
    result, _ = play(
        clip_of(5, (0, 5)),
        script(heard(segment(0, 5, "Thank you."), no_speech_prob=0.9, avg_logprob=-1.4)),
    )
    assert result.segments == ()


def test_a_sure_decoder_is_believed_whatever_the_no_speech_probability() -> None:
    result, _ = play(clip_of(5, (0, 5)), script(heard(segment(0, 5, "yes"), no_speech_prob=0.9)))
    assert len(result.segments) == 1


def test_repetition_is_heard_again_without_repeating() -> None:
    result, windows = play(
        clip_of(5, (0, 5)),
        script(
            heard(segment(0, 5, "la la la la"), compression_ratio=5.0),
            heard(segment(0, 5, "la, she sang")),
        ),
    )
    assert windows[1].no_repeat_ngram_size == RETRY_NGRAM_SIZE
    assert [text for _, _, text in texts(result)] == ["la, she sang"]


def test_guesses_are_heard_again_in_two_halves_and_the_surest_wins() -> None:
    clip = clip_of(20, (0, 9), (10, 20))
    surer = script(
        heard(segment(0, 20, "guess"), avg_logprob=-1.5),
        heard(segment(0, 9, "left"), avg_logprob=-0.3),
        heard(segment(0, 10, "right"), avg_logprob=-0.4),
    )
    result, windows = play(clip, surer)
    assert [(w.start / SAMPLE_RATE, w.end / SAMPLE_RATE) for w in windows] == [(0, 20), (0, 10), (10, 20)]
    assert texts(result) == [(0, 9, "left"), (10, 20, "right")]
    result, _ = play(
        clip,
        lambda window: heard(
            segment(0, 20, "hm"), avg_logprob=-1.1 if window.end - window.start == samples(20) else -2.0
        ),
    )
    assert texts(result) == [(0, 20, "hm")]


def test_doubtful_halves_are_halved_down_to_a_sentence_and_no_further() -> None:
    _, windows = play(clip_of(30, (0, 30)), lambda window: heard(segment(0, 30, "hm"), avg_logprob=-2.0))
    lengths = {(window.end - window.start) / SAMPLE_RATE for window in windows}
    assert lengths == {30, 15, 7.5, 3.75}


def test_a_sampled_answer_is_final() -> None:
    """Above temperature 0 the caller asked for samples at that temperature alone."""
    _, windows = play(
        clip_of(10, (0, 10), temperature=0.5), script(heard(segment(0, 10, "hm"), avg_logprob=-3.0))
    )
    assert len(windows) == 1


def test_a_model_may_bring_its_own_thresholds() -> None:
    unsure = heard(avg_logprob=-0.5)
    assert not unsure.poor
    assert replace(unsure, thresholds=Thresholds(logprob=-0.25)).poor


@given(st.data())
def test_listening_ends_and_keeps_to_the_clip_whatever_the_decoder_says(data: st.DataObject) -> None:
    edges = sorted(data.draw(st.lists(st.integers(0, 480_000), min_size=2, max_size=12, unique=True)))
    speech = tuple(zip(edges[::2], edges[1::2], strict=False))
    clip = Clip(bytes(2 * 480_000), speech, Decoding("demo"))

    def decoder(window: Window) -> WindowResult:
        assert 0 <= window.start < window.end <= 480_000
        length = window.end - window.start
        times = sorted(data.draw(st.lists(st.integers(0, length), min_size=2, max_size=4)))
        said = [Segment(a, b, " x", (), 0, 0, 1, 0) for a, b in zip(times[::2], times[1::2], strict=False)]
        tail = Segment(times[-1], length, " y", (), 0, 0, 1, 0) if data.draw(st.booleans()) else None
        return heard(
            *said,
            tail=tail,
            avg_logprob=data.draw(st.sampled_from([-0.1, -2.0])),
            compression_ratio=data.draw(st.sampled_from([1.0, 3.0])),
            no_speech_prob=data.draw(st.sampled_from([0.0, 0.9])),
        )

    result, _ = play(clip, decoder)
    assert all(0 <= s.start <= s.end <= 480_000 for s in result.segments)
