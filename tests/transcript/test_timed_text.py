from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from transcript_cases import clip_segments, letters, samples, segment, span, speech_spans

from app.transcript.cues import timed_text
from app.transcript.cues.speech_clock import SpeechClock
from app.transcript.cues.timed_text import TimedText
from app.transcript.timeline import place_segments
from tests.cases import read_cases
from workers.messages import Segment, Span

CASES = read_cases("timed_text")


def timed_units(segment: Segment, speech: tuple[Span, ...]) -> tuple[TimedText, ...]:
    return timed_text.timed_units(segment, speech, "en", max_width=42)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_units_of_a_segment(case: dict[str, Any]) -> None:
    spoken = segment(*case["at"], case["text"], *case.get("words", ()))
    units = timed_units(spoken, tuple(span(*times) for times in case.get("speech", [(0, 1000)])))
    found = [[unit.text, round(unit.start / 16_000, 2), round(unit.end / 16_000, 2)] for unit in units]
    assert found == case["units"]


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
