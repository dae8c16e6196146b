"""Which windows of a clip are decoded with a short audio context, and which with the full one."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.engines.window_request import WindowRequest
from app.recording.clip_decoding import RETRY_NGRAM_SIZE, ClipRequest
from tests.recording.test_clip_decoding import decode, samples, script, segment
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, DecodingOptions, Segment, Span, WindowResult

START_S = 100.0  # of the clips in their recording

Decoder = Callable[[WindowRequest], WindowResult]


def clip_of(
    duration: float, *speech: tuple[float, float], min_context_s: float = 5, **decoding: object
) -> ClipRequest:
    """A clip with speech at the given times, in s from its start."""
    spans: tuple[Span, ...] = tuple(
        (samples(START_S + start), samples(START_S + end)) for start, end in speech or [(0, duration)]
    )
    options = DecodingOptions("demo", **{"language": "en", "word_timestamps": True} | decoding)  # type: ignore[arg-type]
    start, end = samples(START_S), samples(START_S + duration)
    return ClipRequest(Path("pcm"), start, end, spans, options, min_context_s=min_context_s)


def text(
    end: float, words: str = "one two", *, tail: Segment | None = None, **changes: object
) -> WindowResult:
    """The result of a window with one segment up to `end` (s)."""
    result = WindowResult("en", (), (segment(0, end, words),), tail, 10, -0.2, 0.01, 1.0)
    return replace(result, **changes)  # type: ignore[arg-type]


def contexts(windows: list[WindowRequest]) -> list[int]:
    return [window.decoding.context_s for window in windows]


def places(windows: list[WindowRequest]) -> list[tuple[float, float]]:
    """Where windows lie, in s from the clip's start."""
    start = samples(START_S)
    return [((w.start - start) / SAMPLE_RATE, (w.end - start) / SAMPLE_RATE) for w in windows]


DOUBTFUL = text(4, "come in come in")
POOR = text(4, compression_ratio=3.0, avg_logprob=-0.5)


def test_a_good_result_of_a_short_context_is_kept() -> None:
    result, windows = decode(clip_of(4), script(text(4)))
    assert contexts(windows) == [5]
    assert (windows[0].continues, places(windows)) == (False, [(0, 4)])
    assert [s.text for s in result.segments] == [" one two"]
    assert contexts(decode(clip_of(4, min_context_s=10), script(text(4)))[1]) == [10]


@pytest.mark.parametrize(
    "doubtful", [DOUBTFUL, POOR, text(4, ""), text(4, avg_logprob=-0.6), text(4, avg_logprob=-2)]
)
def test_a_doubtful_window_is_decoded_again_with_the_full_context(doubtful: WindowResult) -> None:
    result, windows = decode(clip_of(4), script(doubtful, text(4, "three")))
    assert contexts(windows) == [5, FULL_CONTEXT_S]
    again = replace(windows[0], decoding=replace(windows[0].decoding, context_s=30), continues=True)
    assert windows[1] == again
    assert [s.text for s in result.segments] == [" three"]


def test_the_full_context_is_not_doubted() -> None:
    result, windows = decode(clip_of(4), script(DOUBTFUL, DOUBTFUL))
    assert contexts(windows) == [5, 30]
    assert [s.text for s in result.segments] == [" come in come in"]
    silent, windows = decode(clip_of(4), script(text(4, ""), text(4, "")))
    assert (contexts(windows), silent.segments) == ([5, 30], ())


def test_sampled_windows_are_decoded_again_once_too() -> None:
    _, windows = decode(clip_of(4, temperature=0.5), script(POOR, POOR))
    assert contexts(windows) == [5, 30]


def test_retries_of_a_poor_window_have_the_full_context() -> None:
    """Short, full, without repetition, then halves: also their own retries and further windows."""
    halves = [text(0.3, tail=segment(1, 2, "one")), text(1, "one"), POOR, text(2, "two")]
    clip = clip_of(4, (0, 1.6), (2.0, 4))
    result, windows = decode(clip, script(POOR, POOR, POOR, *halves))
    assert contexts(windows) == [5, 30, 30, 30, 30, 30, 30]
    assert [w.decoding.no_repeat_ngram_size for w in windows] == [0, 0, RETRY_NGRAM_SIZE, 0, 0, 0, 3]
    assert places(windows)[:4] == [(0, 4), (0, 4), (0, 4), (0, 2)]
    assert places(windows)[5:] == [(2, 4), (2, 4)]
    assert [s.text for s in result.segments] == [" one two", " one", " two"]


