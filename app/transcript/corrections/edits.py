"""The segments of a correction, checked, with their times in samples. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.common.errors import InvalidInput, TooLarge
from app.transcript.corrections.marks import placed_marks
from app.transcript.corrections.matching import count_tokens
from app.transcript.corrections.words import PlacedEdit
from app.transcript.edited import EditedSegment, Mark, Marks, listed_marks, speakers_of
from workers.messages import MAX_LISTED_SPEAKERS, SAMPLE_RATE, Segment

MAX_SEGMENTS = 100_000


class _Limit(NamedTuple):
    """How many of something a corrected transcript may have, unless the base has more."""

    what: str
    least: int  # however short the recording is: people also describe and translate
    per_s: int  # of the recording; several times as many as anyone speaks
    most: int  # more than a day of talk has
    remedy: str

    def check(self, found: int, of_base: int, samples: int) -> None:
        """Raise TooLarge if there are too many."""
        limit = max(min(self.least + self.per_s * samples // SAMPLE_RATE, self.most), of_base)
        if found > limit:
            raise TooLarge(
                f"The transcript has {found:,} {self.what}, and may have {limit:,} for "
                f"{samples / SAMPLE_RATE:,.1f} s of sound. {self.remedy}.",
                param="segments",
            )


_SEGMENTS = _Limit("segments", 2_000, 20, MAX_SEGMENTS, "Join some of them")
_CHARS = _Limit("characters", 100_000, 100, 4_000_000, "Shorten its text")
_WORDS = _Limit("words (in scripts without spaces: characters)", 20_000, 20, 600_000, "Shorten its text")
_SPEAKERS = _Limit("speakers", MAX_LISTED_SPEAKERS, 0, MAX_LISTED_SPEAKERS, "Give several of them one name")
_SAMPLES_PER_MS = SAMPLE_RATE // 1000


@dataclass(frozen=True, slots=True)
class SegmentEdit:
    """A segment as a client wants it. Times in ms from the recording's start."""

    start_ms: int
    end_ms: int
    text: str
    id: str | None = None  # of the segment of the base that it replaces; None, unknown or repeated: a new one
    speaker: str | None = None
    # The place of each mark, in characters of the text without white space at its ends. None: as before.
    marks: tuple[tuple[int, Mark], ...] | None = None


def unchanged(segment: EditedSegment) -> SegmentEdit:
    """A segment as it is."""
    start_ms, end_ms = (round(time / _SAMPLES_PER_MS) for time in (segment.start, segment.end))
    return SegmentEdit(start_ms, end_ms, segment.text, segment.id, segment.speaker)


