"""The one ordered timeline of a recording, merged from its clips. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from workers.messages import SAMPLE_RATE, ClipResult, Segment, Span, Word

# A segment that clamping leaves without time keeps its text and gets this much.
SHORTEST_SEGMENT = SAMPLE_RATE // 50  # samples: one step of Whisper's timestamps, 20 ms


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that was heard in a recording. Times in samples from its start."""

    task: str
    model: str
    language: str  # ISO 639-1 code of what is spoken
    samples: int  # length of the recording
    speech: tuple[Span, ...]  # where speech was found
    segments: Sequence[Segment]
    failed_spans: tuple[Span, ...] = ()  # of the recording, that could not be transcribed

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments).strip()

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for segment in self.segments for word in segment.words)


def merge(parts: Iterable[tuple[Span, ClipResult]]) -> tuple[Segment, ...]:
    """One timeline from `(span of the clip in the recording, what was heard in it)` pairs in any order.

    Of two parts with the same span the later one counts: a clip that was tried again. The segments come
    back in samples of the recording, ordered, each with start < end, none overlapping the next, each
    inside its clip, and with its words inside itself. Whatever the times, no text is lost, except that
    segments without any text are dropped.
    """
    latest = dict(parts)
    merged: list[Segment] = []
    for room, spans in _rooms(latest):
        heard = [segment for span in spans for segment in _placed(latest[span], span)]
        merged += _laid_out(sorted(heard, key=lambda segment: segment.start), room)
    return tuple(merged)


def _rooms(spans: Iterable[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """The spans in order, those that overlap together, each group with the span that it covers."""
    group: list[Span] = []
    covered = (0, 0)
    for span in sorted(spans):
        if group and span[0] < covered[1]:
            group.append(span)
            covered = (covered[0], max(covered[1], span[1]))
            continue
        if group:
            yield covered, group
        group, covered = [span], span
    if group:
        yield covered, group


def _placed(result: ClipResult, span: Span) -> Iterator[Segment]:
    """The segments of a clip that have text, in samples of the recording, clamped to the clip."""

    def placed(sample: int) -> int:
        return min(max(sample + span[0], span[0]), span[1])

    for segment in result.segments:
        if segment.text.strip():
            words = tuple(
                replace(word, start=placed(word.start), end=placed(word.end)) for word in segment.words
            )
            yield replace(segment, start=placed(segment.start), end=placed(segment.end), words=words)


def _laid_out(segments: Sequence[Segment], room: Span) -> list[Segment]:
    """Ordered segments without overlap inside the room: an end gives way to the start that follows it.

    Starts move only where that would leave a segment no time at all.
    """
    first, last = room[0], max(room[1], room[0] + 1)
    if len(segments) > last - first:  # fewer samples than segments: no room for each
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
        _with_span(segment, start, min(max(segment.end, start + shortest), limit))
        for segment, start, limit in zip(segments, starts, limits, strict=True)
    ]


def _joined(segments: Sequence[Segment]) -> Segment:
    return replace(
        segments[0],
        end=segments[-1].end,
        text="".join(segment.text for segment in segments),
        tokens=tuple(token for segment in segments for token in segment.tokens),
        words=tuple(word for segment in segments for word in segment.words),
    )


def _with_span(segment: Segment, start: int, end: int) -> Segment:
    """The segment with this span and its words, in their order, inside it; a word may last no time."""
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
