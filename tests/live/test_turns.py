"""Turns and their clips, for any speech. Hypothesis draws probabilities, and divides them."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from hypothesis import example, given
from hypothesis import strategies as st

from app.live.events import TurnDetection
from app.live.turns import MAX_TURN_SAMPLES, ClipClosed, TurnFinder, TurnStarted, TurnStep, TurnStopped
from app.recording.clip_planner import MAX_SILENCE_SAMPLES
from app.recording.speech import SpeechDetector, VadParameters
from workers.messages import FRAME_SAMPLES, MAX_CLIP_SAMPLES, SAMPLE_RATE, Span

Floats = npt.NDArray[np.float32]

# Stretches of (speech probability, frames): pauses and speech of up to 45 s.
stretches = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.4, 0.7, 1.0]), st.integers(1, 1400)), min_size=1, max_size=20
)
detections = st.one_of(
    st.none(),
    st.builds(
        TurnDetection,
        prefix_padding_ms=st.integers(0, 2000),
        silence_duration_ms=st.integers(0, 10_000),
    ),
)
counts = st.lists(st.integers(1, 50), max_size=40)


def probabilities_of(drawn: list[tuple[float, int]]) -> Floats:
    return np.repeat(np.array([p for p, _ in drawn], np.float32), np.array([frames for _, frames in drawn]))


def steps_of(
    probabilities: Floats, detection: TurnDetection | None, divided: Sequence[int] = ()
) -> list[TurnStep]:
    finder = TurnFinder(detection, MAX_SILENCE_SAMPLES)
    steps = []
    for count in [*divided, len(probabilities)]:
        steps += finder.feed(probabilities[:count])
        probabilities = probabilities[count:]
    return [*steps, *finder.finish()]


def speech_of(probabilities: Floats, detection: TurnDetection | None) -> list[Span]:
    threshold = 0.5 if detection is None else detection.threshold
    detector = SpeechDetector(VadParameters(threshold))
    return [*detector.feed(probabilities), *detector.finish(len(probabilities) * FRAME_SAMPLES)]


@given(stretches, detections, counts)
def test_the_turns_do_not_depend_on_how_the_audio_comes(
    drawn: list[tuple[float, int]], detection: TurnDetection | None, divided: list[int]
) -> None:
    probabilities = probabilities_of(drawn)
    assert steps_of(probabilities, detection, divided) == steps_of(probabilities, detection)


@given(stretches, detections, counts)
# A clip ends a long turn, and nobody speaks any more.
@example(
    [(0.7, 690), (0.0, 250), (0.7, 1400), (0.4, 1400), (0.0, 252)],
    TurnDetection(silence_duration_ms=7941),
    [],
)
# Speech that is certain only long after it began.
@example([(0.0, 20), (1.0, 6), (0.0, 2), (0.4, 500), (1.0, 40), (0.0, 60)], TurnDetection(), [])
def test_all_speech_is_in_one_clip_of_one_turn(
    drawn: list[tuple[float, int]], detection: TurnDetection | None, divided: list[int]
) -> None:
    probabilities = probabilities_of(drawn)
    steps = steps_of(probabilities, detection, divided)
    clips = [step.clip for step in steps if isinstance(step, ClipClosed)]
    spans = speech_of(probabilities, detection)
    assert all(0 <= clip.start < clip.end <= clip.start + MAX_CLIP_SAMPLES for clip in clips)
    assert all(clip.end <= following.start for clip, following in pairwise(clips))
    in_clips = np.zeros(len(probabilities) * FRAME_SAMPLES + 1, bool)
    for clip in clips:
        in_clips[clip.start : clip.end] = True
    assert all(in_clips[start:end].all() for start, end in spans)
    # A turn begins, has clips, and ends before the next one begins.
    kinds = "".join({TurnStarted: "(", ClipClosed: "c", TurnStopped: ")"}[type(step)] for step in steps)
    assert re.fullmatch(r"(\(c+\))*", kinds)


@given(stretches, st.integers(160, 5000), counts)
def test_a_turn_ends_with_a_silence_of_that_length(
    drawn: list[tuple[float, int]], silence_ms: int, divided: list[int]
) -> None:
    probabilities = probabilities_of(drawn)
    detection = TurnDetection(silence_duration_ms=silence_ms)
    steps = steps_of(probabilities, detection, divided)
    spans = speech_of(probabilities, detection)
    starts = {step.start for step in steps if isinstance(step, TurnStarted)}
    # Speech is widened by 30 ms on either side, and two frames are judged together.
    tolerance = 60 * SAMPLE_RATE // 1000 + 2 * FRAME_SAMPLES
    for (first, end), (following, _) in pairwise(spans):
        gap = following - end
        if gap >= silence_ms * SAMPLE_RATE // 1000 + tolerance:
            assert following in starts
        elif gap < silence_ms * SAMPLE_RATE // 1000 - tolerance and end - first < MAX_TURN_SAMPLES:
            assert following not in starts


@given(
    st.lists(st.tuples(st.integers(10, 40), st.integers(5, 22)), min_size=2, max_size=6),
    st.integers(160, 500),
    counts,
)
def test_a_turn_does_not_end_in_the_next_word(
    words: list[tuple[int, int]], silence_ms: int, divided: list[int]
) -> None:
    drawn = [stretch for said, pause in words for stretch in ((1.0, said), (0.0, pause))]
    probabilities = probabilities_of(drawn)
    detection = TurnDetection(silence_duration_ms=silence_ms)
    ends = [
        step.end if isinstance(step, TurnStopped) else step.clip.end
        for step in steps_of(probabilities, detection, divided)
        if not isinstance(step, TurnStarted)
    ]
    spans = speech_of(probabilities, detection)
    assert not [end for end in ends for start, stop in spans if start < end < stop]


def test_a_long_turn_is_not_divided_where_it_ends() -> None:
    frames = MAX_TURN_SAMPLES // FRAME_SAMPLES + 100
    steps = steps_of(np.ones(frames, np.float32), TurnDetection())
    assert [type(step) for step in steps if not isinstance(step, ClipClosed)] == [TurnStarted, TurnStopped]


def test_padding_is_taken_from_the_silence_before_speech() -> None:
    probabilities = np.repeat(np.array([0, 1, 0], np.float32), [100, 50, 50])
    for padding_ms in (300, 1000):
        detection = TurnDetection(prefix_padding_ms=padding_ms)
        [clip] = [step.clip for step in steps_of(probabilities, detection) if isinstance(step, ClipClosed)]
        assert clip.speech[0][0] - clip.start == padding_ms * SAMPLE_RATE // 1000


def test_the_open_clip_grows_until_it_is_closed() -> None:
    finder = TurnFinder(TurnDetection(), MAX_SILENCE_SAMPLES)
    speech = np.ones(10, np.float32)
    lengths = []
    for _ in range(4):
        list(finder.feed(speech))
        clip = finder.open_clip
        assert clip is not None
        assert clip.end == finder.position
        lengths.append(clip.end - clip.start)
    assert lengths == sorted(set(lengths))
    list(finder.feed(np.zeros(40, np.float32)))
    assert finder.open_clip is None


def test_a_turn_without_a_pause_ends_all_the_same() -> None:
    steps = steps_of(np.ones(300 * SAMPLE_RATE // FRAME_SAMPLES, np.float32), TurnDetection())
    turns = sum(isinstance(step, TurnStarted) for step in steps)
    assert turns > 1
