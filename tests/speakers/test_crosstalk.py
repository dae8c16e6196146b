"""Words that are heard on several channels count once, and no other word is lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recording.channels import SoundLevels
from app.transcript.edited import EditedSegment, with_ids
from app.transcript.speakers.crosstalk import SAME_WORD_DB, TOLERANCE, without_crosstalk
from workers.messages import SAMPLE_RATE, Segment, Word

WORD = SAMPLE_RATE // 4  # samples
QUIET = -70.0  # dB

Spoken = tuple[str, float, float]  # a word, when it starts (s), and its level (dB)


@dataclass
class Levels:
    """The sound of words at their levels, with crosstalk from other channels."""

    sounds: Sequence[tuple[int, int, float]]

    def level(self, start: int, end: int) -> float:
        levels = [level for first, last, level in self.sounds if first < end and last > start]
        return max(levels, default=QUIET)


def segment(*words: Spoken) -> Segment:
    timed = tuple(
        Word(f" {text}", round(start * SAMPLE_RATE), round(start * SAMPLE_RATE) + WORD, 0.9)
        for text, start, _ in words
    )
    text = "".join(word.text for word in timed)
    return Segment(timed[0].start, timed[-1].end, text, (1, 2), 0, -0.1, 1, 0, timed)


def identified(segments: Sequence[Segment], channel: int) -> list[EditedSegment]:
    return list(with_ids(segments, [(0, 30 * SAMPLE_RATE)], channel))


def levels(*words: Spoken) -> Levels:
    return Levels(
        [(round(start * SAMPLE_RATE), round(start * SAMPLE_RATE) + WORD, level) for _, start, level in words]
    )


def texts(segments: Sequence[EditedSegment]) -> list[str]:
    return [segment.text.strip() for segment in segments]


def heard(*channels: list[list[Spoken]]) -> list[list[str]]:
    """What stays on each channel, of segments of words with their levels there."""
    kept = without_crosstalk(
        [
            identified([segment(*words) for words in channel], number)
            for number, channel in enumerate(channels)
        ],
        [levels(*(word for words in channel for word in words)) for channel in channels],
    )
    return [texts(segments) for segments in kept]


def test_the_same_words_much_quieter_are_crosstalk() -> None:
    said: list[Spoken] = [("how", 1, -20), ("are", 1.3, -22), ("you", 1.6, -18)]
    leaked: list[Spoken] = [("How", 1.05, -32), ("ares", 1.3, -34), ("you?", 1.7, -30)]
    assert heard([said], [leaked]) == [["how are you"], []]
    assert heard([leaked], [said], [leaked]) == [[], ["how are you"], []]


def test_the_same_words_as_loud_are_said_by_both() -> None:
    first: list[Spoken] = [("good", 1, -20), ("morning", 1.3, -20)]
    second: list[Spoken] = [("good", 1.1, -24), ("morning", 1.4, -23)]
    assert heard([first], [second]) == [["good morning"], ["good morning"]]


def test_the_same_word_just_after_is_an_answer() -> None:
    assert heard([[("yes", 1, -20)]], [[("yes", 1.28, -30)]]) == [["yes"], ["yes"]]


def test_crosstalk_divides_a_segment() -> None:
    other: list[Spoken] = [("what", 2, -20), ("about", 2.3, -20), ("monday", 2.6, -20)]
    own: list[Spoken] = [("well", 1.6, -20), ("what", 2, -35), ("about", 2.3, -35), ("fine", 3.2, -20)]
    [kept], _ = (
        [part]
        for part in without_crosstalk(
            [identified([segment(*own)], 0), identified([segment(*other)], 1)],
            [levels(*own), levels(*other)],
        )
    )
    assert [(part.id, part.text, part.tokens) for part in kept] == [
        ("0-0", " well", ()),
        ("0-0.1", " fine", ()),
    ]
    assert [part.start / SAMPLE_RATE for part in kept] == [1.6, 3.2]
    for part in kept:
        assert part.text == "".join(word.text for word in part.words)


def test_what_is_as_much_quieter_as_other_crosstalk_is_crosstalk() -> None:
    """Recognition finds other words in a voice that is hardly heard."""
    said: list[list[Spoken]] = [[("one", 1, -20), ("two", 2, -20), ("three", 3, -20), ("elephant", 4, -20)]]
    own: list[Spoken] = [("mine", 8, -20)]
    leaked: list[Spoken] = [("one", 1, -40), ("two", 2, -40), ("three", 3, -40), ("envelope", 4, -39)]
    assert heard(said, [leaked, own]) == [["one two three elephant"], ["mine"]]
    # It is louder than the crosstalk, so somebody says it.
    leaked[-1] = ("mhm", 4, -30)
    assert heard(said, [leaked, own]) == [["one two three elephant"], ["mhm", "mine"]]


def test_a_segment_without_words_counts_as_a_word() -> None:
    bare = Segment(SAMPLE_RATE, 2 * SAMPLE_RATE, " Hello there.", (), 0, 0, 1, 0)
    loud, quiet = (Levels([(SAMPLE_RATE, 2 * SAMPLE_RATE, level)]) for level in (-20, -40))
    kept = without_crosstalk([identified([bare], 0), identified([bare], 1)], [loud, quiet])
    assert list(map(len, kept)) == [1, 0]


@st.composite
def channels(draw: st.DrawFn, quietest: float = -50) -> list[list[list[Spoken]]]:
    """Segments of each channel, in order: words from the end of the one before to 2 s after it."""
    made: list[list[list[Spoken]]] = []
    for _ in range(draw(st.integers(1, 3))):
        time, channel = draw(st.floats(0, 3)), []
        for _ in range(draw(st.integers(0, 4))):
            words: list[Spoken] = []
            for _ in range(draw(st.integers(1, 4))):
                words.append(
                    (draw(st.sampled_from(["yes", "no", "tomorrow"])), time, draw(st.floats(quietest, -10)))
                )
                time += 0.25 + draw(st.floats(0, 2))
            channel.append(words)
        made.append(channel)
    return made


@given(channels())
def test_no_word_is_lost_that_is_on_one_channel_only(made: list[list[list[Spoken]]]) -> None:
    segments = [identified([segment(*words) for words in part], number) for number, part in enumerate(made)]
    sound = [levels(*(word for words in part for word in words)) for part in made]
    kept = without_crosstalk(segments, sound)
    for number, (before, after) in enumerate(zip(segments, kept, strict=True)):
        words = [word for each in before for word in each.words]
        left = [word for each in after for word in each.words]
        assert [word for word in words if word in left] == left, "words stay in order, with their times"
        others = [each for other, part in enumerate(segments) if other != number for each in part]
        for word in set(words) - set(left):
            near = [
                (other, sound_of)
                for other, sound_of in zip(segments, sound, strict=True)
                if other is not before
                and any(
                    each.start < word.end + TOLERANCE and each.end > word.start - TOLERANCE
                    for part in other
                    for each in part.words
                )
            ]
            assert near, "nobody else speaks"
            own_level = sound[number].level(word.start, word.end)
            louder = max(other.level(word.start, word.end) for _, other in near) - own_level
            usual = max(sound[number].level(each.start, each.end) for each in words)
            assert louder >= SAME_WORD_DB or own_level < usual, "it is not quieter than anything"
        assert len(others) or list(after) == list(before)
        for one, two in pairwise(after):
            assert one.start < one.end <= two.start
        assert len({each.id for each in after}) == len(after)


@given(channels(quietest=-28))  # so that nothing is inaudible
def test_one_of_two_equal_words_stays(made: list[list[list[Spoken]]]) -> None:
    """A channel and its crosstalk, at any level: all that is said is there once or twice."""
    if not made[0]:
        return
    said = made[0]
    for gap in (3.0, 12.0, 40.0):
        leaked = [[(text, start, level - gap) for text, start, level in words] for words in said]
        first, second = heard(said, leaked)
        assert " ".join(first) == " ".join(text for words in said for text, _, _ in words)
        assert gap < SAME_WORD_DB or not second


@pytest.mark.parametrize("seconds", [0.05, 3, 130])
def test_levels_are_those_of_the_samples(tmp_path: Path, seconds: float) -> None:
    random = np.random.default_rng(1)
    pcm = (random.normal(size=round(seconds * SAMPLE_RATE)) * 1000).astype("<i2")
    pcm[: len(pcm) // 2] //= 10
    path = tmp_path / "pcm"
    path.write_bytes(pcm.tobytes())
    found = SoundLevels(path)
    for start, end in ((0, len(pcm) // 320 * 160), (len(pcm) // 320 * 160, len(pcm) // 160 * 160)):
        energy = np.mean(np.square(pcm[start:end].astype(float)))
        assert found.level(start, end) == pytest.approx(10 * np.log10(energy))
    assert found.level(len(pcm) + 1000, len(pcm) + 2000) < QUIET
