"""Finds the speakers of a transcript again, with what people know of them."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.transcript.edited import EditedSegment
from app.transcript.speakers.clustering import SpeakerCount, find_speakers
from app.transcript.speakers.constraints import Group, groups_of
from app.transcript.speakers.naming import new_names
from app.transcript.speakers.splitting import listed_speakers, with_turns
from app.transcript.speakers.voices import Voices, unpack_all, window_parts
from app.transcript.speakers.word_labels import label_words
from workers.messages import Segment, Span

_MUCH = 0.3  # of all that a speaker says


@dataclass(frozen=True, slots=True)
class SpeakerCorrection:
    """What to change about the speakers of a transcript. `same` and `different` as in `relabelled`."""

    count: SpeakerCount | None = None
    same: tuple[tuple[str, ...], ...] = ()
    different: tuple[tuple[str, ...], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # of the speakers, once they are found: by label

    @property
    def needs_voices(self) -> bool:
        """Whether voices are compared anew: not to rename speakers."""
        return self.count is not None or bool(self.same or self.different)


def relabelled(
    segments: Sequence[EditedSegment],
    voices: Sequence[bytes],
    count: SpeakerCount,
    same: Sequence[Sequence[str]] = (),
    different: Sequence[Sequence[str]] = (),
) -> tuple[EditedSegment, ...]:
    """The segments with new speakers. Ids, texts and times stay, and so do speakers set by hand.

    `same`: ids of segments of one speaker each; `different`: ids of segments of which each has another
    speaker. The speakers of all these count as set by hand from now on. Raises InvalidInput for an id that is
    not there, and for what contradicts itself or the speakers set by hand.
    """
    groups, apart = groups_of(segments, same, different, count.most)
    spoken = unpack_all(voices)
    if not spoken.windows:
        return tuple(segments)
    parts = window_parts(spoken.windows)
    windows = _windows(spoken, segments, groups)
    with_windows = [index for index, of_group in enumerate(windows) if of_group]
    places = {group: place for place, group in enumerate(with_windows)}
    clusters = find_speakers(
        spoken,
        count,
        [windows[group] for group in with_windows],
        [(places[one], places[other]) for one, other in apart if one in places and other in places],
    )
    labels = label_words(segments, parts, clusters)
    of_groups = {group: int(clusters[windows[group][0][0]]) for group in with_windows}
    _place_without_windows(of_groups, groups, apart, segments, labels)
    by_hand = {number for group in groups for number in group.segments}
    for index, group in enumerate(groups):
        for number in group.segments:
            labels[number] = [of_groups[index]] * len(labels[number])
    fixed = {of_groups[index]: group.speaker for index, group in enumerate(groups) if group.speaker}
    names = new_names(segments, labels, fixed)
    return tuple(
        segment
        if segment.speaker_by_hand and segment.speaker is None
        else replace(
            with_turns(segment, [names[label] for label in of_words]),
            speaker_by_hand=segment.speaker_by_hand or number in by_hand,
        )
        for number, (segment, of_words) in enumerate(zip(segments, labels, strict=True))
    )


def _windows(
    voices: Voices, segments: Sequence[EditedSegment], groups: Sequence[Group]
) -> list[list[list[int]]]:
    """The windows of each group, in parts that sound alike.

    Someone may have corrected the speaker of a segment that sounds like another speaker. Its windows count
    for its group only if the request names it, or if much of what that speaker says sounds like it: otherwise
    the group would take all that the other one says.
    """
    if not groups:
        return []
    sounds = find_speakers(voices, SpeakerCount()).tolist()
    spans = window_parts(voices.windows).tolist()
    holding = holders(spans, segments)
    speech: Counter[str | None] = Counter()
    alike: Counter[tuple[str | None, int]] = Counter()
    for (start, end), holder, sound in zip(spans, holding, sounds, strict=True):
        speaker = None if holder is None else segments[holder].speaker
        speech[speaker] += end - start
        alike[speaker, sound] += end - start
    group_of = {number: index for index, group in enumerate(groups) for number in group.segments}
    found: list[dict[int, list[int]]] = [{} for _ in groups]
    listed: set[tuple[int, int]] = set()
    for window, (holder, sound) in enumerate(zip(holding, sounds, strict=True)):
        if holder in group_of:
            group = group_of[holder]
            found[group].setdefault(sound, []).append(window)
            if holder in groups[group].listed:
                listed.add((group, sound))
    return [
        [
            windows
            for sound, windows in of_sounds.items()
            if (index, sound) in listed or alike[group.speaker, sound] >= _MUCH * speech[group.speaker]
        ]
        for index, (group, of_sounds) in enumerate(zip(groups, found, strict=True))
    ]


def holders(parts: Sequence[Span], segments: Sequence[Segment]) -> list[int | None]:
    """The segment (its number) that has more than half of each part of the speech. None: there is none."""
    starts, ends = [start for start, _ in parts], [end for _, end in parts]
    found: list[int | None] = [None] * len(parts)
    for number, segment in enumerate(segments):
        for part in range(bisect_right(ends, segment.start), bisect_left(starts, segment.end)):
            inside = min(ends[part], segment.end) - max(starts[part], segment.start)
            if 2 * inside > ends[part] - starts[part]:
                found[part] = number
    return found


def _place_without_windows(
    of_groups: dict[int, int],
    groups: Sequence[Group],
    apart: Sequence[tuple[int, int]],
    segments: Sequence[EditedSegment],
    labels: Sequence[Sequence[int]],
) -> None:
    """Add the label of each group without a window, if there is one that is no other group's: else a new one.

    For a group with a name, that is a label most of which had this name before. For another one, that of most
    of its words.
    """
    before: dict[int, Counter[str | None]] = {}
    for segment, of_words in zip(segments, labels, strict=True):
        for speaker, label in zip(listed_speakers(segment), of_words, strict=True):
            before.setdefault(label, Counter())[speaker] += 1
    unused = 1 + max(before)
    for index, group in enumerate(groups):
        if index in of_groups:
            continue
        others = {one + other - index for one, other in apart if index in (one, other)}
        excluded = {of_groups[other] for other in others if other in of_groups}
        if group.speaker is None:
            likely = Counter(label for number in group.segments for label in labels[number])
        else:
            likely = Counter({label: count[group.speaker] for label, count in before.items()})
            excluded |= {
                label for label, count in before.items() if count.most_common(1)[0][0] != group.speaker
            }
        of_groups[index] = next((label for label, _ in likely.most_common() if label not in excluded), unused)
        unused += of_groups[index] == unused
