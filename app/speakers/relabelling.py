"""Finds the speakers of a transcript again, with what people know of them."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from app.speakers.alternation import SpeakerCount
from app.speakers.clustering import find_speakers
from app.speakers.known_speakers import Group, groups_of
from app.speakers.naming import new_names
from app.speakers.splitting import with_turns
from app.speakers.voices import unpack_all
from app.speakers.windows import window_parts
from app.speakers.word_labels import label_words
from app.transcript.edited import EditedSegment


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
    windows = _windows(parts, segments, groups)
    heard = [index for index, of_group in enumerate(windows) if of_group]
    places = {group: place for place, group in enumerate(heard)}
    clusters = find_speakers(
        spoken,
        count,
        [windows[group] for group in heard],
        [(places[one], places[other]) for one, other in apart if one in places and other in places],
    )
    labels = label_words(segments, parts, clusters)
    of_groups = {group: int(clusters[windows[group][0]]) for group in heard}
    _place_unheard(of_groups, groups, apart, labels)
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
    parts: npt.NDArray[np.int64], segments: Sequence[EditedSegment], groups: Sequence[Group]
) -> list[list[int]]:
    """The windows of each group: those with more than half of their part in one of its segments."""
    starts, ends = parts[:, 0].tolist(), parts[:, 1].tolist()
    taken: set[int] = set()
    windows: list[list[int]] = []
    for group in groups:
        windows.append([])
        for segment in (segments[number] for number in group.segments):
            for window in range(bisect_right(ends, segment.start), bisect_left(starts, segment.end)):
                inside = min(ends[window], segment.end) - max(starts[window], segment.start)
                if window not in taken and 2 * inside > ends[window] - starts[window]:
                    windows[-1].append(window)
                    taken.add(window)
    return windows


def _place_unheard(
    of_groups: dict[int, int],
    groups: Sequence[Group],
    apart: Sequence[tuple[int, int]],
    labels: Sequence[Sequence[int]],
) -> None:
    """Add the label of each group without a window: that of its words, if that is no other group's."""
    unused = 1 + max(label for of_words in labels for label in of_words)
    for index, group in enumerate(groups):
        if index in of_groups:
            continue
        others = {one + other - index for one, other in apart if index in (one, other)}
        excluded = {of_groups[other] for other in others if other in of_groups}
        likely = Counter(label for number in group.segments for label in labels[number]).most_common()
        of_groups[index] = next((label for label, _ in likely if label not in excluded), unused)
        unused += of_groups[index] == unused
