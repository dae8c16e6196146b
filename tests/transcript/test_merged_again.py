"""Parts of a transcript that are transcribed again: what people changed stays, and so does all else."""

import zlib
from dataclasses import dataclass, replace
from itertools import pairwise

from correction_cases import CLIPS, RECORDING, bases, edited, edits_of
from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import samples, spoken

from app.common.errors import InvalidInput
from app.jobs.corrections import apply_again, apply_edits, keep_corrected, restore
from app.jobs.serialization import PackedTranscript, identified, pack_transcript, unpack_transcript
from app.transcript.corrections import SegmentEdit
from app.transcript.edited import EditedSegment, with_ids
from app.transcript.speakers.labelling import named_as
from app.transcript.timeline import Transcript
from workers.messages import Segment, Span

NEW_TEXTS = st.sampled_from([" new", " words", " again"])
ROUNDING = 16  # samples: a part is given in ms


def transcript(*segments: Segment, **changes: object) -> Transcript:
    speech = tuple((segment.start, segment.end) for segment in segments)
    made = Transcript("transcribe", "demo", "en", RECORDING, speech, segments, clips=CLIPS)
    return replace(made, **changes)


def packed(*segments: Segment, **changes: object) -> PackedTranscript:
    return PackedTranscript(0, pack_transcript(transcript(*segments, **changes)))


def segments_of(base: PackedTranscript) -> tuple[EditedSegment, ...]:
    return identified(unpack_transcript(base.content))


def again(
    base: PackedTranscript,
    original: PackedTranscript,
    new: Transcript,
    part: Span | None = None,
    *,
    keep: bool = True,
) -> PackedTranscript:
    """The revision after a part, or all, was transcribed again; the base if nothing differs."""
    correction = apply_again(base, original, new, part, keep_corrections=keep, speakers=named_as)
    return base if correction is None else correction.transcript


def lines(base: PackedTranscript) -> dict[str, bytes]:
    """Each segment as it is stored, by its id."""
    segments = segments_of(base)
    stored = zlib.decompress(pack_transcript(transcript(*segments))).split(b"\n")[1:]
    return {segment.id: line for segment, line in zip(segments, stored, strict=True)}


def is_inside(segment: Segment, part: Span | None, rounding: int = 0) -> bool:
    return part is None or (part[0] - rounding <= segment.start and segment.end <= part[1] + rounding)


@dataclass(frozen=True)
class State:
    """A revision, and what of it is people's."""

    revision: PackedTranscript
    written: frozenset[str] = frozenset()  # ids of segments
    removed: tuple[Segment, ...] = ()

    def corrected(self, after: PackedTranscript, machine: dict[str, EditedSegment]) -> "State":
        """After a correction. `machine`: the segments of the original.

        Until something is transcribed again, only the original tells what is gone: a segment counts with its
        first times, and not at all if people have added it themselves.
        """
        old, new = ({s.id: s for s in segments_of(base)} for base in (self.revision, after))
        changed = {id for id, segment in new.items() if id not in old or by_people(old[id], segment)}
        gone = tuple(segment for id, segment in old.items() if id not in new)
        if unpack_transcript(self.revision.content).touched is None:
            gone = tuple(machine[segment.id] for segment in gone if segment.id in machine)
        return State(after, (self.written & new.keys()) | changed, (*self.removed, *gone))

    def given_up(self, after: PackedTranscript, part: Span | None) -> "State":
        """After a part was transcribed again, and nothing was to be kept there."""
        old = {segment.id: segment for segment in segments_of(self.revision)}
        written = frozenset(id for id in self.written if not is_inside(old[id], part, ROUNDING))
        return State(after, written, tuple(gone for gone in self.removed if not is_touched(gone, part)))


def by_people(old: EditedSegment, new: EditedSegment) -> bool:
    return any(
        getattr(old, name) != getattr(new, name)
        for name in ("text", "start", "end", "timed_by_hand", "speaker_by_hand")
    )


def is_touched(segment: Segment, part: Span | None) -> bool:
    return part is None or (segment.start < part[1] and part[0] < segment.end)


parts = st.none() | st.tuples(st.integers(0, RECORDING - 2000), st.integers(1600, RECORDING)).map(
    lambda drawn: (drawn[0], min(drawn[0] + drawn[1], RECORDING))
)


