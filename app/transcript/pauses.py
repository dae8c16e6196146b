"""Pauses as conversation analysts mark them in text: `(3.2)`, in seconds. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from workers.messages import SAMPLE_RATE, Segment, Span, Word


def with_pauses(segments: Iterable[Segment], least: int, unknown: Sequence[Span] = ()) -> Iterator[Segment]:
    """The segments, in order, with the pauses of at least `least` samples in their text.

    A mark stands before the word that ends the pause, or before the segment if its words have no times.
    `unknown`: spans that were not transcribed, so nobody knows whether there is a pause.
    """
    end: int | None = None
    for segment in segments:
        parts: list[str] = []
        words: Sequence[Word | Segment] = segment.words or [segment]
        for word in words:
            if end is not None and word.start - end >= least and not _meets(unknown, end, word.start):
                parts.append(f" ({(word.start - end) / SAMPLE_RATE:.1f}) ")
            parts.append(word.text.lstrip() if parts[-1:] and parts[-1].endswith(" ") else word.text)
            end = max(end or 0, word.end)
        yield segment if len(parts) == len(words) else replace(segment, text="".join(parts))


def _meets(spans: Sequence[Span], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in spans)
