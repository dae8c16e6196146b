"""Segments as people read and correct them: each with an id of its own. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, Literal

from workers.messages import Segment, Span, Word, seconds

Mark = Literal["break", "join"]  # a cue begins here; no cue ends here
# In order: how many letters (characters but white space) of the text stand before each mark.
Marks = tuple[tuple[int, Mark], ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A term in the text of a segment, instead of what the model wrote: see `app.transcript.terms`."""

    letter: int  # how many letters of the text stand before it
    write: str
    heard: str  # what the model wrote
    words: tuple[Word, ...]  # all of which a part was replaced; empty if they are not known


@dataclass(frozen=True, slots=True)
class TermedSegment(Segment):
    """A segment in which terms may have replaced something."""

    replaced: tuple[Replacement, ...] = ()  # in order


@dataclass(frozen=True, slots=True)
class EditedSegment(TermedSegment):
    """A segment of a transcript or of a correction of it. Times in samples of the recording.

    Its `id` consists of the first sample of its clip, its place there and, unless that is 0, its channel;
    that of a segment added by a correction also has the revision. No other segment of the transcript gets the
    same one.
    """

    id: str = ""
    speaker: str | None = None  # None: not known. Of its first word, if it has `turns`
    timed_by_hand: bool = False  # someone chose its start and end: no cue may cross or move them
    speaker_by_hand: bool = False  # someone chose its speaker
    # The words at which another speaker begins, in order: index in `words`, and who that is. None at 0.
    turns: tuple[tuple[int, str | None], ...] = ()
    marks: Marks = ()  # that people set in its text
    letters_before: int = 0  # of a turn that `split_turns` gives: those of the segment's turns before it


def is_timed_by_hand(segment: Segment) -> bool:
    """Whether someone chose the times of the segment."""
    return isinstance(segment, EditedSegment) and segment.timed_by_hand


def speaker_of(segment: Segment) -> str | None:
    """Who speaks the segment, or its first words; None if that is not known."""
    return segment.speaker if isinstance(segment, EditedSegment) else None


def speakers_of(segment: Segment) -> list[str]:
    """Who speaks in the segment, as far as that is known."""
    turns = segment.turns if isinstance(segment, EditedSegment) else ()
    return [speaker for speaker in (speaker_of(segment), *(who for _, who in turns)) if speaker is not None]


def word_speakers(segment: Segment) -> list[str | None]:
    """Who speaks each word of the segment: as many as it has words."""
    speakers = [speaker_of(segment)] * len(segment.words)
    for first, speaker in segment.turns if isinstance(segment, EditedSegment) else ():
        speakers[first:] = [speaker] * len(speakers[first:])
    return speakers


def add_speakers(entries: Iterable[dict[str, Any]], segment: Segment) -> None:
    """Give JSON objects, one for each word of the segment, the `speaker` of the word, where it is known."""
    if isinstance(segment, EditedSegment) and (segment.speaker is not None or segment.turns):
        for entry, speaker in zip(entries, word_speakers(segment), strict=True):
            if speaker is not None:
                entry["speaker"] = speaker


def count_letters(text: str) -> int:
    """How many characters of the text are no white space."""
    return len("".join(text.split()))


def word_entries(segment: Segment) -> list[dict[str, Any]]:
    """The words of a segment as JSON objects: times in seconds, and the `speaker` where it is known."""
    entries: list[dict[str, Any]] = [
        {
            "word": word.text.strip(),
            "start": seconds(word.start),
            "end": seconds(word.end),
            "probability": word.probability,
        }
        for word in segment.words
    ]
    add_speakers(entries, segment)
    return entries


def letter_places(segment: Segment) -> list[int]:
    """Where each letter is in the text without white space at its ends, counted in characters."""
    return [at for at, char in enumerate(segment.text.strip()) if not char.isspace()]