@given(st.data())
def test_what_people_changed_is_never_lost_unless_that_was_asked_for(data: st.DataObject) -> None:
    original = packed(*data.draw(bases()))
    machine = {segment.id: segment for segment in segments_of(original)}
    states = [State(original)]
    steps = data.draw(st.lists(st.sampled_from(["correct", "again", "restore"]), max_size=4))
    for step in ["correct", *steps, "keep"]:
        state = states[-1]
        base = state.revision
        if step == "correct":
            try:
                correction, _ = apply_edits(base, data.draw(edited(segments_of(base), NEW_TEXTS)))
            except InvalidInput:
                continue
            if correction is not None:
                states.append(state.corrected(correction.transcript, machine))
        elif step == "restore":
            earlier = data.draw(st.sampled_from(states))
            correction, _ = restore(base, earlier.revision)
            if correction is not None:
                states.append(replace(earlier, revision=correction.transcript))
        else:
            part, keep = data.draw(parts), step == "keep" or data.draw(st.booleans())
            after = again(base, original, transcript(*data.draw(bases(NEW_TEXTS))), part, keep=keep)
            check_again(state, after, part, machine, keep=keep)
            if after is not base:
                states.append(replace(state, revision=after) if keep else state.given_up(after, part))
    numbers = [state.revision.revision for state in states]
    assert numbers == list(range(len(numbers))), "one line of revisions"