def placed_edits(
    base: Sequence[EditedSegment], edits: Sequence[SegmentEdit], samples: int
) -> list[PlacedEdit]:
    """The edits in order of their start, none overlapping another one of its speaker.

    Only edits that keep the times of the base may overlap: of two speakers that became one, say. `samples`:
    length of the recording. A time that is the base's, rounded to the millisecond, stays as exact as it was.
    Raises `InvalidInput` with the first segment that is not valid, and `TooLarge`.
    """
    _check_size(base, edits, samples)
    unused = {segment.id: index for index, segment in enumerate(base)}
    by_id = {segment.id: segment for segment in base}
    latest: dict[str | None, int] = {}  # by speaker: the index of the segment that ends last
    placed: list[PlacedEdit] = []
    for index, edit in enumerate(edits):
        replaced = None if edit.id is None else unused.pop(edit.id, None)
        start, end = (None, None) if replaced is None else _kept_times(base[replaced], edit)
        is_moved = start is None or end is None
        rival = latest.get(edit.speaker)
        may_overlap = rival is None or not (is_moved or placed[rival].is_moved)
        _check_order(edits, index, None if may_overlap else rival)
        _check_times(index, edit, start, end, samples)
        if not edit.text.strip():
            raise _invalid(index, "has no text", "Give it some, or leave the segment out to remove it")
        if not edit.text.isascii() and any("\ud800" <= char <= "\udfff" for char in edit.text):
            raise _invalid(index, "has half a character (a lone surrogate)", "Send its text in Unicode")
        if rival is None or edit.end_ms >= edits[rival].end_ms:
            latest[edit.speaker] = index
        if start is None:
            start = edit.start_ms * _SAMPLES_PER_MS
            if rival is not None:  # it may end within this millisecond, and then still comes first
                start = min(max(start, placed[rival].end), start + _SAMPLES_PER_MS // 2 - 1)
        if end is None:
            end = min(edit.end_ms * _SAMPLES_PER_MS, samples)
        marks = _placed_marks(index, edit, by_id.get(edit.id or ""))
        placed.append(PlacedEdit(edit.text.strip(), start, end, edit.speaker, replaced, is_moved, marks))
    placed.sort(key=lambda edit: edit.start)
    _separate(placed)
    return placed


def _check_size(base: Sequence[Segment], edits: Sequence[SegmentEdit], samples: int) -> None:
    """Raise TooLarge if the edits are more than a recording of this length may have."""
    _SEGMENTS.check(len(edits), len(base), samples)
    texts, old_texts = [edit.text for edit in edits], [segment.text for segment in base]
    chars = sum(map(len, texts))
    _CHARS.check(chars, sum(map(len, old_texts)), samples)
    if chars > _WORDS.least:  # each word has a character: most transcripts need no closer look
        _WORDS.check(sum(map(count_tokens, texts)), sum(map(count_tokens, old_texts)), samples)
    old_speakers = {speaker for segment in base for speaker in speakers_of(segment)}
    _SPEAKERS.check(len({edit.speaker for edit in edits} - {None}), len(old_speakers), samples)


def _kept_times(segment: EditedSegment, edit: SegmentEdit) -> tuple[int | None, int | None]:
    """The start and the end of the segment in samples, as far as the edit keeps them.

    It does if they round to its milliseconds, whichever way half a millisecond goes.
    """
    start, end = (
        time if abs(time - time_ms * _SAMPLES_PER_MS) <= _SAMPLES_PER_MS // 2 else None
        for time, time_ms in ((segment.start, edit.start_ms), (segment.end, edit.end_ms))
    )
    return start, end


def _placed_marks(index: int, edit: SegmentEdit, old: EditedSegment | None) -> Marks | None:
    """The marks of an edit. None: those of before. A client that knows no marks sends these back, too, with
    each part of a segment that it splits.

    `old`: the segment of the base with its id.
    """
    text, marks = edit.text.strip(), edit.marks
    if marks is None or (marks and old is not None and marks == listed_marks(old)):
        return None
    last = max((at for at, _ in marks), default=-1)
    if last >= len(text):
        raise _invalid(
            index,
            f"has a mark at {last}, and its text has {len(text)} characters",
            "Set marks before characters of the text, or leave `marks` out to keep those that are there",
        )
    return placed_marks(text, marks)


def _check_order(edits: Sequence[SegmentEdit], index: int, of_speaker: int | None) -> None:
    """`of_speaker`: the index of an earlier segment of the same speaker that may not overlap this one."""
    start = edits[index].start_ms
    if index and start < edits[index - 1].start_ms:
        before = f"at {edits[index - 1].start_ms} ms, where segments[{index - 1}] does"
        raise _invalid(
            index, f"starts at {start} ms, not {before}, or later", "Order the segments by their start"
        )
    if of_speaker is not None and start < edits[of_speaker].end_ms:
        ends = f"segments[{of_speaker}] of the same speaker ends at {edits[of_speaker].end_ms} ms"
        raise _invalid(
            index,
            f"starts at {start} ms, before {ends}",
            "Give one of them another time or another speaker, or join them",
        )


def _check_times(index: int, edit: SegmentEdit, start: int | None, end: int | None, samples: int) -> None:
    """`start` and `end`: as the base has them, if the edit keeps them. These need no check."""
    if start is not None and end is not None:
        return
    if edit.start_ms >= edit.end_ms:
        raise _invalid(
            index,
            f"starts at {edit.start_ms} ms and ends at {edit.end_ms} ms",
            "Give it an end after its start",
        )
    whole_ms = -(-samples // _SAMPLES_PER_MS)  # the last one begun
    starts_inside = start is not None or 0 <= edit.start_ms * _SAMPLES_PER_MS < samples
    if not starts_inside or (end is None and edit.end_ms > whole_ms):
        raise _invalid(
            index,
            f"lasts from {edit.start_ms} ms to {edit.end_ms} ms, and the recording from 0 to {whole_ms} ms",
            "Give it times inside the recording",
        )


def _invalid(index: int, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"segments[{index}] {what}. {remedy}.", param=f"segments[{index}]")


def _separate(placed: list[PlacedEdit]) -> None:
    """End each edit before the next one of its speaker, unless both have the times of the base.

    Only parts of a millisecond can overlap: some times are whole milliseconds, others exact.
    """
    latest: dict[str | None, int] = {}
    for index, edit in enumerate(placed):
        rival = latest.get(edit.speaker)
        if rival is not None and placed[rival].end > edit.start and (edit.is_moved or placed[rival].is_moved):
            border = min(max(edit.start, placed[rival].start + 1), edit.end - 1)
            placed[rival] = replace(placed[rival], end=border)
            placed[index] = replace(edit, start=border)
        if rival is None or placed[index].end >= placed[rival].end:
            latest[edit.speaker] = index
