"""Clip decoding with a fake decoder, whose results each test defines."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engines.window_request import WindowRequest
from app.recording.clip_decoding import RETRY_NGRAM_SIZE, ClipRequest, decode_clip
from app.transcript.timeline import ClipResult
from workers.messages import (
    LOWEST_LOGPROB,
    SAMPLE_RATE,
    DecodingOptions,
    Segment,
    Thresholds,
    WindowResult,
    Word,
)

PCM = Path("pcm")
START = 7 * SAMPLE_RATE  # of each clip, in samples of its recording


def samples(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)


def clip_of(duration: float, *speech: tuple[float, float], **decoding: object) -> ClipRequest:
    """A clip of so many seconds. The times of its speech count from its start."""
    spans = tuple((START + samples(start), START + samples(end)) for start, end in speech)
    options = DecodingOptions("demo", **{"word_timestamps": True} | decoding)  # type: ignore[arg-type]
    return ClipRequest(PCM, START, START + samples(duration), spans, options)


def span_of(window: WindowRequest) -> tuple[float, float]:
    """Start and end of a window, in seconds from its clip's start."""
    return (window.start - START) / SAMPLE_RATE, (window.end - START) / SAMPLE_RATE


def length_of(window: WindowRequest) -> int:
    return window.end - window.start


def segment(start: float, end: float, text: str) -> Segment:
    return Segment(samples(start), samples(end), f" {text}", (), 0, -0.2, 1, 0)


def spoken(*words: tuple[str, float, float]) -> Segment:
    """A segment of words and their times in s."""
    timed = tuple(Word(f" {text}", samples(start), samples(end), 0.9) for text, start, end in words)
    text = "".join(word.text for word in timed)
    return Segment(timed[0].start, timed[-1].end, text, (), 0, -0.2, 1, 0, timed)


def evenly(text: str, start: float, end: float) -> Segment:
    """A segment whose words take the same time each."""
    words = text.split()
    step = (end - start) / len(words)
    return spoken(*((word, start + step * at, start + step * (at + 1)) for at, word in enumerate(words)))


def window_result(*segments: Segment, tail: Segment | None = None, **changes: object) -> WindowResult:
    usual = WindowResult("en", (("en", 0.9),), segments, tail, 10, -0.2, 0.01, 1.0)
    return replace(usual, **changes)  # type: ignore[arg-type]


def decode(
    clip: ClipRequest, decoder: Callable[[WindowRequest], WindowResult]
) -> tuple[ClipResult, list[WindowRequest]]:
    """Decode a clip with a fake decoder. Returns the result and the requested windows."""
    windows: list[WindowRequest] = []
    decoding = decode_clip(clip)
    window = next(decoding)
    while True:
        windows.append(window)
        assert len(windows) < 200, "decoding does not end"
        try:
            window = decoding.send(decoder(window))
        except StopIteration as done:
            return done.value, windows


def script(*results: WindowResult) -> Callable[[WindowRequest], WindowResult]:
    left = list(results)
    return lambda window: left.pop(0)


def texts(result: ClipResult) -> list[tuple[float, float, str]]:
    return [(s.start / SAMPLE_RATE, s.end / SAMPLE_RATE, s.text.strip()) for s in result.segments]


def test_a_clip_is_decoded_in_one_window() -> None:
    clip = clip_of(5, (0.3, 4.7))
    result, windows = decode(clip, script(window_result(segment(0.3, 4.7, "all of it"))))
    assert windows == [WindowRequest(PCM, clip.start, clip.end, clip.speech, clip.decoding)]
    assert windows[0].decoding.language is None
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
    assert [span_of(window) for window in windows] == [(0, 10), (4.7, 10)]
    assert [window.decoding.language for window in windows] == [None, "en"]
    assert texts(result) == [(0.3, 4, "one two"), (5, 9.7, "three four")]


def test_the_rest_is_decoded_if_the_decoder_stops_early() -> None:
    result, windows = decode(
        clip_of(10, (0.3, 4), (5, 9.7)),
        script(window_result(segment(0.3, 4, "one two")), window_result(segment(0.3, 5, "three four"))),
    )
    assert len(windows) == 2
    assert [text for _, _, text in texts(result)] == ["one two", "three four"]


def test_a_short_sentence_at_the_end_is_decoded_though_the_last_timestamp_is_just_inside_it() -> None:
    """1.1 s of speech, 0.9 s of it behind the timestamp."""
    clip = clip_of(10, (0.3, 4), (4.5, 8.2), (8.6, 9.7))
    result, windows = decode(
        clip, script(window_result(segment(0.3, 8.8, "one two")), window_result(segment(0.3, 1.4, "three")))
    )
    assert [span_of(window) for window in windows] == [(0, 10), (8.3, 10)]
    assert [text for _, _, text in texts(result)] == ["one two", "three"]


