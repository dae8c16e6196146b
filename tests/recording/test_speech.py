"""The speech detector, against silero-vad."""

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from app.recording.speech import SpeechDetector, VadParameters, divide
from workers.messages import CHUNK_FRAMES, FRAME_SAMPLES, SAMPLE_RATE, Span

Probabilities = npt.NDArray[np.float32]

parameters = st.builds(
    VadParameters,
    threshold=st.one_of(st.sampled_from([0.01, 0.1, 0.35, 0.5, 0.99]), st.floats(0.01, 0.99)),
    min_speech_ms=st.sampled_from([0, 32, 100, 250, 1000]),
    min_silence_ms=st.sampled_from([0, 1, 32, 64, 100, 500, 2000]),
    speech_pad_ms=st.sampled_from([0, 1, 16, 30, 100, 400, 1000]),
)
lower = st.one_of(st.sampled_from([0.0, 0.01, 0.2]), st.floats(0, 1))  # thresholds for the end of speech
# Runs of equal probabilities, as in speech and pauses. The thresholds themselves are among them.
runs = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.01, 0.2, 0.35, 0.4, 0.5, 0.9]), st.floats(0, 1, width=32)),
        st.integers(1, 20),
    ),
    max_size=60,
)


def silero_spans(probabilities: Probabilities, chosen: VadParameters, total: int) -> list[Span]:
    from silero_vad import get_speech_timestamps_from_probs  # imports torch: not while tests are collected

    found = get_speech_timestamps_from_probs(
        probabilities,
        threshold=chosen.threshold,
        min_speech_duration_ms=chosen.min_speech_ms,
        min_silence_duration_ms=chosen.min_silence_ms,
        speech_pad_ms=chosen.speech_pad_ms,
        neg_threshold=chosen.neg_threshold,
        audio_length_samples=total,
    )
    return [(span["start"], span["end"]) for span in found]


def chunks(probabilities: Probabilities, data: st.DataObject) -> list[Probabilities]:
    cuts = data.draw(st.lists(st.integers(0, len(probabilities)), max_size=8).map(sorted), "cuts")
    return np.split(probabilities, cuts)


def total_samples(probabilities: Probabilities, data: st.DataObject) -> int:
    """The length of the recording, whose last frame may be partial."""
    if not len(probabilities):
        return 0
    return (len(probabilities) - 1) * FRAME_SAMPLES + data.draw(st.integers(1, FRAME_SAMPLES), "last frame")


@settings(max_examples=150)
@given(runs, parameters, st.data())
def test_spans_are_those_of_silero_whatever_the_chunks(
    runs: list[tuple[float, int]], chosen: VadParameters, data: st.DataObject
) -> None:
    probabilities = np.array([value for value, count in runs for _ in range(count)], np.float32)
    total = total_samples(probabilities, data)
    detector = SpeechDetector(chosen)

    spans = [span for chunk in chunks(probabilities, data) for span in detector.feed(chunk)]
    spans += detector.finish(total)

    assert spans == silero_spans(probabilities, chosen, total)


@given(runs, parameters, lower, st.integers(1, FRAME_SAMPLES))
def test_spans_are_those_of_silero_with_a_threshold_for_the_end_of_speech(
    runs: list[tuple[float, int]], chosen: VadParameters, low: float, last: int
) -> None:
    probabilities = np.array([value for value, count in runs for _ in range(count)], np.float32)
    total = (len(probabilities) - 1) * FRAME_SAMPLES + last if len(probabilities) else 0
    chosen = replace(chosen, neg_threshold=min(low, chosen.threshold))
    detector = SpeechDetector(chosen)
    spans = detector.feed(probabilities) + detector.finish(total)
    assert spans == silero_spans(probabilities, chosen, total)


