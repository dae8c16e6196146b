"""What people know of the speakers: groups of segments of one speaker, and which groups differ."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise

from app.common.errors import InvalidInput
from app.transcript.edited import EditedSegment
from app.transcript.speakers.linkage import root

_MOST_GROUPS = 500  # of segments: any two may differ


@dataclass(frozen=True, slots=True)
class Group:
    """Segments of one speaker: their numbers, in order."""

    segments: tuple[int, ...]
    speaker: str | None  # set by hand
    listed: frozenset[int]  # of the segments, those that the request names


def groups_of(
    segments: Sequence[EditedSegment],
    same: Sequence[Sequence[str]],
    different: Sequence[Sequence[str]],
    most: int | None,
) -> tuple[list[Group], list[tuple[int, int]]]:
    """The groups, by their first segments, and the pairs of them (numbers) with different speakers.

    `same` and `different`: ids, as `relabelled` takes them. Segments with one speaker set by hand are a
    group, and differ from those with another one, unless `same` joins them: then the speaker who says more is
    that of all. `most`: speakers. Raises InvalidInput if this cannot be.
    """
    numbers = {segment.id: number for number, segment in enumerate(segments)}
    joined = [[_number(numbers, id_, "same") for id_ in ids] for ids in same]
    distinct = [[_number(numbers, id_, "different") for id_ in ids] for ids in different]
    by_hand: dict[str, list[int]] = defaultdict(list)
    for number, segment in enumerate(segments):
        if segment.speaker_by_hand and segment.speaker is not None:
            by_hand[segment.speaker].append(number)

    parents = list(range(len(segments)))
    for members in [*joined, *by_hand.values()]:
        for one, other in pairwise(members):
            first, second = sorted((root(parents, one), root(parents, other)))
            parents[second] = first
    members_of: dict[int, list[int]] = defaultdict(list)
    for number in sorted({*chain(*joined, *distinct, *by_hand.values())}):
        members_of[root(parents, number)].append(number)
    listed = frozenset(chain(*joined, *distinct))
    groups = [
        Group(tuple(members), _speaker(segments, members), listed.intersection(members))
        for members in members_of.values()
    ]
    if len(groups) > _MOST_GROUPS:
        raise InvalidInput(
            f"There are {len(groups)} groups of segments with a known speaker, and may be {_MOST_GROUPS}. "
            "Name fewer segments, or join groups of one speaker.",
            param="same" if same else "different",
        )
    group_of = {number: index for index, group in enumerate(groups) for number in group.segments}
    _check_differences(segments, distinct, group_of)
    named = [index for index, group in enumerate(groups) if group.speaker is not None]
    sets = [sorted({group_of[number] for number in members}) for members in distinct] + [named]
    _check_count(sets, groups, most)
    return groups, sorted({pair for members in sets for pair in combinations(members, 2)})


def _number(numbers: dict[str, int], id_: str, param: str) -> int:
    if id_ not in numbers:
        raise InvalidInput(
            f"No segment has the id {id_!r}. Load the segments again and use their ids.", param=param
        )
    return numbers[id_]


def _speaker(segments: Sequence[EditedSegment], members: Iterable[int]) -> str | None:
    """Of the speakers set by hand, the one who says most."""
    speech: dict[str, int] = defaultdict(int)
    for number in members:
        segment = segments[number]
        if segment.speaker_by_hand and segment.speaker is not None:
            speech[segment.speaker] += segment.end - segment.start
    return max(speech, key=lambda speaker: speech[speaker], default=None)


def _check_differences(
    segments: Sequence[EditedSegment], distinct: Sequence[Sequence[int]], group_of: dict[int, int]
) -> None:
    for members in distinct:
        seen: dict[int, int] = {}
        for number in members:
            if group_of[number] in seen:
                raise _contradiction(segments[seen[group_of[number]]], segments[number])
            seen[group_of[number]] = number


def _contradiction(one: EditedSegment, other: EditedSegment) -> InvalidInput:
    """The error for two segments that are one speaker's and shall be two speakers'."""
    why, remedy = "they are joined to one speaker", "Leave them out of `same` or of `different`"
    if one.id == other.id:
        why, remedy = "they are one", "Name each segment once"
    elif one.speaker_by_hand and other.speaker_by_hand and one.speaker == other.speaker:
        why = f"someone chose {one.speaker!r} for both"
        remedy = "Give one of them another speaker in a correction"
    return InvalidInput(
        f"The segments {one.id!r} and {other.id!r} cannot have different speakers: {why}. {remedy}.",
        param="different",
    )


def _check_count(sets: Sequence[Sequence[int]], groups: Sequence[Group], most: int | None) -> None:
    """Raises InvalidInput if more speakers differ than may speak."""
    for members in sets:
        if most is not None and len(members) > most:
            named = [speaker for index in members if (speaker := groups[index].speaker) is not None]
            set_by_hand = f" ({', '.join(named)} are set by hand)" if named else ""
            raise InvalidInput(
                f"{len(members)} speakers are different{set_by_hand}, and {most} may speak. "
                "Allow more speakers, or join some.",
                param="different",
            )
