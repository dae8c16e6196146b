"""A transcript of which all or a part was transcribed again, with what people changed in it. Pure.

The time of the recording is divided in two. In one part the transcript stays as it is: outside of what was
transcribed again, where people changed something, and where that failed. A segment that is there in part is
there with all of its time, and a pause beside it with a part of its own. In the rest, all text is new.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, groupby
from operator import attrgetter, itemgetter

from app.transcript.edited import EditedSegment, clip_start, split_turns
from app.transcript.timeline import Transcript, in_bounds, joined_spans, moved
from workers.messages import SAMPLE_RATE, Segment, Span

ALL_TIME: Span = (0, 1 << 62)
_ROUNDING = SAMPLE_RATE // 1000  # samples: clients know the times of segments to 1 ms
_NEAR = 3 * SAMPLE_RATE // 10  # samples: a word in a pause that begins or ends there belongs to what stays


def touched_spans(before: Sequence[EditedSegment], after: Sequence[EditedSegment]) -> tuple[Span, ...]:
    """Where two revisions differ in what people write or choose, in order, in samples.

    Each span is the time of segments that are new, gone or different. A speaker counts only if somebody chose
    it for this segment: to find or rename all speakers touches no segment.
    """
    old, new = ({segment.id: segment for segment in segments} for segments in (before, after))
    differing = (
        segment
        for id in old.keys() | new.keys()
        if not (id in old and id in new and _by_people(old[id]) == _by_people(new[id]))
        for segment in (old.get(id), new.get(id))
        if segment is not None
    )
    return tuple(joined_spans(sorted((segment.start, segment.end) for segment in differing)))


def _by_people(segment: EditedSegment) -> tuple[object, ...]:
    speaker = segment.speaker if segment.speaker_by_hand else None
    times = (segment.start, segment.end, segment.timed_by_hand)
    return (segment.text, *times, segment.speaker_by_hand, speaker, segment.marks)


def merge_again(
    base: Transcript,
    again: Transcript,
    part: Span | None,
    touched: Sequence[Span],
    revision: int,
    *,
    keeps_ids: bool = False,
) -> Transcript:
    """The base with new text from `again`, as the revision with this number, which no other one has.

    Both have `EditedSegment`s. `part`: what was transcribed again, in samples; None: all. `touched`: where
    people changed the base, in order, without overlap; there it stays as it is, as it does outside of the
    part. Segments of the base that stay are the same objects. `keeps_ids`: so are those of `again`, whose ids
    the base does not have.
    """
    first, last = part or ALL_TIME
    # A segment that rounding alone puts outside of the part is inside of it.
    outside = [(min(-1, first - 1), first - _ROUNDING), (last + _ROUNDING, ALL_TIME[1] + 2 * _ROUNDING)]
    fixed = [span for span in (*touched, *again.failed_spans, *outside) if span[0] < span[1]]
    stays = joined_spans(sorted(fixed))
    groups = joined_spans(((segment.start, segment.end) for segment in base.segments), -1)
    stays = joined_spans(sorted([*stays, *(group for group in groups if _overlaps(group, stays))]))
    # The times of the same word differ a little from run to run.
    kept = [
        span for span in (*touched, *groups) if _overlaps(span, stays) and _overlaps(span, [(first, last)])
    ]
    near = joined_spans(sorted((start - _NEAR, end + _NEAR) for start, end in kept))
    near = subtract_spans(near, [group for group in groups if not _overlaps(group, stays)])
    gaps = subtract_spans([(first, last)], joined_spans(sorted([*stays, *near])))
    old: list[EditedSegment] = []
    replaced: list[EditedSegment] = []
    for segment in _edited(base.segments):
        (old if _overlaps((segment.start, segment.end), stays) else replaced).append(segment)
    merged = base if part is not None else again
    starts = [start for start, _ in merged.clips]
    kept_ids = _edited(again.segments) if keeps_ids else replaced
    same = {_content(segment): segment for segment in kept_ids}
    numbers = count()
    new: list[EditedSegment] = []
    other_language = None if again.language == merged.language else again.language
    for segment in _placed(_edited(again.segments), gaps):
        segment = replace(segment, language=segment.language or other_language, letters_before=0)
        new_id = f"{clip_start(starts, segment.start)}-r{revision}-{next(numbers)}"
        new.append(same.pop(_content(segment), replace(segment, id=new_id)))
    failed = subtract_spans(base.failed_spans, [(first, last)])
    failed += _within(base.failed_spans, _within(again.failed_spans, [(first, last)]))
    merged = replace(
        merged,
        segments=tuple(sorted([*old, *new], key=attrgetter("start"))),
        failed_spans=tuple(sorted(failed)),
        touched=tuple(touched),
    )
    if part is None:
        return merged
    speech = subtract_spans(base.speech, [part]) + _within(again.speech, [part])
    return replace(merged, speech=tuple(sorted(speech)))


def subtract_spans(spans: Iterable[Span], others: Sequence[Span]) -> list[Span]:
    """What is in the spans and in none of the others. Both are in order, without overlap."""
    left = []
    for start, end in spans:
        for other_start, other_end in others[_first_after(start, others) :]:
            if other_start >= end:
                break
            if start < other_start:
                left.append((start, other_start))
            start = max(start, other_end)
        if start < end:
            left.append((start, end))
    return left


def _within(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What is in the spans and in the others."""
    return subtract_spans(spans, subtract_spans(spans, others))


