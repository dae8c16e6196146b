"""Transcripts and corrections of them for tests: written out, or drawn by hypothesis."""

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from hypothesis import strategies as st
from transcript_cases import raw_segment

from app.transcript.corrections import SegmentEdit
from app.transcript.edited import EditedSegment, Mark, listed_marks, with_ids
from app.transcript.formats.common import milliseconds
from tests.cases import read_cases
from workers.messages import SAMPLE_RATE, Segment, Span, Word

RECORDING = 90 * SAMPLE_RATE + 5  # not a whole number of milliseconds
CLIPS: tuple[Span, ...] = (
    (0, 29 * SAMPLE_RATE),
    (30 * SAMPLE_RATE, 55 * SAMPLE_RATE),
    (60 * SAMPLE_RATE, RECORDING),
)
SPOKEN = 0.5  # probability of the words of a model

VOCABULARY = read_cases("vocabulary")["corrections"]


def words_of(language: str) -> list[str]:
    """Words as Whisper writes them, with the space before each that its script wants."""
    text = VOCABULARY[language]
    return [f" {word}" for word in text.split()] if text.startswith(" ") else text.split("|")


def edits_of(segments: Sequence[EditedSegment]) -> list[SegmentEdit]:
    """The segments as a client reads them, and sends them back unedited."""
    return [
        SegmentEdit(
            milliseconds(part.start),
            milliseconds(part.end),
            part.text.strip(),
            part.id,
            part.speaker,
            listed_marks(part),
        )
        for part in segments
    ]


@st.composite
def bases(draw: st.DrawFn, texts: st.SearchStrategy[str] | None = None) -> tuple[EditedSegment, ...]:
    """A transcript as a model makes it. `texts`: of words; without them, of one language."""
    if texts is None:
        texts = st.sampled_from(words_of(draw(st.sampled_from(sorted(VOCABULARY)))))
    has_words = draw(st.integers(0, 9)) > 0
    lengths = st.integers(1, SAMPLE_RATE)
    at, segments = draw(st.integers(0, SAMPLE_RATE)), list[Segment]()
    for count in draw(st.lists(st.integers(1, 6), max_size=8)):
        at += draw(st.sampled_from([0, 0, 5, 4000, 20_000, 160_000]))
        start, words = at, []
        for _ in range(count):
            begin = at + draw(st.sampled_from([0, 0, 100, 3000]))
            at = begin + draw(lengths)
            words.append(Word(draw(texts), begin, at, SPOKEN))
        at += draw(st.sampled_from([0, 3, 800]))
        text = "".join(word.text for word in words)
        segments.append(replace(raw_segment(start, at, text, words if has_words else None), tokens=(1, 2)))
    return tuple(with_ids([part for part in segments if part.end <= RECORDING], CLIPS))


@st.composite
def edited(
    draw: st.DrawFn, base: Sequence[EditedSegment], new_texts: st.SearchStrategy[str]
) -> list[SegmentEdit]:
    """The base after up to eight edits.

    Texts, times, speakers and marks; inserted, deleted, split and joined segments.

    Most results are valid. Words keep their order. `new_texts`: of inserted words, with their spaces.
    """
    edits = edits_of(base)
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(
            st.sampled_from(
                ["insert", "delete", "split", "join", "drag", "retime", "retext", "speaker", "mark"]
            )
        )
        if kind == "insert":
            at = draw(st.integers(0, len(edits)))
            start = edits[at - 1].end_ms if at else 0
            end = edits[at].start_ms if at < len(edits) else start + 700
            new = SegmentEdit(
                start, max(end, start + 1), draw(new_texts), draw(st.sampled_from([None, "unknown"]))
            )
            edits.insert(at, new)
        elif edits:
            at = draw(st.integers(0, len(edits) - 1))
            _EDITS[kind](draw, edits, at, new_texts)
    return edits


