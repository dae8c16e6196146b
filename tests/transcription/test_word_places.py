from hypothesis import given
from hypothesis import strategies as st

from app.transcription.clip_decoding import place_words
from workers.messages import Segment, Span, Word


def segment(start: int, end: int, *words: tuple[str, int, int]) -> Segment:
    spoken = tuple(Word(f" {text}", a, b, 0.9) for text, a, b in words)
    return Segment(start, end, "".join(word.text for word in spoken), (), 0, 0, 1, 0, spoken)


def placed(given_segment: Segment, *speech: Span) -> list[tuple[str, int, int]]:
    return [(w.text.strip(), w.start, w.end) for w in place_words(given_segment, speech).words]


def test_the_first_and_the_last_word_end_at_the_segments_edges() -> None:
    assert placed(segment(100, 900, ("one", 0, 300), ("two", 300, 800)), (50, 1000)) == [
        ("one", 100, 300),
        ("two", 300, 900),
    ]


def test_a_word_that_drifted_over_a_pause_moves_back_into_speech() -> None:
    drifted = segment(0, 1000, ("one", 0, 200), ("two", 190, 900), ("three", 900, 1000))
    assert placed(drifted, (0, 300), (600, 1000)) == [
        ("one", 0, 200),
        ("two", 600, 900),
        ("three", 900, 1000),
    ]


def test_a_word_in_the_middle_of_a_pause_moves_to_the_nearest_speech() -> None:
    lost = segment(0, 1000, ("one", 0, 200), ("two", 310, 350), ("three", 900, 1000))
    assert placed(lost, (0, 300), (600, 1000))[1] == ("two", 300, 300)


def test_without_speech_words_stay_inside_the_segment() -> None:
    assert placed(segment(100, 500, ("one", 0, 300), ("two", 300, 700))) == [
        ("one", 100, 300),
        ("two", 300, 500),
    ]


def test_a_segment_without_words_or_duration_has_no_words() -> None:
    assert place_words(segment(0, 100), [(0, 100)]).words == ()
    assert place_words(segment(100, 100, ("one", 0, 300)), [(0, 100)]).words == ()


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 500)), min_size=1, max_size=15),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 500)), max_size=6),
    st.integers(0, 1000),
    st.integers(1, 1000),
)
def test_words_stay_in_order_and_in_their_segment(
    drawn: list[tuple[int, int]], speech: list[Span], start: int, length: int
) -> None:
    words = [(str(number), at, at + duration) for number, (at, duration) in enumerate(drawn)]
    spans = [(at, at + duration) for at, duration in sorted(speech)]
    result = placed(segment(start, start + length, *words), *spans)
    assert [text for text, _, _ in result] == [text for text, _, _ in words]
    edges = [edge for _, a, b in result for edge in (a, b)]
    assert edges == sorted(edges)
    assert start <= edges[0]
    assert edges[-1] <= start + length
