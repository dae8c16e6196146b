"""Who speaks each word: labels of windows become labels of words. Pure."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import inf

import numpy as np
import numpy.typing as npt

from app.transcript.text.scripts import may_break_between
from workers.messages import SAMPLE_RATE, Segment, Span, Word

_REACH = 3 * SAMPLE_RATE // 5  # samples: how far a change of speaker may be from where the windows show it
_SENTENCE_BONUS = SAMPLE_RATE // 2  # samples of pause that the end of a sentence is worth
_PAUSE = SAMPLE_RATE // 5  # samples: a shorter pause does not set a word apart
_LONG = 3 * SAMPLE_RATE // 4  # samples: a word of this length has a window of its own
_SENTENCE_ENDS = (".", "?", "!", "…", "。", "？", "！", "؟", "।")


@dataclass(frozen=True, slots=True)
class Turn:
    """A span of speech with one label. Times in samples."""

    start: int
    end: int
    label: int


def label_words(
    segments: Sequence[Segment], parts: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]
) -> list[list[int]]:
    """The label of each word of each segment; of a segment without words, the one label of all its time.

    `parts`: of speech, in order, shape (n, 2); `labels`: of each, at least one. Changes of the label move to
    the longest pause between words near them: speakers seldom change within a word or a sentence.
    """
    turns = _turns(parts.tolist(), labels.tolist())
    turns = _moved_to_pauses(turns, _pauses(segments))
    starts, ends = [turn.start for turn in turns], [turn.end for turn in turns]

    def label(start: int, end: int) -> int:
        shares: Counter[int] = Counter()
        first = bisect_right(ends, start)
        for turn in turns[first : bisect_left(starts, end, lo=first)]:
            shares[turn.label] += min(turn.end, end) - max(turn.start, start)
        if shares:
            return max(shares, key=lambda label: shares[label])
        near = turns[max(first - 1, 0) : first + 1]
        return min(near, key=lambda turn: max(turn.start - end, start - turn.end)).label

    return [
        _steady(segment.words, [label(word.start, word.end) for word in segment.words])
        or [label(segment.start, segment.end)]
        for segment in segments
    ]


def _turns(parts: Sequence[Span], labels: Sequence[int]) -> list[Turn]:
    """Parts that touch and have one label, as one."""
    turns: list[Turn] = []
    for (start, end), label in zip(parts, labels, strict=True):
        if turns and turns[-1].label == label and turns[-1].end == start:
            start = turns.pop().start
        turns.append(Turn(start, end, label))
    return turns


def _pauses(segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """Where the speaker may change, in order: the middle of each pause between words, and its weight."""
    ends = sorted(
        (word.start, word.end, word is words[-1] or _ends_sentence(word))
        for segment in segments
        for words in (segment.words or (Word("", segment.start, segment.end, 1.0),),)
        for word in words
    )
    return sorted(
        ((end + start) // 2, max(start - end, 0) + (_SENTENCE_BONUS if is_last else 0))
        for (_, end, is_last), (start, _, _) in pairwise(ends)
    )


def _ends_sentence(word: Word) -> bool:
    return word.text.rstrip("\"'”’»）)] ").endswith(_SENTENCE_ENDS)


def _moved_to_pauses(turns: Sequence[Turn], pauses: Sequence[tuple[int, int]]) -> list[Turn]:
    """The turns, after changes of speaker inside speech have moved to the best pauses near them."""
    times = [time for time, _ in pauses]
    moved = list(turns)
    for index in range(1, len(moved)):
        before, after = moved[index - 1], moved[index]
        if before.end != after.start:
            continue
        cut = after.start
        # Later changes have not moved yet: half of the next turn stays theirs.
        earliest, latest = before.start + 1, (after.start + after.end) // 2
        first = bisect_left(times, max(cut - _REACH, earliest))
        near = pauses[first : bisect_right(times, min(cut + _REACH, latest))]
        if near:
            cut = max(near, key=lambda pause: pause[1] - abs(pause[0] - cut) // 2)[0]
            moved[index - 1] = Turn(before.start, cut, before.label)
            moved[index] = Turn(cut, after.end, after.label)
    return moved


def _steady(words: Sequence[Word], labels: list[int]) -> list[int]:
    """The labels, without single short words of another label inside a sentence. One after a pause stays.

    What the model spells as several words without a space between them, such as "o" and "'clock", has one:
    that of the longest.
    """
    if len(words) < 2:
        return labels
    whole = (not _is_torn(word.text, following.text) for word, following in pairwise(words))
    for first, end in runs(list(accumulate(whole, initial=0))):
        longest = max(range(first, end), key=lambda place: words[place].end - words[place].start)
        labels[first:end] = [labels[longest]] * (end - first)
    for first, end in list(runs(labels)):
        before = first > 0 and _attached(words[first - 1], words[first])
        after = end < len(words) and _attached(words[end - 1], words[end])
        length = words[end - 1].end - words[first].start
        is_brief = length < _LONG if end - first == 1 else length <= 0
        if not is_brief or not (before or after):
            continue
        gap_before = words[first].start - words[first - 1].end if before else inf
        gap_after = words[end].start - words[end - 1].end if after else inf
        labels[first:end] = [labels[first - 1] if gap_before <= gap_after else labels[end]] * (end - first)
    return labels


def _is_torn(text: str, following: str) -> bool:
    """Whether two words are parts of one: no space is between them, and text may not break there."""
    before, after = text[-1:].strip(), following[:1].strip()
    return bool(before and after) and not may_break_between(before, after)


def _attached(word: Word, following: Word) -> bool:
    """Whether nothing between the words says that the speaker changes there."""
    takes_time = word.start < word.end and following.start < following.end
    return not takes_time or (following.start - word.end < _PAUSE and not _ends_sentence(word))


def runs(labels: Sequence[object]) -> Iterator[Span]:
    """The spans of equal labels that follow each other: first index, and index after the last."""
    first = 0
    for _, run in groupby(labels):
        end = first + sum(1 for _ in run)
        yield first, end
        first = end