def _first_after(sample: int, spans: Sequence[Span]) -> int:
    """The index of the first of some spans, in order and without overlap, that ends after a sample."""
    return bisect_right(spans, sample, key=itemgetter(1))


def _overlaps(span: Span, spans: Sequence[Span]) -> bool:
    """Whether a span has a sample of one of the others, which are in order and do not overlap."""
    index = _first_after(span[0], spans)
    return index < len(spans) and spans[index][0] < span[1]


def _edited(segments: Iterable[Segment]) -> Iterator[EditedSegment]:
    for segment in segments:
        assert isinstance(segment, EditedSegment)
        yield segment


def _content(segment: EditedSegment) -> tuple[object, ...]:
    return (segment.start, segment.end, segment.text, segment.speaker, segment.turns)


def _placed(segments: Iterable[EditedSegment], gaps: Sequence[Span]) -> list[EditedSegment]:
    """What the segments say in the gaps, ordered by its start. No segment is in two gaps, or leaves its own.

    A word is in the gap that has its middle. Each segment has one speaker.
    """
    lines: dict[tuple[int, str | None], list[EditedSegment]] = defaultdict(list)
    for segment in _edited(split_turns(segments)):
        for gap, said in _in_gaps(segment, gaps):
            lines[gap, segment.speaker].append(said)
    placed = (part for (gap, _), line in lines.items() for part in in_bounds(line, gaps[gap]))
    return sorted(placed, key=attrgetter("start"))


def _in_gaps(segment: EditedSegment, gaps: Sequence[Span]) -> Iterator[tuple[int, EditedSegment]]:
    """The parts of a segment that are in gaps, with the index of the gap."""
    at = _gap_of((segment.start, segment.end), gaps)
    if at is not None and gaps[at][0] <= segment.start and segment.end <= gaps[at][1]:
        yield at, segment
        return
    if not segment.words:
        if at is not None:
            yield at, segment
        return
    of_words = [(_gap_of((word.start, word.end), gaps), index) for index, word in enumerate(segment.words)]
    for gap, run in groupby(of_words, key=itemgetter(0)):
        words = tuple(segment.words[index] for _, index in run)
        text = "".join(word.text for word in words)
        if gap is not None and text.strip():
            said = replace(segment, text=text, tokens=(), words=words)
            yield gap, moved(said, words[0].start, max(words[-1].end, words[0].start + 1))


def _gap_of(span: Span, gaps: Sequence[Span]) -> int | None:
    """The index of the gap with the middle of a span."""
    middle = (span[0] + span[1]) // 2
    index = _first_after(middle, gaps)
    return index if index < len(gaps) and gaps[index][0] <= middle else None
