"""The clip plan, for any speech. Hypothesis draws probabilities, and the detector makes spans of them."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.recording.clip_planner import (
    DEMO_MAX_SILENCE_SAMPLES,
    MARGIN_SAMPLES,
    MAX_SILENCE_SAMPLES,
    ClipPlanner,
    PlannedClip,
)
from app.recording.speech import SpeechDetector, VadParameters
from workers.messages import FRAME_SAMPLES, MAX_CLIP_SAMPLES, SAMPLE_RATE, Span

# Stretches of (speech probability, frames): pauses and speech of up to 45 s.
stretches = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.4, 0.7, 1.0]), st.integers(1, 1400)), min_size=1, max_size=25
)
chunk_lengths = st.lists(st.integers(1, 2000), max_size=20)
limits = st.sampled_from([DEMO_MAX_SILENCE_SAMPLES, MAX_SILENCE_SAMPLES])


def probabilities_of(drawn: list[tuple[float, int]]) -> npt.NDArray[np.float32]:
    return np.repeat(np.array([p for p, _ in drawn], np.float32), np.array([frames for _, frames in drawn]))


def plan(
    probabilities: npt.NDArray[np.float32],
    counts: list[int] | None = None,
    total: int | None = None,
    max_silence: int = MAX_SILENCE_SAMPLES,
) -> tuple[list[Span], list[PlannedClip]]:
    """The speech and the clips of a recording whose probabilities come in chunks of so many frames."""
    detector, planner = SpeechDetector(VadParameters()), ClipPlanner(max_silence)
    total = len(probabilities) * FRAME_SAMPLES if total is None else total
    speech: list[Span] = []
    clips: list[PlannedClip] = []
    for chunk in np.split(probabilities, np.cumsum(counts or [])):
        spans = detector.feed(chunk)
        speech += spans
        clips += planner.extend(spans, detector.ongoing, detector.settled_until, chunk)
    spans = detector.finish(total)
    return speech + spans, clips + planner.finish(spans, total)


def seconds(*spans: tuple[float, float]) -> npt.NDArray[np.float32]:
    """Probabilities of a recording with speech in these spans (s) and 3 s of silence at its end."""
    frames = np.zeros(int((spans[-1][1] + 3) * SAMPLE_RATE / FRAME_SAMPLES), np.float32)
    for start, end in spans:
        frames[round(start * SAMPLE_RATE / FRAME_SAMPLES) : round(end * SAMPLE_RATE / FRAME_SAMPLES)] = 1
    return frames


@given(stretches, limits)
def test_every_sample_of_speech_is_in_exactly_one_clip(
    drawn: list[tuple[float, int]], max_silence: int
) -> None:
    speech, clips = plan(probabilities_of(drawn), max_silence=max_silence)
    assert sum(end - start for start, end in speech) == sum(
        end - start for clip in clips for start, end in clip.speech
    )
    planned = [span for clip in clips for span in clip.speech]
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(planned))
    for start, end in planned:
        assert any(a <= start and end <= b for a, b in speech)


@given(stretches, limits)
@example([(0.7, 156), (0.0, 5), (0.7, 1), (0.4, 467), (0.7, 468)], MAX_SILENCE_SAMPLES)
@example([(0.7, 156), (0.0, 5), (0.7, 1), (0.4, 467), (0.7, 468)], DEMO_MAX_SILENCE_SAMPLES)
def test_clips_are_short_do_not_overlap_and_have_narrow_margins(
    drawn: list[tuple[float, int]], max_silence: int
) -> None:
    probabilities = probabilities_of(drawn)
    _, clips = plan(probabilities, max_silence=max_silence)
    assert [clip.index for clip in clips] == list(range(len(clips)))
    assert all(before.end <= after.start for before, after in itertools.pairwise(clips))
    for clip in clips:
        assert 0 <= clip.start < clip.end <= len(probabilities) * FRAME_SAMPLES
        assert clip.end - clip.start <= MAX_CLIP_SAMPLES
        assert clip.speech
        assert 0 <= clip.speech[0][0] - clip.start <= MARGIN_SAMPLES
        assert 0 <= clip.end - clip.speech[-1][1] <= MARGIN_SAMPLES
        for (_, end), (start, _) in zip(clip.speech, clip.speech[1:], strict=False):
            assert start - end <= max_silence
    silences = [after.speech[0][0] - before.speech[-1][1] for before, after in itertools.pairwise(clips)]
    for before, after, silence, next_silence in zip(
        clips, clips[1:], silences, [*silences[1:], max_silence + 1], strict=False
    ):
        # Clips that would fit into one window are apart for a reason: a long silence between them. A clip
        # that was cut itself ends earlier than it might.
        if next_silence > max_silence and after.speech[-1][1] - before.start <= MAX_CLIP_SAMPLES:
            assert silence > max_silence


@given(stretches, chunk_lengths, limits)
def test_the_plan_does_not_depend_on_the_chunks(
    drawn: list[tuple[float, int]], counts: list[int], max_silence: int
) -> None:
    probabilities = probabilities_of(drawn)
    assert plan(probabilities, counts, max_silence=max_silence) == plan(
        probabilities, max_silence=max_silence
    )


@given(stretches, stretches, limits)
def test_the_plan_has_a_bounded_lookahead(
    drawn: list[tuple[float, int]], more: list[tuple[float, int]], max_silence: int
) -> None:
    """Further audio changes only the clips that reach into the last window before it."""
    short = probabilities_of(drawn)
    total = len(short) * FRAME_SAMPLES
    horizon = total - MAX_CLIP_SAMPLES - 2 * max_silence
    _, clips = plan(short, max_silence=max_silence)
    _, longer = plan(np.concatenate((short, probabilities_of(more))), max_silence=max_silence)
    settled = [clip for clip in clips if clip.end < horizon]
    assert longer[: len(settled)] == settled


@pytest.mark.parametrize(
    ("max_silence_s", "edges"),
    [(2, [(0.7, 5.3), (7.7, 12.3), (16.7, 18.3)]), (4, [(0.7, 12.3), (16.7, 18.3)])],
)
def test_silence_over_the_limit_belongs_to_no_clip(
    max_silence_s: int, edges: list[tuple[float, float]]
) -> None:
    _, clips = plan(seconds((1, 5), (8, 12), (17, 18)), max_silence=max_silence_s * SAMPLE_RATE)
    assert [(round(c.start / SAMPLE_RATE, 1), round(c.end / SAMPLE_RATE, 1)) for c in clips] == edges


def test_short_lines_with_pauses_share_windows() -> None:
    """A window costs the encoder the same however little is said in it."""
    lines = [(4.5 * number, 4.5 * number + 1.5) for number in range(24)]  # pauses of 3 s
    frames = seconds(*lines)
    assert len(plan(frames, max_silence=DEMO_MAX_SILENCE_SAMPLES)[1]) == 24
    _, clips = plan(frames)
    assert len(clips) <= 6


def test_a_full_window_is_cut_at_its_longest_pause() -> None:
    _, clips = plan(seconds((0, 10), (10.4, 17), (18.5, 24), (24.4, 29), (29.4, 40)))
    assert round(clips[0].end / SAMPLE_RATE, 1) == 17.3
    assert round(clips[1].start / SAMPLE_RATE, 1) == 18.2


def test_speech_without_a_pause_is_cut_where_it_is_least_likely_speech() -> None:
    frames = np.full(2000, 0.95, np.float32)
    frames[800:803] = 0.6
    frames[700] = 0.5  # a single low frame is often a plosive
    _, clips = plan(frames)
    assert clips[0].end == clips[1].start == 801 * FRAME_SAMPLES + FRAME_SAMPLES // 2


def test_speech_without_an_end_is_planned_as_it_comes() -> None:
    detector, planner = SpeechDetector(VadParameters()), ClipPlanner()
    minute = np.ones(1875, np.float32)
    counts = []
    for _ in range(10):
        spans = detector.feed(minute)
        counts.append(len(planner.extend(spans, detector.ongoing, detector.settled_until, minute)))
    assert min(counts[1:]) >= 1


def test_a_recording_without_speech_has_no_clips() -> None:
    assert plan(np.zeros(100, np.float32)) == ([], [])
    assert plan(np.zeros(0, np.float32)) == ([], [])