def check_again(
    state: State,
    after: PackedTranscript,
    part: Span | None,
    machine: dict[str, EditedSegment],
    *,
    keep: bool,
) -> None:
    old, new = lines(state.revision), lines(after)
    before = {segment.id: segment for segment in segments_of(state.revision)}
    segments = segments_of(after)
    added = [segment for segment in segments if segment.id not in before]
    assert len(new) == len(segments), "no id comes twice"
    assert all(one.start <= other.start for one, other in pairwise(segments))
    for id, segment in before.items():
        stays = not is_inside(segment, part, ROUNDING)
        # A text that was changed and changed back is the model's.
        is_written = id in state.written and not (id in machine and not by_people(machine[id], segment))
        if stays or (keep and is_written):
            assert new.get(id) == old[id]
    for segment in added:
        assert is_inside(segment, part)
        for other in segments:
            is_apart = other.end <= segment.start or segment.end <= other.start
            assert is_apart or other is segment or other in added
        if keep:
            middles = [(word.start + word.end) // 2 for word in segment.words]
            for gone in state.removed:
                assert not any(gone.start < middle < gone.end for middle in middles)


FIRST, SECOND, THIRD = (
    spoken(1, 3, "I see the dog"),
    spoken(3, 5, "The cat sat down"),
    spoken(6, 8, "It sleeps"),
)
ORIGINAL = packed(FIRST, SECOND, THIRD)


def texts(base: PackedTranscript) -> list[str]:
    return [segment.text.strip() for segment in segments_of(base)]


def retexted(base: PackedTranscript, *texts: str | None) -> PackedTranscript:
    """The base with other texts; None removes a segment."""
    edits = [
        SegmentEdit(segment.start // 16, segment.end // 16, text, segment.id, segment.speaker)
        for segment, text in zip(segments_of(base), texts, strict=True)
        if text is not None
    ]
    correction, _ = apply_edits(base, edits)
    assert correction is not None
    return correction.transcript


def test_new_text_is_filled_in_between_corrections() -> None:
    base = retexted(ORIGINAL, "I see the dog", "The cat sits", "It sleeps")
    new = transcript(spoken(1, 5, "I see a log the hat sat down"), spoken(6, 8, "It slept"))
    assert texts(again(base, ORIGINAL, new)) == ["I see a log", "The cat sits", "It slept"]
    assert texts(again(base, ORIGINAL, new, keep=False)) == ["I see a log the hat sat down", "It slept"]


def test_a_segment_that_is_in_the_part_in_part_stays() -> None:
    new = transcript(spoken(2, 5, "dog a hat sat"))
    after = again(ORIGINAL, ORIGINAL, new, (samples(2), samples(5)))
    assert texts(after) == ["I see the dog", "a hat sat", "It sleeps"]


def test_where_it_fails_again_the_text_stays() -> None:
    failed = ((samples(3), samples(5)),)
    new = transcript(spoken(1, 3, "I see a log"), spoken(6, 8, "It slept"), failed_spans=failed)
    assert texts(again(ORIGINAL, ORIGINAL, new)) == ["I see a log", "The cat sat down", "It slept"]
    gap = packed(FIRST, THIRD, failed_spans=failed)
    repaired = again(gap, gap, transcript(SECOND), failed[0])
    assert texts(repaired) == ["I see the dog", "The cat sat down", "It sleeps"]
    assert unpack_transcript(repaired.content).failed_spans == ()


def test_the_same_text_is_no_revision() -> None:
    assert again(ORIGINAL, ORIGINAL, transcript(FIRST, SECOND, THIRD)) is ORIGINAL


def named(segment: Segment, speaker: str) -> EditedSegment:
    [made] = identified(transcript(segment))
    return replace(made, id=f"{segment.start}-{speaker}", speaker=speaker)


def speakers(base: PackedTranscript) -> list[str | None]:
    return [segment.speaker for segment in segments_of(base)]


def test_speakers_keep_the_names_of_those_who_spoke_at_that_time() -> None:
    base = packed(named(FIRST, "Anna"), named(SECOND, "S2"), named(THIRD, "Anna"))
    new = transcript(*(named(part, who) for part, who in ((FIRST, "S2"), (SECOND, "S1"), (THIRD, "S3"))))
    assert speakers(again(base, base, new)) == ["Anna", "S2", "S3"]
    part = transcript(named(spoken(3, 5, "The hat sat down"), "S1"))
    assert speakers(again(base, base, part, (samples(3), samples(5)))) == ["Anna", "S2", "Anna"]


def test_a_marked_segment_stays_as_people_left_it() -> None:
    base = packed(spoken(1, 3, "One two three"), spoken(5, 8, "Four five six"))
    first, second = edits_of(segments_of(base))
    marked, _ = apply_edits(base, [replace(first, marks=((4, "break"),)), second])
    assert marked is not None
    new = transcript(*with_ids([spoken(1, 3, "Uno dos tres"), spoken(5, 8, "Cuatro cinco")], CLIPS))
    merged = segments_of(again(marked.transcript, base, new))
    assert [(part.text, part.marks) for part in merged] == [
        (" One two three", ((3, "break"),)),
        (" Cuatro cinco", ()),
    ]


def test_a_turn_that_becomes_a_segment_counts_its_own_letters() -> None:
    base = packed(spoken(1, 3, "One two three"))
    (said,) = with_ids([spoken(1, 3, "Uno dos tres")], CLIPS)
    new = transcript(replace(said, speaker="A", turns=((2, "B"),)))
    merged = segments_of(again(base, base, new))
    assert [(part.text, part.letters_before) for part in merged] == [(" Uno dos", 0), (" tres", 0)]


def test_who_is_named_while_somebody_speaks_has_that_name_at_the_end() -> None:
    """The corrected words get the speaker of their time, unless somebody has chosen one."""
    live = transcript(*with_ids([spoken(0, 4, " Helo there"), spoken(5, 9, " Bye")], CLIPS), touched=())
    named = SegmentEdit(5000, 9000, " Bye", live.segments[1].id, "Ann")
    edits = [SegmentEdit(0, 4000, "Hello there", live.segments[0].id), named]
    correction, _ = apply_edits(PackedTranscript(7, pack_transcript(live)), edits)
    final = [spoken(0, 4, " Hallo there"), spoken(5, 9, " Bye"), spoken(10, 14, " Oh"), spoken(15, 19, " So")]
    speakers = ("S1", "S2", "S1", "S2")
    of_final = zip(with_ids(final, CLIPS), speakers, strict=True)
    original = packed(*(replace(segment, speaker=speaker) for segment, speaker in of_final))
    kept = keep_corrected(correction.transcript.content, original.content)
    said = [(each.text.strip(), each.speaker) for each in segments_of(kept.transcript)]
    assert said == [("Hello there", "S1"), ("Bye", "Ann"), ("Oh", "S1"), ("So", "Ann")]
    assert kept.transcript.revision == 1
    assert segments_of(kept.transcript)[2] == segments_of(original)[2]