def test_the_rest_gets_a_further_window_if_somebody_may_have_said_something() -> None:
    """Half a second is enough for "Who's there?"."""
    clip = clip_of(5, (0.3, 4.0), (4.3, 4.9))
    results = window_result(segment(0.3, 4.0, "all but the end")), window_result(segment(0, 0.6, "Yes."))
    _, windows = decode(clip, script(*results))
    assert len(windows) == 2
    _, windows = decode(clip_of(5, (0.3, 4.7)), script(window_result(segment(0.3, 4.3, "all of it"))))
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
    assert windows[1].decoding.no_repeat_ngram_size == RETRY_NGRAM_SIZE
    assert [text for _, _, text in texts(result)] == ["la, she sang"]


SAID_FIVE_TIMES = window_result(evenly("yes we can " * 5, 0.3, 5.6), compression_ratio=5.0)
SAID_ONCE = [("yes", 0.3, 0.6), ("we", 0.6, 0.9), ("can", 0.9, 1.4)]
LOOP = window_result(spoken(*SAID_ONCE, *[("yes", 1.4, 1.42)] * 4), compression_ratio=5.0)


def test_what_people_repeat_is_kept() -> None:
    result, windows = decode(clip_of(6, (0, 6)), script(SAID_FIVE_TIMES))
    assert len(windows) == 1
    assert result.segments[0].text == " yes we can" * 5


def test_repeated_words_without_sounds_are_a_loop() -> None:
    """One of them may be so short: people swallow words."""
    result, windows = decode(clip_of(6, (0, 6)), script(LOOP, window_result(segment(0, 6, "yes, we can"))))
    assert [window.decoding.no_repeat_ngram_size for window in windows] == [0, RETRY_NGRAM_SIZE]
    assert [text for _, _, text in texts(result)] == ["yes, we can"]
    swallowed = evenly("yes we can " * 5, 0.3, 5.6)
    first, second, *others = swallowed.words
    words = (first, replace(second, end=second.start), *others)
    _, windows = decode(
        clip_of(6, (0, 6)),
        script(window_result(replace(swallowed, words=words), compression_ratio=5.0)),
    )
    assert len(windows) == 1


@pytest.mark.parametrize(("timed", "retries"), [(SAID_FIVE_TIMES, 0), (LOOP, 1)])
def test_without_word_times_a_repetitive_window_is_decoded_once_more_with_them(
    timed: WindowResult, retries: int
) -> None:
    """So its text is the same in formats with and without word times, and its vote on the language counts."""
    said = timed.segments[0]
    untimed = replace(timed, segments=(replace(said, words=()),))
    results = [untimed, replace(timed, language_probs=()), *[window_result(segment(0, 6, "yes"))] * retries]
    result, windows = decode(clip_of(6, (0, 6), word_timestamps=False), script(*results))
    assert [window.decoding.word_timestamps for window in windows] == [False, True, True][: 2 + retries]
    assert [s.text for s in result.segments] == ([" yes"] if retries else [said.text])
    if not retries:
        assert result.language_probs == timed.language_probs


def test_a_loop_may_turn_out_to_be_silence() -> None:
    silence = replace(LOOP, avg_logprob=-1.5, no_speech_prob=0.9)
    result, windows = decode(clip_of(6, (0, 6)), script(LOOP, silence))
    assert (len(windows), result.segments) == (2, ())


def test_what_is_written_more_often_than_it_was_said_is_decoded_in_halves() -> None:
    """Without repetition, people would get words that they did not say."""
    clip = clip_of(6, (0, 2.9), (3.1, 6))
    too_often = window_result(spoken(*SAID_ONCE * 2, *[("yes", 1.4, 1.42)] * 3), compression_ratio=5.0)
    half = window_result(evenly("yes we can", 0, 2.9))
    result, windows = decode(clip, script(too_often, half, half))
    assert [span_of(window) for window in windows] == [(0, 6), (0, 2.9), (2.9, 6)]
    assert [text for _, _, text in texts(result)] == ["yes we can"] * 2


def test_a_retry_that_only_spells_the_same_words_otherwise_does_not_count() -> None:
    clip = clip_of(6, (0, 2.9), (3.1, 6))
    dodged = window_result(evenly("yes We can YES we Can Yes WE can", 0.3, 5.6), compression_ratio=3.0)
    halves = [window_result(evenly("yes we can " * 2, 0, 2.9))] * 2
    result, windows = decode(clip, script(LOOP, dodged, *halves))
    assert [span_of(window) for window in windows] == [(0, 6), (0, 6), (0, 2.9), (2.9, 6)]
    assert [text for _, _, text in texts(result)] == ["yes we can yes we can"] * 2


