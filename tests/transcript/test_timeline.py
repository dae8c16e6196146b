from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import clip_result, clip_results, letters, raw_segment, segment, span

from app.transcript.timeline import Transcript, merge
from workers.messages import Word


def test_clip_times_become_recording_times() -> None:
    merged = merge(
        [
            (span(30, 50), clip_result(segment(1, 2, " Later.", (" Later.", 1, 2)))),
            (span(0, 30), clip_result(segment(0.5, 3, " First."), segment(3, 4, " Second."))),
        ]
    )
    assert merged == (
        segment(0.5, 3, " First."),
        segment(3, 4, " Second."),
        segment(31, 32, " Later.", (" Later.", 31, 32)),
    )


def test_the_later_result_of_a_clip_counts() -> None:
    merged = merge(
        [
            (span(0, 9), clip_result(segment(0, 1, " Once."))),
            (span(0, 9), clip_result(segment(0, 1, " Twice."))),
        ]
    )
    assert [segment.text for segment in merged] == [" Twice."]


def test_times_are_clamped_to_the_clip() -> None:
    merged = merge([(span(10, 20), clip_result(segment(-1, 12, " Long.", (" Long.", -1, 12))))])
    assert merged == (segment(10, 20, " Long.", (" Long.", 10, 20)),)


def test_a_segment_ends_when_the_next_one_starts() -> None:
    merged = merge([(span(0, 9), clip_result(segment(0, 3, " One."), segment(2, 4, " Two.")))])
    assert merged == (segment(0, 2, " One."), segment(2, 4, " Two."))


def test_segments_without_text_are_dropped_and_those_without_time_are_not() -> None:
    merged = merge(
        [(span(0, 5), clip_result(segment(1, 2, "  "), segment(5, 5, " A."), segment(6, 9, " B.")))]
    )
    assert merged == (segment(4.96, 4.98, " A."), segment(4.98, 5, " B."))


def test_a_clip_too_short_for_its_segments_joins_them() -> None:
    assert merge([((7, 8), clip_result(raw_segment(0, 1, " A."), raw_segment(0, 1, " B.")))]) == (
        raw_segment(7, 8, " A. B."),
    )


def test_words_are_ordered_inside_their_segment() -> None:
    drifted = segment(1, 3, " The dog.", (" The", 0.5, 9), (" dog.", 9, 9.5))
    assert merge([(span(0, 10), clip_result(drifted))]) == (
        segment(1, 3, " The dog.", (" The", 1, 3), (" dog.", 3, 3)),
    )


def test_no_segments() -> None:
    assert merge([]) == ()
    assert merge([(span(0, 5), clip_result())]) == ()


spans = st.tuples(st.integers(0, 400_000), st.integers(0, 400_000)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@given(st.lists(st.tuples(spans, clip_results()), max_size=6))
def test_any_results_make_an_ordered_timeline(results) -> None:
    merged = merge(results)
    for before, after in pairwise(merged):
        assert before.end <= after.start
    for each in merged:
        assert each.start < each.end
        times = [time for word in each.words for time in (word.start, word.end)]
        assert times == sorted(times)
        assert all(each.start <= time <= each.end for time in times)
    kept = [
        segment for _, result in dict(results).items() for segment in result.segments if segment.text.strip()
    ]
    assert sorted(letters([segment.text for segment in merged])) == sorted(
        letters([segment.text for segment in kept])
    )
    assert sum(len(segment.words) for segment in merged) == sum(len(segment.words) for segment in kept)
    assert merge(dict(results).items()) == merged == merge(reversed(dict(results).items()))


def test_text_and_words_of_a_transcript() -> None:
    segments = (segment(0, 1, " Yes.", (" Yes.", 0, 1)), segment(1, 2, " No.", (" No.", 1, 2)))
    transcript = Transcript("transcribe", "demo", "en", 32_000, (), segments)
    assert transcript.text == "Yes. No."
    assert transcript.words == (Word(" Yes.", 0, 16_000, 0.9), Word(" No.", 16_000, 32_000, 0.9))
