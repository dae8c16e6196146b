from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import clip_results, letters, raw_segment, segment, span

from app.transcript.timeline import ClipResult, Transcript, place_segments
from workers.messages import Segment, Word


def placed(start: float, end: float, *segments: Segment) -> tuple[Segment, ...]:
    return place_segments(segments, span(start, end))


def test_clip_times_become_recording_times() -> None:
    assert placed(30, 50, segment(3, 4, " Last."), segment(1, 2, " Later.", (" Later.", 1, 2))) == (
        segment(31, 32, " Later.", (" Later.", 31, 32)),
        segment(33, 34, " Last."),
    )


def test_times_are_clamped_to_the_clip() -> None:
    assert placed(10, 20, segment(-1, 12, " Long.", (" Long.", -1, 12))) == (
        segment(10, 20, " Long.", (" Long.", 10, 20)),
    )


def test_a_segment_ends_when_the_next_one_starts() -> None:
    assert placed(0, 9, segment(0, 3, " One."), segment(2, 4, " Two.")) == (
        segment(0, 2, " One."),
        segment(2, 4, " Two."),
    )


def test_segments_without_text_are_dropped_and_those_without_time_are_not() -> None:
    assert placed(0, 5, segment(1, 2, "  "), segment(5, 5, " A."), segment(6, 9, " B.")) == (
        segment(4.96, 4.98, " A."),
        segment(4.98, 5, " B."),
    )


def test_a_clip_too_short_for_its_segments_joins_them() -> None:
    assert place_segments([raw_segment(0, 1, " A."), raw_segment(0, 1, " B.")], (7, 8)) == (
        raw_segment(7, 8, " A. B."),
    )


def test_words_are_ordered_inside_their_segment() -> None:
    drifted = segment(1, 3, " The dog.", (" The", 0.5, 9), (" dog.", 9, 9.5))
    assert placed(0, 10, drifted) == (segment(1, 3, " The dog.", (" The", 1, 3), (" dog.", 3, 3)),)


def test_no_segments() -> None:
    assert placed(0, 5) == ()


@given(st.integers(0, 400_000), st.integers(0, 400_000), clip_results())
def test_any_result_is_in_order_inside_its_clip(start: int, samples: int, result: ClipResult) -> None:
    merged = place_segments(result.segments, (start, start + samples))
    for before, after in pairwise(merged):
        assert before.end <= after.start
    for each in merged:
        assert start <= each.start < each.end <= start + max(samples, 1)
        times = [time for word in each.words for time in (word.start, word.end)]
        assert times == sorted(times)
        assert all(each.start <= time <= each.end for time in times)
    kept = [segment for segment in result.segments if segment.text.strip()]
    assert sorted(letters([segment.text for segment in merged])) == sorted(
        letters([segment.text for segment in kept])
    )
    assert sum(len(segment.words) for segment in merged) == sum(len(segment.words) for segment in kept)


def test_text_and_words_of_a_transcript() -> None:
    segments = (segment(0, 1, " Yes.", (" Yes.", 0, 1)), segment(1, 2, " No.", (" No.", 1, 2)))
    transcript = Transcript("transcribe", "demo", "en", 32_000, (), segments)
    assert transcript.text == "Yes. No."
    assert transcript.words == (Word(" Yes.", 0, 16_000, 0.9), Word(" No.", 16_000, 32_000, 0.9))