def listed_marks(segment: EditedSegment) -> Marks:
    """The marks of a segment with their places in characters, as clients see them."""
    if not segment.marks:
        return ()
    places = letter_places(segment)
    return tuple((places[letter], mark) for letter, mark in segment.marks)


def place_of(segment: Segment, replacement: Replacement) -> int | None:
    """Where a replacement begins in the text of its segment, in characters; None if it is not there now."""
    letters = (at for at, char in enumerate(segment.text) if not char.isspace())
    at = next(islice(letters, replacement.letter, None), None)
    return at if at is not None and segment.text.startswith(replacement.write, at) else None


def replacement_entries(segment: Segment) -> list[dict[str, Any]]:
    """What terms have replaced in a segment, as JSON objects. Places count as those of marks."""
    lead = len(segment.text) - len(segment.text.lstrip())
    return [
        {"at": at - lead, "write": each.write, "heard": each.heard}
        for each in replacements_of(segment)
        if (at := place_of(segment, each)) is not None
    ]


def mark_entries(marks: Iterable[tuple[int, Mark]]) -> list[dict[str, Any]]:
    """Such marks as JSON objects."""
    return [{"at": at, "kind": mark} for at, mark in marks]


def with_ids(segments: Iterable[Segment], clips: Sequence[Span], channel: int = 0) -> Iterator[EditedSegment]:
    """The segments of a transcript, or of one channel, in order, with their ids.

    `clips`: the spans of its clips, in order, without overlap. Each segment belongs to the last clip that
    begins at its start or before; if there is none, to a clip at 0.
    """
    starts = [start for start, _ in clips]
    of_channel = f"-{channel}" if channel else ""
    clip, place = 0, -1
    for segment in segments:
        of = clip_start(starts, segment.start)
        place = place + 1 if of == clip else 0
        clip = of
        yield edited(segment, id=f"{clip}-{place}{of_channel}")


def edited(segment: Segment, **more: Any) -> EditedSegment:
    """The segment with `more` of what people read and correct."""
    return EditedSegment(**_plain(segment), replaced=replacements_of(segment), **more)


def termed(segment: Segment, replaced: tuple[Replacement, ...]) -> TermedSegment:
    """The segment with what terms have replaced in it."""
    return TermedSegment(**_plain(segment), replaced=replaced)


def _plain(segment: Segment) -> dict[str, Any]:
    return {name: getattr(segment, name) for name in Segment.__match_args__}


def replacements_of(segment: Segment) -> tuple[Replacement, ...]:
    """What terms have replaced in the segment."""
    return segment.replaced if isinstance(segment, TermedSegment) else ()


def clip_start(starts: Sequence[int], sample: int) -> int:
    """Where the clip of a segment starts that starts at this sample, of clips with these starts in order."""
    index = bisect_right(starts, sample) - 1
    return starts[index] if index >= 0 else 0


def split_turns(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The segments, in order, each of one speaker. The parts of one that was timed by hand abut."""
    for segment in segments:
        if isinstance(segment, EditedSegment) and segment.turns:
            yield from _turns(segment)
        else:
            yield segment


def _turns(segment: EditedSegment) -> Iterator[EditedSegment]:
    words, speakers = segment.words, word_speakers(segment)
    begins = [0, *(at for at in range(1, len(words)) if speakers[at] != speakers[at - 1])]
    start, letters = segment.start, 0
    for first, last in pairwise([*begins, len(words)]):
        if last < len(words):
            next_start = min(max(words[last].start, start), segment.end)
            spoken = max(min(words[last - 1].end, next_start), start)
            end = next_start if segment.timed_by_hand else spoken
            text = "".join(word.text for word in words[first:last])
        else:
            next_start = end = segment.end
            text = segment.text if not first else "".join(word.text for word in words[first:])
        part = words[first:last]
        speaker = speakers[first] if speakers else segment.speaker
        turn = replace(segment, speaker=speaker, turns=(), letters_before=letters)
        yield replace(turn, start=start, end=end, text=text, words=part)
        start = next_start
        letters += count_letters(text)