def _delete(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    del edits[at]


def _split(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    edit = edits[at]
    place = draw(st.integers(0, len(edit.text)))
    time = (edit.start_ms + edit.end_ms) // 2
    if edit.text[:place].strip() and edit.text[place:].strip() and edit.start_ms < time < edit.end_ms:
        if edit.text.isascii():
            place = edit.text.find(" ", place)
        if place > 0:
            first = replace(edit, end_ms=time, text=edit.text[:place])
            second = replace(edit, start_ms=time, text=edit.text[place:])
            edits[at : at + 1] = [first, replace(second, id=draw(st.sampled_from([edit.id, None])))]


def _join(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    first, *others = edits[at : at + 2]
    for second in others:
        space = " " if first.text.isascii() else ""
        edits[at : at + 2] = [
            replace(first, end_ms=max(first.end_ms, second.end_ms), text=first.text + space + second.text)
        ]


def _drag(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    """Move the last word to the next segment."""
    first, *others = edits[at : at + 2]
    for second in others:
        head, _, word = first.text.rpartition(" ")
        if head.strip():
            edits[at : at + 2] = [replace(first, text=head), replace(second, text=f"{word} {second.text}")]


def _retime(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    edit = edits[at]
    shifts = st.integers(-400, 400)
    start = max(edit.start_ms + draw(shifts), edits[at - 1].end_ms if at else 0)
    end = max(min(edit.end_ms + draw(shifts), RECORDING // 16 + 1), start + 1)
    edits[at] = replace(edit, start_ms=start, end_ms=end)


def _retext(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    """Replace, delete or insert characters of one place."""
    text = edits[at].text
    words = text.split()
    place = draw(st.integers(0, len(words) - 1))
    words[place : place + draw(st.integers(0, 2))] = draw(st.lists(new_texts.map(str.strip), max_size=2))
    edits[at] = replace(edits[at], text=" ".join(words) or text)


def _respeaker(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    edits[at] = replace(edits[at], speaker=draw(st.sampled_from([None, "S1", "S2"])))


def _mark(draw: st.DrawFn, edits: list[SegmentEdit], at: int, new_texts: st.SearchStrategy[str]) -> None:
    places = st.integers(0, len(edits[at].text.strip()) - 1)
    marks = st.lists(st.tuples(places, st.sampled_from(get_args(Mark))), min_size=1, max_size=3)
    edits[at] = replace(edits[at], marks=tuple(draw(marks)))


_EDITS = {
    "delete": _delete,
    "split": _split,
    "join": _join,
    "drag": _drag,
    "retime": _retime,
    "retext": _retext,
    "speaker": _respeaker,
    "mark": _mark,
}


def is_valid(edits: Sequence[SegmentEdit], base: Sequence[EditedSegment]) -> bool:
    """Whether a correction may have these segments: the rules, one by one."""
    unedited = {(edit.id, edit.start_ms, edit.end_ms) for edit in edits_of(base)}
    marked = {(edit.id, edit.marks) for edit in edits_of(base)}
    for index, edit in enumerate(edits):
        is_kept = (edit.id, edit.start_ms, edit.end_ms) in unedited
        if not edit.text.strip() or (edit.start_ms >= edit.end_ms and not is_kept):
            return False
        marks = () if (edit.id, edit.marks) in marked else edit.marks or ()
        if any(place >= len(edit.text.strip()) for place, _ in marks):
            return False
        if edit.start_ms < 0 or edit.end_ms > -(-RECORDING // 16):
            return False
        if index and edit.start_ms < edits[index - 1].start_ms:
            return False
        of_speaker = [old for old in edits[:index] if old.speaker == edit.speaker]
        if not is_kept and any(edit.start_ms < old.end_ms for old in of_speaker):
            return False
        moved = [old for old in of_speaker if (old.id, old.start_ms, old.end_ms) not in unedited]
        if any(edit.start_ms < old.end_ms for old in moved):
            return False
    return True
