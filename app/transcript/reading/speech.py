"""Where somebody speaks: as the file says, or as its words suggest. Pure."""

from collections.abc import Iterable, Sequence
from itertools import chain

from app.transcript.reading.fields import Object, as_object, entries, samples_field
from workers.messages import SAMPLE_RATE, Segment, Span

# Times of words are inaccurate: a longer gap between them is silence.
_LONGEST_GAP = SAMPLE_RATE  # samples
_FASTEST_SPEECH = SAMPLE_RATE // 25  # samples per character


def read_speech(document: Object) -> tuple[Span, ...] | None:
    """The spans under `speech`, in order and without overlap; None if the document does not say.

    Spans without a length are left out.
    """
    listed = entries(document, "speech")
    if listed is None:
        return None
    spans: list[Span] = []
    for index, entry in enumerate(listed):
        place = f"speech[{index}]"
        span = as_object(entry, place)
        start, end = samples_field(span, "start", f"{place}."), samples_field(span, "end", f"{place}.")
        if start is not None and end is not None and start < end:
            spans.append((start, end))
    return tuple(_joined(sorted(spans), gap=-1))


def speech_of_segments(segments: Iterable[Segment]) -> tuple[Span, ...]:
    """The segments without the silence that their words leave.

    Whisper often lets a segment begin with the music or the silence before its first word.
    """
    return tuple(chain.from_iterable(map(_speech_of_segment, segments)))


def _speech_of_segment(segment: Segment) -> Sequence[Span]:
    whole = (segment.start, segment.end)
    if not segment.words:
        return [whole]
    words = [(word.start, word.end) for word in segment.words]
    edges = [(segment.start, segment.start), *words, (segment.end, segment.end)]
    spans = [span for span in _joined(edges, _LONGEST_GAP) if span[0] < span[1]]
    # Words heaped onto one moment say nothing about silence.
    is_credible = sum(end - start for start, end in spans) >= len(segment.text) * _FASTEST_SPEECH
    return spans if is_credible else [whole]


def _joined(spans: Iterable[Span], gap: int) -> list[Span]:
    """Ordered spans; those that are at most `gap` apart become one."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
