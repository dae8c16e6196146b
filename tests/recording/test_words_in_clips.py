from hypothesis import given
from hypothesis import strategies as st

from app.recording.word_times import place_words
from workers.messages import Segment, Span, Word


def segment(start: int, end: int, *words: tuple[str, int, int]) -> Segment:
    spoken = tuple(Word(f" {text}", a, b, 0.9) for text, a, b in words)
    return Segment(start, end, "".join(word.text for word in spoken), (), 0, 0, 1, 0, spoken)


def placed(given: Segment | list[Segment], *speech: Span) -> list[tuple[str, int, int]]:
    segments = given if isinstance(given, list) else [given]
    return [(w.text.strip(), w.start, w.end) for s in place_words(segments, speech) for w in s.words]


def test_the_first_and_the_last_word_end_at_the_segments_edges() -> None:
    assert placed(segment(5_000, 45_000, ("one", 0, 15_000), ("two", 15_000, 40_000)), (2_500, 50_000)) == [
        ("one", 5_000, 15_000),
        ("two", 15_000, 45_000),
    ]


def test_a_word_that_drifted_over_a_pause_moves_back_into_speech() -> None:
    drifted = segment(0, 50_000, ("one", 0, 10_000), ("two", 9_500, 45_000), ("three", 45_000, 50_000))
    assert placed(drifted, (0, 15_000), (30_000, 50_000)) == [
        ("one", 0, 10_000),
        ("two", 30_000, 45_000),
        ("three", 45_000, 50_000),
    ]


def test_a_word_in_the_middle_of_a_pause_moves_into_the_speech_before_or_behind_it() -> None:
    lost = segment(0, 50_000, ("one", 0, 10_000), ("two", 15_500, 17_500), ("three", 45_000, 50_000))
    assert placed(lost, (0, 15_000), (30_000, 50_000)) == [
        ("one", 0, 9_545),
        ("two", 9_545, 15_000),
        ("three", 30_000, 50_000),
    ]


def test_heaped_words_share_the_time_between_the_others_by_their_letters() -> None:
    heaped = segment(
        0,
        64_000,
        ("one", 0, 10_000),
        ("two", 10_000, 40_000),
        ("three", 40_000, 40_000),
        ("fours", 40_000, 64_000),
    )
    assert placed(heaped, (0, 64_000)) == [
        ("one", 0, 10_000),  # it was right
        ("two", 10_000, 22_462),
        ("three", 22_462, 43_231),
        ("fours", 43_231, 64_000),
    ]


def test_one_short_word_of_many_is_no_heap() -> None:
    times = [(f"w{number}", 5_000 * number, 5_000 * number + 5_000) for number in range(12)]
    times[5] = ("w5", 25_000, 25_000)
    assert placed(segment(0, 60_000, *times), (0, 60_000)) == times


def test_one_short_word_of_a_sentence_is_no_heap_in_a_long_clip() -> None:
    times = [(f"w{number}", 5_000 * number, 5_000 * number + 5_000) for number in range(5)]
    times[1:3] = [("w1", 5_000, 15_000), ("w2", 15_000, 15_000)]
    others = [(f"w{number}", 5_000 * number, 5_000 * number + 5_000) for number in range(5, 17)]
    sentences = [segment(0, 25_000, *times), segment(25_000, 85_000, *others)]
    assert placed(sentences, (0, 85_000)) == [*times, *others]


def test_without_speech_words_stay_inside_the_segment() -> None:
    assert placed(segment(5_000, 25_000, ("one", 0, 15_000), ("two", 15_000, 35_000))) == [
        ("one", 5_000, 15_000),
        ("two", 15_000, 25_000),
    ]


def test_a_segment_without_words_or_duration_has_no_words() -> None:
    assert placed(segment(0, 5_000), (0, 5_000)) == []
    assert placed(segment(5_000, 5_000, ("one", 0, 15_000)), (0, 5_000)) == []


def test_where_timestamps_are_far_from_edges_of_speech_attention_counts() -> None:
    # On whole seconds, and in the next sentence: as Whisper's own models may write them.
    first = segment(0, 48_000, ("one", 8_100, 16_000), ("two", 16_000, 31_000))
    second = segment(48_000, 80_000, ("three", 42_000, 50_000), ("four", 50_000, 70_500))
    assert placed([first, second], (8_000, 32_000), (40_000, 70_000)) == [
        ("one", 8_000, 16_000),
        ("two", 16_000, 32_000),
        ("three", 40_000, 50_000),
        ("four", 50_000, 70_000),
    ]


def test_where_nobody_pauses_timestamps_count() -> None:
    first = segment(0, 40_000, ("one", 0, 20_000), ("two", 20_000, 60_000))
    second = segment(40_000, 80_000, ("three", 60_000, 70_000), ("four", 70_000, 80_000))
    assert placed([first, second], (0, 80_000)) == [
        ("one", 0, 20_000),
        ("two", 20_000, 40_000),
        ("three", 40_000, 70_000),
        ("four", 70_000, 80_000),
    ]


def test_what_a_timestamp_cuts_off_from_the_next_sentence_is_not_the_last_words() -> None:
    cut = segment(0, 25_000, ("one", 0, 10_000), ("two", 10_000, 15_000))
    assert placed(cut, (0, 15_000), (20_000, 45_000)) == [("one", 0, 10_000), ("two", 10_000, 15_000)]
    late = segment(20_000, 45_000, ("one", 30_000, 35_000), ("two", 35_000, 45_000))
    assert placed(late, (0, 25_000), (30_000, 45_000)) == [("one", 30_000, 35_000), ("two", 35_000, 45_000)]


def test_segments_follow_their_words() -> None:
    (moved,) = place_words(
        [segment(0, 50_000, ("one", 0, 15_000), ("two", 15_000, 45_000))], [(5_000, 40_000)]
    )
    assert (moved.start, moved.end) == (5_000, 40_000)


@given(
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 50_000)), min_size=1, max_size=15),
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(1, 50_000)), max_size=6),
    st.lists(st.integers(1, 40_000), min_size=1, max_size=5),
)
def test_words_are_in_order_and_none_is_lost(
    drawn: list[tuple[int, int]], pauses: list[Span], lengths: list[int]
) -> None:
    words = [(str(number), at, at + duration) for number, (at, duration) in enumerate(drawn)]
    segments = []
    for number, length in enumerate(lengths):
        start = sum(lengths[:number])
        segments.append(segment(start, start + length, *words[number :: len(lengths)]))
    speech: list[Span] = []
    for pause, length in pauses:
        start = (speech[-1][1] if speech else 0) + pause // 8 + 1
        speech.append((start, start + length))
    result = place_words(segments, speech)
    assert [[w.text for w in s.words] for s in result] == [[w.text for w in s.words] for s in segments]
    edges = [edge for s in result for w in s.words for edge in (w.start, w.end)]
    assert edges == sorted(edges)
    assert all((s.start, s.end) == (s.words[0].start, s.words[-1].end) for s in result if s.words)