def test_further_windows_have_the_context_of_their_own_length() -> None:
    """Also after a doubtful window."""
    clip = clip_of(18, (0, 12), (13, 18))
    _, windows = decode(clip, script(text(12), text(5.3)))
    assert list(zip(places(windows), contexts(windows), strict=True)) == [((0, 18), 20), ((12.7, 18), 10)]
    _, windows = decode(clip, script(text(12, "no no no no no no"), text(12), text(5.3)))
    assert contexts(windows) == [20, 30, 10]


def test_a_window_starts_and_ends_in_the_recording_whatever_its_context() -> None:
    clip = clip_of(10, (0.5, 3), (6, 9.5))
    result, windows = decode(clip, script(text(3), DOUBTFUL, text(4)))
    assert contexts(windows) == [15, 10, 30]
    assert places(windows) == [(0, 10), (5.7, 10), (5.7, 10)]
    assert windows[1].speech == windows[2].speech == ((samples(106), samples(109.5)),)
    assert [(s.start, s.end) for s in result.segments] == [(0, samples(3)), (samples(5.7), samples(9.7))]


@pytest.mark.parametrize("first", [text(4), DOUBTFUL, POOR, text(4, "", avg_logprob=-2, no_speech_prob=0.9)])
def test_with_the_full_context_no_window_is_decoded_again_for_it(first: WindowResult) -> None:
    results = [first, *([text(4)] if first is POOR else [])]
    _, windows = decode(clip_of(4, min_context_s=FULL_CONTEXT_S), script(*results))
    assert contexts(windows) == [FULL_CONTEXT_S] * len(results)


def in_language(language: str, result: WindowResult, *probs: tuple[str, float]) -> WindowResult:
    return replace(result, language=language, language_probs=probs)


def test_the_full_context_may_detect_another_language() -> None:
    """Then the clip has the transcript that it has if this language is known from the start."""
    german = [in_language("de", DOUBTFUL, ("de", 0.4)), in_language("en", text(4, "three"), ("en", 0.9))]
    clip = clip_of(4, language=None)

    result, windows = decode(clip, script(*german, text(4, "four")))
    assert [(w.decoding.language, w.decoding.context_s) for w in windows] == [
        (None, 5),
        (None, 30),
        ("en", 5),
    ]
    known, _ = decode(replace(clip, decoding=replace(clip.decoding, language="en")), script(text(4, "four")))
    assert result.segments == known.segments
    assert (result.language, result.language_probs) == ("en", (("en", 0.9),))

    result, windows = decode(clip, script(*german, DOUBTFUL))
    assert contexts(windows) == [5, 30, 5]
    assert [s.text for s in result.segments] == [" three"]
    assert (result.language, result.language_probs) == ("en", (("en", 0.9),))


@pytest.mark.parametrize("elected_after", [0, 1, 2])
@pytest.mark.parametrize("doubtful_in_english", [True, False])
def test_the_transcript_does_not_depend_on_when_the_language_is_elected(
    elected_after: int, doubtful_in_english: bool
) -> None:
    """English is elected; with a short context the model detects German, with the full one English."""
    decoded = 0

    def decoder(window: WindowRequest) -> WindowResult:
        nonlocal decoded
        decoded += 1
        short = window.decoding.context_s < FULL_CONTEXT_S
        late = "en" if decoded > elected_after else None
        language = window.decoding.language or late or ("de" if short else "en")
        if not short:
            return in_language(language, text(4, f"full {language}"))
        doubtful = language == "de" or doubtful_in_english
        return in_language(language, DOUBTFUL if doubtful else text(4, f"short {language}"))

    result, _ = decode(clip_of(4, language=None), decoder)
    assert result.language == "en"
    expected = " full en" if doubtful_in_english else " short en"
    assert [s.text for s in result.segments] == [expected]