def test_a_poor_result_is_retried_in_halves_and_the_best_attempt_counts() -> None:
    clip = clip_of(20, (0, 9), (10, 20))
    better_halves = script(
        window_result(segment(0, 20, "guess"), avg_logprob=-1.5),
        window_result(segment(0, 9, "left"), avg_logprob=-0.3),
        window_result(segment(0, 10, "right"), avg_logprob=-0.4),
    )
    result, windows = decode(clip, better_halves)
    assert [span_of(window) for window in windows] == [(0, 20), (0, 10), (10, 20)]
    assert texts(result) == [(0, 9, "left"), (10, 20, "right")]
    result, _ = decode(
        clip,
        lambda window: window_result(
            segment(0, 20, "hm"), avg_logprob=-1.1 if length_of(window) == samples(20) else -2.0
        ),
    )
    assert texts(result) == [(0, 20, "hm")]


@pytest.mark.parametrize(("difference", "text"), [(0.0001, "whole"), (-0.0001, "whole"), (0.01, "half")])
def test_an_attempt_must_be_clearly_better(difference: float, text: str) -> None:
    """Scores of the same text may be rounded differently."""
    result, _ = decode(
        clip_of(4, (0, 4)),
        lambda window: (
            window_result(segment(0, 4, "whole"), avg_logprob=-1.5)
            if length_of(window) == samples(4)
            else window_result(segment(0, 2, "half"), avg_logprob=-1.5 + difference)
        ),
    )
    assert {words for _, _, words in texts(result)} == {text}


def test_poor_halves_are_halved_three_times_at_most() -> None:
    _, windows = decode(
        clip_of(30, (0, 30)), lambda window: window_result(segment(0, 30, "hm"), avg_logprob=-2.0)
    )
    lengths = {length_of(window) / SAMPLE_RATE for window in windows}
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
    speech = tuple((START + a, START + b) for a, b in zip(edges[::2], edges[1::2], strict=False))
    prompt = data.draw(st.sampled_from([None, "Medical dictation."]))
    decoding = DecodingOptions("demo", prompt=prompt, word_timestamps=data.draw(st.booleans()))
    clip = ClipRequest(PCM, START, START + 480_000, speech, decoding)

    def decoder(window: WindowRequest) -> WindowResult:
        assert clip.start <= window.start < window.end <= clip.end
        assert all(window.start <= a < b <= window.end for a, b in window.speech)
        length = length_of(window)
        times = sorted(data.draw(st.lists(st.integers(0, length), min_size=2, max_size=4)))
        words = (Word(" x", times[0], times[1], 1.0), Word(" x.", times[0], times[1], 1.0))
        segments = [
            Segment(a, b, " x x.", (), 0, 0, 1, 0, words[: data.draw(st.sampled_from([0, 2]))])
            for a, b in zip(times[::2], times[1::2], strict=False)
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


def test_a_further_window_has_its_own_speech_and_continues_its_clip() -> None:
    clip = replace(clip_of(10, (0.3, 4), (5, 7), (8, 9.7)), late_language=lambda: "de", speculative=True)
    _, windows = decode(
        clip,
        script(
            window_result(segment(0.3, 5.5, "one two"), tail=segment(5.5, 10, "three")),
            window_result(segment(0, 4.2, "three four")),
        ),
    )
    first, second = windows
    assert span_of(second) == (5.5, 10)
    assert second.speech == ((START + samples(5.5), START + samples(7)), clip.speech[2])
    assert (first.continues, second.continues) == (False, True)
    assert {(w.pcm, w.late_language, w.speculative) for w in windows} == {(PCM, clip.late_language, True)}


def test_retries_continue_their_clip_in_its_language_and_repeat_nothing_only_once() -> None:
    _, windows = decode(
        clip_of(6, (0, 2.9), (3.1, 6)),
        lambda window: window_result(segment(0, 6, "la la"), compression_ratio=3.0, avg_logprob=-2.0),
    )
    assert [span_of(window) for window in windows] == [(0, 6), (0, 6), (0, 2.9), (0, 2.9), (2.9, 6), (2.9, 6)]
    sizes = [window.decoding.no_repeat_ngram_size for window in windows]
    assert sizes == [0, RETRY_NGRAM_SIZE] * 3
    assert [window.continues for window in windows] == [False] + [True] * 5
    assert [window.decoding.language for window in windows] == [None] + ["en"] * 5
    assert [len(window.speech) for window in windows] == [2, 2, 1, 1, 1, 1]
