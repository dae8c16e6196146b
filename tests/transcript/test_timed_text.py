from itertools import pairwise

from hypothesis import given
from transcript_cases import clip_segments, letters, samples, segment, span, speech_spans

from app.transcript.cues import timed_text
from app.transcript.cues.speech_clock import SpeechClock
from app.transcript.cues.timed_text import TimedText
from app.transcript.timeline import place_segments
from workers.messages import Segment, Span

ALL = (span(0, 1000),)


def timed_units(segment: Segment, speech: tuple[Span, ...]) -> tuple[TimedText, ...]:
    return timed_text.timed_units(segment, speech, "en", max_width=42)


def times(units: tuple[TimedText, ...]) -> list[tuple[str, float, float]]:
    return [(unit.text, round(unit.start / 16_000, 2), round(unit.end / 16_000, 2)) for unit in units]


def test_words_keep_their_times_and_fill_the_segment() -> None:
    spoken = segment(
        1, 3, " Good morning all", (" Good", 1.2, 1.5), (" morning", 1.6, 2.1), (" all", 2.2, 2.6)
    )
    assert times(timed_units(spoken, ALL)) == [(" Good", 1, 1.5), (" morning", 1.6, 2.1), (" all", 2.2, 3)]


def test_text_without_words_is_spread_evenly_over_the_speech() -> None:
    spoken = segment(0, 10, " aaaa bbbb cccc")
    assert times(timed_units(spoken, (span(1, 3), span(5, 6), span(12, 13)))) == [
        (" aaaa", 1, 2),
        (" bbbb", 2, 3),
        (" cccc", 5, 6),
    ]


def test_words_that_do_not_make_up_the_text_are_ignored() -> None:
    spoken = segment(0, 2, " Hello world", (" Hello", 1.7, 1.9))
    assert times(timed_units(spoken, ALL)) == [(" Hello", 0, 1), (" world", 1, 2)]


def test_a_word_that_drifts_over_a_pause_stays_in_speech() -> None:
    spoken = segment(0, 4, " one two", (" one", 0, 2), (" two", 2, 4))
    assert times(timed_units(spoken, (span(0, 1), span(3, 4)))) == [(" one", 0, 1), (" two", 3, 4)]


def test_words_heaped_on_one_moment_share_the_time_of_the_word_that_is_too_long() -> None:
    spoken = segment(0, 3, " abcd efgh ijkl", (" abcd", 0, 3), (" efgh", 3, 3), (" ijkl", 3, 3))
    assert times(timed_units(spoken, ALL)) == [(" abcd", 0, 1), (" efgh", 1, 2), (" ijkl", 2, 3)]


def test_words_without_time_get_that_of_the_fastest_speech() -> None:
    spoken = segment(0, 0.6, " abcd efgh ijkl", (" abcd", 0, 0.4), (" efgh", 0.4, 0.4), (" ijkl", 0.4, 0.6))
    assert times(timed_units(spoken, ALL)) == [(" abcd", 0, 0.27), (" efgh", 0.27, 0.4), (" ijkl", 0.4, 0.6)]


def test_a_sentence_ends_at_the_pause_near_its_end() -> None:
    spoken = segment(
        0,
        6,
        " It is late. He goes.",
        (" It", 0, 1),
        (" is", 1, 1.5),
        (" late.", 1.5, 1.8),
        (" He", 1.8, 3),
        (" goes.", 3, 6),
    )
    units = timed_units(spoken, (span(0, 2.5), span(3.5, 6)))
    assert times(units)[2:4] == [(" late.", 1.5, 2.5), (" He", 3.5, 3.6)]


def test_slivers_of_speech_beyond_a_pause_are_ignored() -> None:
    units = timed_units(segment(1.95, 5.05, " Right here"), (span(0, 2), span(2.5, 4.5), span(5, 7)))
    assert (units[0].start, units[-1].end) == span(2.5, 4.5)


def test_a_segment_without_speech_keeps_its_times() -> None:
    units = timed_units(segment(3, 4, " Hm"), (span(0, 2), span(5, 6)))
    assert (units[0].start, units[-1].end) == span(3, 4)


def test_no_units_without_text() -> None:
    assert timed_units(segment(0, 1, "  "), ALL) == ()


def test_the_clock_of_speech() -> None:
    clock = SpeechClock(0, samples(10), (span(1, 2), span(4, 6)))
    assert (clock.begins(0), clock.ends(clock.length)) == span(1, 6)
    assert clock.length == samples(3)
    assert [clock.reading(samples(time)) for time in (0, 1.5, 3, 5, 9)] == [
        samples(passed) for passed in (0, 0.5, 1, 2, 3)
    ]
    assert (clock.ends(samples(1)), clock.begins(samples(1))) == span(2, 4)
    assert clock.pauses == [(samples(1), samples(2))]


@given(clip_segments(), speech_spans())
def test_units_are_ordered_and_hold_all_text(segment: Segment, speech: tuple[Span, ...]) -> None:
    for placed in place_segments([segment], span(0, 12)):
        units = timed_units(placed, speech)
        assert letters([unit.text for unit in units]) == letters([placed.text])
        assert all(placed.start <= unit.start <= unit.end <= placed.end for unit in units)
        assert all(before.end <= after.start for before, after in pairwise(units))
        assert units[0].start < units[-1].end
