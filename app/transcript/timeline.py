"""The ordered timeline of a recording, merged from the results of its clips. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from workers.messages import SAMPLE_RATE, Segment, Span, Word, seconds

# A segment whose clip leaves it no time keeps its text and lasts this long.
SHORTEST_SEGMENT = SAMPLE_RATE // 50  # samples: one step of Whisper's timestamps, 20 ms

S = TypeVar("S", bound=Segment)


@dataclass(frozen=True, slots=True)
class ClipResult:
    """The transcript of one clip. Times in samples from the clip's start."""

    language: str  # ISO 639-1: the requested one, or the likeliest
    language_probs: tuple[tuple[str, float], ...]  # likeliest first; empty if one was requested
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The transcription of a recording. Times in samples from its start."""

    task: str
    model: str
    language: str  # ISO 639-1 code of what is spoken
    samples: int  # length of the recording, or of what precedes the end of the part that was transcribed
    speech: tuple[Span, ...]  # where the recording has speech
    segments: Sequence[Segment]
    failed_spans: tuple[Span, ...] = ()  # what could not be transcribed
    clips: tuple[Span, ...] = ()  # that were transcribed, in order; empty if it is not known
    start: int = 0  # of the part that was transcribed

    @property
    def seconds(self) -> float:
        """The length of the recording."""
        return seconds(self.samples)

    @property
    def text_language(self) -> str:
        """ISO 639-1 code of the text: English for a translation."""
        return "en" if self.task == "translate" else self.language

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments).strip()

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for segment in self.segments for word in segment.words)


def merge(results: Iterable[tuple[Span, ClipResult]]) -> tuple[Segment, ...]:
    """One timeline from `(span of the clip in the recording, result of the clip)` pairs in any order.

    Of two results with the same span the later one counts: the clip was retried. Times are samples of the
    recording. Segments are ordered, each has start < end, none overlaps the next, each is inside its clip,
    and words are inside their segment. Text is never lost, whatever the times; only segments without text
    are dropped.
    """
    latest = dict(results)
    merged: list[Segment] = []
    for bounds, spans in _overlap_groups(latest):
        segments = [segment for span in spans for segment in _in_recording(latest[span], span)]
        merged += in_bounds(sorted(segments, key=lambda segment: segment.start), bounds)
    return tuple(merged)


def _overlap_groups(spans: Iterable[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """`(bounds, spans)` of each group of overlapping spans, in order."""
    group: list[Span] = []
    bounds = (0, 0)
    for span in sorted(spans):
        if group and span[0] < bounds[1]:
            group.append(span)
            bounds = (bounds[0], max(bounds[1], span[1]))
            continue
        if group:
            yield bounds, group
        group, bounds = [span], span
    if group:
        yield bounds, group


def _in_recording(result: ClipResult, clip: Span) -> Iterator[Segment]:
    """The segments of a clip that have text, in samples of the recording, clamped to the clip."""

    def clamped(sample: int) -> int:
        return min(max(sample + clip[0], clip[0]), clip[1])

    for segment in result.segments:
        if segment.text.strip():
            words = tuple(
                replace(word, start=clamped(word.start), end=clamped(word.end)) for word in segment.words
            )
            yield replace(segment, start=clamped(segment.start), end=clamped(segment.end), words=words)


def in_bounds(segments: Sequence[S], bounds: Span) -> list[S]:
    """Ordered segments without overlap inside the bounds: a segment ends when the next one starts.

    Starts move only if a segment would have no time at all.
    """
    first, last = bounds[0], max(bounds[1], bounds[0] + 1)
    if len(segments) > last - first:  # fewer samples than segments
        segments = [_joined(segments)]
    count = len(segments)
    shortest = min(SHORTEST_SEGMENT, (last - first) // max(count, 1))
    starts: list[int] = []
    for index, segment in enumerate(segments):
        earliest = starts[-1] + shortest if starts else first
        latest = last - (count - index) * shortest
        starts.append(min(max(segment.start, earliest), latest))
    limits = [*starts, last][1:]
    return [
        moved(segment, start, min(max(segment.end, start + shortest), limit))
        for segment, start, limit in zip(segments, starts, limits, strict=True)
    ]


def _joined(segments: Sequence[S]) -> S:
    return replace(
        segments[0],
        end=segments[-1].end,
        text="".join(segment.text for segment in segments),
        tokens=tuple(token for segment in segments for token in segment.tokens),
        words=tuple(word for segment in segments for word in segment.words),
    )


def moved(segment: S, start: int, end: int) -> S:
    """The segment from `start` to `end`, with its words in order inside it. A word may last no time."""
    words = [word for word in segment.words if word.text]
    starts: list[int] = []
    for word in words:
        starts.append(min(max(word.start, starts[-1] if starts else start), end))
    limits = [*starts, end][1:]
    return replace(
        segment,
        start=start,
        end=end,
        words=tuple(
            replace(word, start=word_start, end=min(max(word.end, word_start), limit))
            for word, word_start, limit in zip(words, starts, limits, strict=True)
        ),
    )
