from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import speech_spans

from app.transcript.cues.speech_clock import SpeechClock
from app.transcript.cues.timed_text import retime
from app.transcript.text.breaks import Break
from workers.messages import SAMPLE_RATE, Span

LENGTH = 8 * SAMPLE_RATE
WORDS = [" Ha!", " No.", " Yes", " word,", " extraordinarily", " A", " .", "好。", " …", "\u0301"]


@st.composite
def ordered_spans(draw: st.DrawFn, count: int) -> list[Span]:
    """Spans without overlap, as the words of a segment have them; many of them empty, at one moment."""
    times = st.one_of(st.integers(0, LENGTH), st.sampled_from([0, LENGTH // 2, LENGTH]))
    edges = sorted(draw(st.lists(times, min_size=2 * count, max_size=2 * count)))
    return list(zip(edges[::2], edges[1::2], strict=True))


@given(st.data(), speech_spans())
def test_retimed_units_are_in_order_and_fill_the_speech(
    data: st.DataObject, speech: tuple[Span, ...]
) -> None:
    texts = data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
    words = data.draw(ordered_spans(len(texts)))
    breaks = data.draw(st.lists(st.sampled_from(Break), min_size=len(texts), max_size=len(texts)))
    clock = SpeechClock(0, LENGTH, speech)
    readings = [(clock.reading(start), clock.reading(end)) for start, end in words]
    spans = retime(readings, texts, breaks, clock)
    assert len(spans) == len(texts)
    assert (spans[0][0], spans[-1][1]) == (0, clock.length)
    assert all(start <= end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
