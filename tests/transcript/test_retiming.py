from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import raw_segment, speech_spans

from app.transcript.cues.speech_clock import SpeechClock, missed_speech
from app.transcript.cues.timed_text import retime
from app.transcript.text.breaks import Break
from workers.messages import SAMPLE_RATE, Segment, Span, Word

LENGTH = 8 * SAMPLE_RATE
WORDS = [" Ha!", " No.", " Yes", " word,", " extraordinarily", " A", " .", "好。", " …", "\u0301"]


@st.composite
def ordered_spans(draw: st.DrawFn, count: int) -> list[Span]:
    """Spans without overlap, as the words of a segment have them; many of them empty, at one moment."""
    times = st.one_of(st.integers(0, LENGTH), st.sampled_from([0, LENGTH // 2, LENGTH]))
    edges = sorted(draw(st.lists(times, min_size=2 * count, max_size=2 * count)))
    return list(zip(edges[::2], edges[1::2], strict=True))


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    texts = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
    spans = draw(ordered_spans(len(texts)))
    words = [Word(text, *span, 0.9) for text, span in zip(texts, spans, strict=True)]
    return raw_segment(0, LENGTH, "".join(texts), words)


@given(segments(), speech_spans())
def test_missed_words_are_in_order_and_lie_in_pauses(segment: Segment, speech: tuple[Span, ...]) -> None:
    clock = SpeechClock(segment.start, segment.end, speech)
    runs = missed_speech(segment, clock, "en")
    assert all(segment.start <= start < end <= segment.end for start, end in runs)
    assert all(before[1] <= after[0] for before, after in pairwise(runs))
    assert all(clock.reading(start) == clock.reading(end) for start, end in runs)
    assert SpeechClock(segment.start, segment.end, speech, runs).length == clock.length + sum(
        end - start for start, end in runs
    )


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
