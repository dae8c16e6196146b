"""Each word has its speaker, and segments are split where the speaker changes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common.errors import InvalidInput
from app.transcript.edited import EditedSegment, word_speakers
from app.transcript.speakers.labelling import KnownSpeaker, SpeakerCount, renamed, with_speakers
from app.transcript.speakers.word_labels import label_words
from app.transcript.timeline import Transcript
from tests.speakers.conversation import Conversation, Line, conversation, segment_of, voice
from workers.messages import SAMPLE_RATE, Word

ANY = SpeakerCount()


def labelled(made: Conversation, count: SpeakerCount = ANY, names: Sequence[str] = ()) -> list[EditedSegment]:
    transcript = with_speakers(made.transcript, made.packed, count, names)
    return [segment for segment in transcript.segments if isinstance(segment, EditedSegment)]


def errors(made: Conversation, segments: Sequence[EditedSegment]) -> float:
    """The share of words whose speaker is wrong, where the labels are those that fit best in order."""
    found: dict[str, dict[str | None, int]] = {}
    for segment in segments:
        for word, speaker in zip(segment.words, word_speakers(segment), strict=True):
            counts = found.setdefault(made.speakers[word.text], {})
            counts[speaker] = counts.get(speaker, 0) + 1
    right = sum(max(counts.values()) for counts in found.values())
    return 1 - right / len(made.speakers)


def dialogue(*, joined: bool = False, pause_s: float = 0.5) -> Conversation:
    return conversation([Line("AB"[turn % 2], 9, pause_s, joined and turn % 2 == 1) for turn in range(20)])


def test_segments_of_two_speakers_are_split_between_them() -> None:
    made = dialogue(joined=True, pause_s=0.3)
    segments = labelled(made)
    assert errors(made, segments) == 0
    assert [segment.speaker for segment in segments] == ["S1", "S2"] * 10
    assert [segment.id for segment in segments[:4]] == ["0-0", "0-0.1", "0-1", "0-1.1"]
    assert all(len({made.speakers[word.text] for word in segment.words}) == 1 for segment in segments)
    assert not any(segment.turns or segment.speaker_by_hand for segment in segments)


def test_a_change_without_a_pause_is_at_the_end_of_a_sentence() -> None:
    made = dialogue(joined=True, pause_s=0)
    assert errors(made, labelled(made)) == 0


def test_a_short_answer_between_pauses_has_its_speaker() -> None:
    lines = [*(Line("AB"[turn % 2], 9) for turn in range(16)), Line("A", 9), Line("B", 3), Line("A", 9)]
    made = conversation(lines)
    assert errors(made, labelled(made)) == 0


def test_a_segment_does_not_span_a_long_pause_of_its_speaker() -> None:
    made = conversation([Line("A", 9), Line("A", 9, 1.5, joined=True), Line("A", 9, 0.5, joined=True)])
    first, rest = labelled(made)
    assert (len(first.words), len(rest.words)) == (9, 18)
    assert (first.id, rest.id, first.speaker, rest.speaker) == ("0-0", "0-0.1", "S1", "S1")
    assert first.end == first.words[-1].end
    assert rest.start == rest.words[0].start > first.end + SAMPLE_RATE


@settings(max_examples=30)
@given(
    st.lists(
        st.builds(
            Line,
            st.sampled_from("ABC"),
            st.integers(1, 9),
            st.sampled_from([0.0, 0.1, 0.4, 2.0]),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_texts_words_and_order_are_kept(lines: list[Line], with_words: bool) -> None:
    made = conversation([replace(lines[0], joined=False), *lines[1:]])
    transcript = made.transcript
    if not with_words:
        transcript = replace(transcript, segments=[replace(one, words=()) for one in transcript.segments])
    labels = with_speakers(transcript, made.packed, ANY)
    assert labels.text == transcript.text
    assert labels.words == transcript.words
    segments = [segment for segment in labels.segments if isinstance(segment, EditedSegment)]
    assert len({segment.id for segment in segments}) == len(segments)
    assert all(segment.speaker in ("S1", "S2", "S3") for segment in segments)
    edges = [edge for segment in segments for edge in (segment.start, segment.end)]
    assert edges == sorted(edges)
    assert all(segment.start < segment.end for segment in segments)
    whole = {segment.text: segment.tokens for segment in transcript.segments}
    assert all(segment.tokens == whole.get(segment.text, ()) for segment in segments)
    for segment in segments:
        assert "".join(word.text for word in segment.words) in ("", segment.text)
        assert all(segment.start <= word.start <= word.end <= segment.end for word in segment.words)
    assert labels == with_speakers(transcript, made.packed, ANY)


def test_a_single_word_inside_a_sentence_has_the_speaker_of_the_others() -> None:
    words = tuple(Word(f" w{at}", at * 8000, at * 8000 + 8000, 1.0) for at in range(6))
    parts = np.array([(0, 24_000), (24_000, 32_000), (32_000, 48_000)])
    labels = np.array([0, 1, 0])
    assert label_words([segment_of(words)], parts, labels) == [[0] * 6]
    apart = tuple(
        replace(
            word, start=word.start + 8000 * ((at > 2) + (at > 3)), end=word.end + 8000 * ((at > 2) + (at > 3))
        )
        for at, word in enumerate(words)
    )
    parts = np.array([(0, 24_000), (32_000, 40_000), (48_000, 64_000)])
    assert label_words([segment_of(apart)], parts, labels) == [[0, 0, 0, 1, 0, 0]]


def test_parts_of_a_word_have_one_speaker() -> None:
    """A model may spell "o'clock" as two words."""
    texts = (" seven", " o", "'clock", " yes", " it", " is")
    words = tuple(Word(text, at * 8000, at * 8000 + 8000, 1.0) for at, text in enumerate(texts))
    parts = np.array([(0, 16_000), (16_000, 48_000)])
    assert label_words([segment_of(words)], parts, np.array([0, 1])) == [[0, 0, 0, 1, 1, 1]]
    brief = tuple(
        Word(text, start, end, 1.0)
        for text, start, end in [(" nine", 0, 16_000), (" o", 16_000, 16_000), ("'clock", 16_000, 48_000)]
    )
    parts = np.array([(0, 16_000), (16_000, 48_000)])
    assert label_words([segment_of(brief)], parts, np.array([0, 1])) == [[0, 1, 1]]


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0.1, 0.5, 3]), st.sampled_from([0, 0.3, 1])), min_size=1, max_size=9
    ),
    st.lists(st.integers(0, 2), min_size=1, max_size=9),
)
def test_odd_times_of_words_fail_nothing(times: list[tuple[float, float]], speakers: list[int]) -> None:
    words, end = [], 0
    for pause_s, length_s in times:
        start = end + round(pause_s * SAMPLE_RATE)
        end = start + round(length_s * SAMPLE_RATE)
        words.append(Word(" word", start, end, 1.0))
    parts = [(number * SAMPLE_RATE, (number + 1) * SAMPLE_RATE) for number in range(len(speakers))]
    [labels] = label_words([segment_of(tuple(words))], np.array(parts), np.array(speakers))
    assert len(labels) == len(words)
    assert set(labels) <= set(speakers)


def test_a_word_without_length_follows_the_only_word_beside_it() -> None:
    def labels(*times: tuple[float, float]) -> list[int]:
        words = tuple(
            Word(" word.", round(start * SAMPLE_RATE), round(end * SAMPLE_RATE), 1.0) for start, end in times
        )
        parts = np.array([(0, SAMPLE_RATE), (5 * SAMPLE_RATE, 6 * SAMPLE_RATE)])
        return label_words([segment_of(words)], parts, np.array([0, 1]))[0]

    assert labels((0.2, 0.5), (0.6, 1), (6, 6)) == [0, 0, 0]
    assert labels((0, 0), (5.2, 5.5), (5.6, 6)) == [1, 1, 1]


def test_a_text_that_is_not_that_of_its_words_is_not_split() -> None:
    made = dialogue(joined=True)
    changed = [replace(segment, text="Something else.") for segment in made.transcript.segments]
    transcript = with_speakers(replace(made.transcript, segments=changed), made.packed, ANY)
    assert [segment.text for segment in transcript.segments] == ["Something else."] * 10
    segments = [segment for segment in transcript.segments if isinstance(segment, EditedSegment)]
    assert segments[0].turns == ((9, "S2"),)


def test_without_voices_no_speaker_is_known() -> None:
    made = dialogue()
    transcript = with_speakers(made.transcript, [], ANY)
    assert [segment.text for segment in transcript.segments] == [s.text for s in made.transcript.segments]
    assert {segment.speaker for segment in transcript.segments if isinstance(segment, EditedSegment)} == {
        None
    }
    empty = Transcript("transcribe", "demo", "en", SAMPLE_RATE, (), ())
    assert with_speakers(empty, made.packed, ANY).segments == ()


def test_names_are_for_speakers_in_order_and_known_voices_keep_theirs() -> None:
    made = conversation([Line(speaker, 8) for speaker in "ABCD" * 5])
    named = labelled(made, names=("Ann", "Bob"))
    assert [segment.speaker for segment in named[:4]] == ["Ann", "Bob", "S1", "S2"]
    known = [
        KnownSpeaker("Cem", voice("C"), "model"),
        KnownSpeaker("Zoe", voice("Z"), "model"),
        KnownSpeaker("Bob", voice("A"), "model"),
    ]
    transcript = with_speakers(made.transcript, made.packed, ANY, ("Ann", "Bob"), known)
    speakers = [segment.speaker for segment in transcript.segments if isinstance(segment, EditedSegment)]
    assert speakers == ["Bob", "Ann", "Cem", "S1"] * 5


def test_renaming_reaches_turns_and_joins_speakers_of_one_name() -> None:
    made = dialogue()
    segments = labelled(made)
    segments[0] = replace(segments[0], turns=((3, "S2"), (5, "S1")))
    swapped = renamed(segments, {"S1": "S2", "S2": "S1"})
    assert word_speakers(swapped[0]) == ["S2"] * 3 + ["S1"] * 2 + ["S2"] * 4
    ann = renamed(segments, {"S1": "Ann"})
    assert ann[0].turns == ((3, "S2"), (5, "Ann"))
    assert [segment.speaker for segment in ann] == ["Ann", "S2"] * 10
    one = renamed(ann, {"S2": "Ann"})
    assert {(segment.speaker, segment.turns) for segment in one} == {("Ann", ())}
    assert [segment.text for segment in one] == [segment.text for segment in segments]
    with pytest.raises(InvalidInput, match=r"No segment has the speaker 'S7'\. The speakers are Ann, S2\."):
        renamed(ann, {"S7": "Bob"})
    with pytest.raises(InvalidInput, match="No speaker is known"):
        renamed([EditedSegment(0, 1, "a", (), 0, 0, 0, 0)], {"S1": "Bob"})