@given(
    st.lists(st.integers(0, 200 * FRAME_SAMPLES), max_size=8, unique=True).map(sorted),
    st.floats(SAMPLE_RATE, 10 * SAMPLE_RATE),
    st.integers(0, 2**32 - 1),
)
def test_divided_spans_are_short_and_cover_the_same_speech(edges: list[int], most: float, seed: int) -> None:
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    probabilities = np.random.default_rng(seed).random(200, np.float32)
    pieces = divide(spans, probabilities, most)
    assert all(0 < end - start <= most for start, end in pieces)
    joined: list[Span] = []
    for start, end in pieces:
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, end))
    assert joined == spans
    assert divide(spans, probabilities, float("inf")) == spans


def test_speech_is_divided_where_it_is_least_likely_speech() -> None:
    probabilities = np.full(100, 0.9, np.float32)
    probabilities[[20, 40, 41, 42]] = 0.3  # a plosive, and a short pause
    span, cut = (0, 80 * FRAME_SAMPLES), 41 * FRAME_SAMPLES + FRAME_SAMPLES // 2
    assert divide([span], probabilities, 60 * FRAME_SAMPLES) == [(0, cut), (cut, span[1])]
    assert divide([span], probabilities, 80 * FRAME_SAMPLES) == [span]


@given(runs, parameters, st.data())
def test_settled_spans_do_not_change(
    runs: list[tuple[float, int]], chosen: VadParameters, data: st.DataObject
) -> None:
    probabilities = np.array([value for value, count in runs for _ in range(count)], np.float32)
    total = total_samples(probabilities, data)
    detector = SpeechDetector(chosen)
    spans: list[Span] = []
    states: list[tuple[int, int, Span | None]] = []  # number of known spans, settled until, ongoing

    for chunk in chunks(probabilities, data):
        spans += detector.feed(chunk)
        states.append((len(spans), detector.settled_until, detector.ongoing))
    spans += detector.finish(total)

    assert [settled for _, settled, _ in states] == sorted(settled for _, settled, _ in states)
    assert detector.settled_until >= total
    for known, settled, ongoing in states:
        assert all(start >= settled for start, _ in spans[known:])
        assert all(end <= settled for _, end in spans[:known])
        if ongoing is not None:
            assert spans[known][0] == ongoing[0]
            assert spans[known][1] >= ongoing[1]


def test_a_span_is_final_as_soon_as_no_speech_can_be_close_to_it() -> None:
    detector = SpeechDetector(VadParameters())
    speech, pause = np.ones(30, np.float32), np.zeros(10, np.float32)

    assert detector.feed(speech) == []
    assert detector.ongoing == (0, 29 * FRAME_SAMPLES)
    assert detector.feed(pause) == [(0, 30 * FRAME_SAMPLES + 480)]
    assert detector.ongoing is None
    assert detector.settled_until == 40 * FRAME_SAMPLES - 480


def test_a_span_does_not_wait_for_the_end_of_the_speech_after_it() -> None:
    detector = SpeechDetector(VadParameters(speech_pad_ms=100))
    speech, pause = np.ones(30, np.float32), np.zeros(5, np.float32)
    assert detector.feed(np.concatenate((speech, pause, speech))) == [(0, 30 * FRAME_SAMPLES + 80 * 16)]
    assert detector.ongoing == (35 * FRAME_SAMPLES - 80 * 16, 64 * FRAME_SAMPLES)
    assert detector.settled_until == 35 * FRAME_SAMPLES - 80 * 16


def test_ten_hours_take_less_than_two_seconds() -> None:
    frames = 10 * 3600 * SAMPLE_RATE // FRAME_SAMPLES
    random = np.random.default_rng(1)
    probabilities = np.repeat(random.random(frames // 9, np.float32), 9)
    detector = SpeechDetector(VadParameters())

    began = time.perf_counter()
    spans = sum(
        len(detector.feed(probabilities[start : start + CHUNK_FRAMES]))
        for start in range(0, len(probabilities), CHUNK_FRAMES)
    )

    assert spans > 10_000
    assert time.perf_counter() - began < 2
