"""A transcript, or a correction of it, as a client corrects it. Pure."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count, pairwise
from operator import attrgetter

from app.transcript.corrections.diff import longest_increasing
from app.transcript.corrections.edits import SegmentEdit, placed_edits
from app.transcript.corrections.words import NewWords, PlacedEdit, new_words
from app.transcript.edited import EditedSegment, Marks, Replacement, clip_start, count_letters, speaker_of
from app.transcript.reading.alignment import align
from app.transcript.reading.words import ReadWord, fill_word_times
from app.transcript.terms import undone
from app.transcript.text.scripts import is_unspaced
from app.transcript.timeline import moved
from workers.messages import Segment, Span, Word

_NOBODYS = Segment(0, 0, "", (), 0.0, 0.0, 1.0, 0.0)  # scores where no segment has any
_TIMES_AND_TEXT = frozenset({"start", "end", "text", "tokens", "words"})
_SCORES = tuple(field.name for field in fields(Segment) if field.name not in _TIMES_AND_TEXT)


@dataclass(frozen=True, slots=True)
class Correction:
    """The segments of the new revision, ordered by their start; see `placed_edits` for which may overlap."""

    segments: tuple[EditedSegment, ...]
    changed: int  # segments added, removed or different from the base


def correct(
    base: Sequence[EditedSegment],
    edits: Sequence[SegmentEdit],
    revision: int,
    samples: int,
    clips: Sequence[Span],
) -> Correction:
    """The base with the edits, which are all segments of the new revision.

    `revision`: number of the new revision, which no other one had; `samples`: length of the recording;
    `clips`: as `with_ids` takes them. Unchanged words keep their times and probabilities. If the base has no
    words, the correction has none. Raises as `placed_edits` does.
    """
    base = tuple(base)
    placed = _with_spaces(base, placed_edits(base, edits, samples))
    found: dict[int, NewWords] = {}
    has_words = any(segment.words for segment in base)
    if has_words or any(segment.marks for segment in base):
        for old, new in _regions(base, placed):
            before = {index: _with_words_of_text(base[index]) for index in old}
            found |= zip(new, new_words(before, [placed[index] for index in new]), strict=True)
    starts = [start for start, _ in clips]
    numbers = count()  # of new segments: each id is given once, since no other revision has this one's number
    segments: list[EditedSegment] = []
    changed = len(base)
    for index, edit in enumerate(placed):
        words = found.get(index)
        if edit.base is None:
            new_id = f"{clip_start(starts, edit.start)}-r{revision}-{next(numbers)}"
            added = _new_segment(edit, words, _origin(base, edit, words), new_id)
            segments.append(added if has_words else replace(added, words=()))
            changed += 1
            continue
        segments.append(_corrected(base[edit.base], edit, words))
        changed -= segments[-1] == base[edit.base]
    return Correction(tuple(segments), changed)


def _corrected(segment: EditedSegment, edit: PlacedEdit, words: NewWords | None) -> EditedSegment:
    """The segment with the text, times and speaker of the edit."""
    timed_by_hand, marks = segment.timed_by_hand or edit.is_moved, _marks(edit, words, segment.marks)
    corrected = replace(segment, timed_by_hand=timed_by_hand, marks=marks)
    if edit.speaker != segment.speaker:
        corrected = replace(corrected, speaker=edit.speaker, speaker_by_hand=True, turns=())
    if edit.text != segment.text:
        of_text = words.words if words and segment.words else ()
        replaced = _kept_replacements(segment, edit.text)
        for each in segment.replaced:
            if (before := undone(segment, each)).text == edit.text:
                of_text, replaced = before.words, before.replaced
        corrected = replace(corrected, text=edit.text, tokens=(), words=of_text, turns=(), replaced=replaced)
    if (edit.start, edit.end) != (segment.start, segment.end):
        corrected = moved(corrected, edit.start, edit.end)
        if len(corrected.words) != len(segment.words):  # words without text are gone
            corrected = replace(corrected, turns=())
    return corrected


def _kept_replacements(segment: EditedSegment, text: str) -> tuple[Replacement, ...]:
    """What terms have replaced before and after the part of a segment in which its new text differs."""
    old, new = ("".join(each.split()) for each in (segment.text, text))
    first = _common(old, new)
    last = len(old) - _common(old[first:][::-1], new[first:][::-1])
    return tuple(
        each if each.letter < first else replace(each, letter=each.letter + len(new) - len(old))
        for each in segment.replaced
        if each.letter + count_letters(each.write) <= first or each.letter >= last
    )


def _common(text: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(text), len(other)))


def _new_segment(edit: PlacedEdit, words: NewWords | None, origin: Segment, new_id: str) -> EditedSegment:
    return EditedSegment(
        edit.start,
        edit.end,
        edit.text,
        tokens=(),
        **{name: getattr(origin, name) for name in _SCORES},
        words=words.words if words else (),
        id=new_id,
        speaker=edit.speaker,
        timed_by_hand=True,
        speaker_by_hand=_is_chosen(edit.speaker, origin),
        marks=_marks(edit, words, ()),
    )


def _marks(edit: PlacedEdit, words: NewWords | None, of_same_text: Marks) -> Marks:
    if edit.marks is not None:
        return edit.marks
    return of_same_text if words is None else words.marks


def _is_chosen(speaker: str | None, origin: Segment) -> bool:
    """Whether someone chose the speaker of a new segment: not if it is a part of one, and has its speaker."""
    turns = origin.turns if isinstance(origin, EditedSegment) else ()
    if speaker == speaker_of(origin) or any(speaker == who for _, who in turns):
        return isinstance(origin, EditedSegment) and origin.speaker_by_hand
    return speaker is not None


def _origin(base: Sequence[EditedSegment], edit: PlacedEdit, words: NewWords | None) -> Segment:
    """The segment whose scores a new one gets: that of most of its words, or the nearest in time."""
    if words and words.origin is not None:
        return base[words.origin]
    at = bisect_right(base, edit.start, key=attrgetter("start"))
    near = base[max(at - 1, 0) : at + 1]
    return min(
        near,
        key=lambda segment: max(segment.start - edit.end, edit.start - segment.end),
        default=_NOBODYS,
    )


def _with_spaces(base: Sequence[EditedSegment], placed: Sequence[PlacedEdit]) -> list[PlacedEdit]:
    """The edits, each text with the space before it that its script wants, as Whisper writes it."""
    spaced: list[PlacedEdit] = []
    for edit in placed:
        old = "" if edit.base is None else base[edit.base].text
        text = old
        if edit.text != old.strip():
            lead = old[: len(old) - len(old.lstrip())]
            after_unspaced = bool(spaced) and is_unspaced(spaced[-1].text[-1])
            if not lead and not is_unspaced(edit.text[0]) and not after_unspaced:
                lead = " "
            text = lead + edit.text
        spaced.append(replace(edit, text=text))
    return spaced


def _regions(
    base: Sequence[EditedSegment], placed: Sequence[PlacedEdit]
) -> Iterator[tuple[list[int], list[int]]]:
    """Indices of segments and edits with other texts, between those that keep segment and text."""
    equal = [
        (edit.base, index)
        for index, edit in enumerate(placed)
        if edit.base is not None and edit.text == base[edit.base].text
    ]
    of_base, of_edits = ({pair[side] for pair in equal} for side in (0, 1))
    borders = [equal[place] for place in longest_increasing([of for of, _ in equal])]
    for left, right in pairwise([(-1, -1), *borders, (len(base), len(placed))]):
        new = [index for index in range(left[1] + 1, right[1]) if index not in of_edits]
        if new:
            yield [index for index in range(left[0] + 1, right[0]) if index not in of_base], new


def _with_words_of_text(segment: EditedSegment) -> EditedSegment:
    """The segment with words that make up its text."""
    if not segment.words or "".join(word.text for word in segment.words) == segment.text:
        return segment
    read = [ReadWord(word.text, word.start, word.end, word.probability) for word in segment.words]
    aligned = fill_word_times(align(segment.text, read), segment.start, segment.end)
    words = tuple(Word(word.text, word.start or 0, word.end or 0, word.probability) for word in aligned)
    return replace(segment, words=words)
