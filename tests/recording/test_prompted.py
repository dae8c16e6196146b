"""What a prompt does to windows, and how decoding a clip mends it."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.recording.audio_context import text_of
from app.recording.prompted import at_sentence_ends
from tests.recording.test_clip_decoding import (
    clip_of,
    decode,
    evenly,
    samples,
    script,
    segment,
    span_of,
    spoken,
    texts,
    window_result,
)
from workers.messages import Segment, WindowResult, Word

SENTENCES = "She has left the room. He is still here with all of them. Nobody else has come. "


def unclosed(text: Segment) -> WindowResult:
    """The only text of a window, without a closing timestamp."""
    return window_result(tail=replace(text, end=samples(10)))


ALL = unclosed(evenly(SENTENCES, 0, 9))
STOPPED = unclosed(evenly(SENTENCES[:22], 0, 2.5))
CLIP = clip_of(10, (0, 9.5), prompt="She has left the room.", hotwords="Anna")


@pytest.mark.parametrize(
    "left_out",
    [
        STOPPED,
        unclosed(evenly("Nobody else has come.", 0, 9)),  # attention spreads it over all of the speech
        unclosed(segment(0, 10, "She has left the room.")),  # without word times
        window_result(),
        window_result(evenly("She has left.", 0, 9.5)),  # more than a third, with a closing timestamp
        unclosed(  # in the middle
            spoken(("She", 0, 0.3), ("has", 0.3, 0.6), ("left.", 0.6, 5), ("Nobody", 5, 6), ("has.", 6, 9.5))
        ),
    ],
)
def test_a_window_that_leaves_out_speech_is_decoded_without_the_prompt(left_out: WindowResult) -> None:
    result, windows = decode(CLIP, script(left_out, replace(ALL, language_probs=())))
    assert [span_of(window) for window in windows] == [(0, 10), (0, 10)]
    assert [(w.decoding.prompt, w.decoding.hotwords) for w in windows] == [
        ("She has left the room.", "Anna"),
        (None, None),
    ]
    assert windows[1].continues
    assert "".join(s.text for s in result.segments) == text_of(ALL)
    assert result.language_probs == left_out.language_probs  # as of any clip, for the vote


@pytest.mark.parametrize(
    "full",
    [
        ALL,
        unclosed(evenly("Slowly speaking people pronounce everything, every syllable, again.", 0, 9.5)),
        unclosed(segment(0, 10, f"{SENTENCES} It is very cold in there, too.")),
        replace(STOPPED, avg_logprob=-1.5, no_speech_prob=0.9),  # silent
        window_result(evenly("She has left the room. He is still here", 0, 9.5)),  # 2 s; a closing timestamp
    ],
)
def test_text_that_needs_the_time_of_the_speech_is_decoded_once(full: WindowResult) -> None:
    assert len(decode(CLIP, script(full))[1]) == 1


def test_pauses_need_no_words() -> None:
    clip = replace(CLIP, speech=tuple((start, start + samples(0.8)) for start, _ in CLIP.speech))
    assert len(decode(clip, script(STOPPED))[1]) == 1


@pytest.mark.parametrize(
    "retry",
    [
        STOPPED,
        window_result(segment(0, 10, "She has.")),
        replace(ALL, avg_logprob=-1.2),
        replace(ALL, avg_logprob=-1.2, no_speech_prob=0.9),
        window_result(spoken(*[("so", 1.0, 1.0)] * 50), compression_ratio=9.0),
    ],
)
def test_without_the_prompt_more_words_count_if_they_are_good(retry: WindowResult) -> None:
    result, windows = decode(CLIP, script(STOPPED, retry))
    assert len(windows) == 2
    assert [text for _, _, text in texts(result)] == ["She has left the room."]


def test_the_next_window_has_the_prompt_again() -> None:
    half = window_result(evenly(SENTENCES[:57], 0, 6))
    clip = clip_of(10, (0, 6), (6.5, 9.5), prompt="She has left the room.")
    rest = window_result(evenly("Nobody else has come.", 0.3, 3.3))
    result, windows = decode(clip, script(STOPPED, half, rest))
    assert [window.decoding.prompt for window in windows] == [
        clip.decoding.prompt,
        None,
        clip.decoding.prompt,
    ]
    assert span_of(windows[2]) == (6.2, 10)
    assert "".join(s.text for s in result.segments).split() == SENTENCES.split()


def test_nothing_changes_without_a_prompt_and_at_a_temperature() -> None:
    for changes in ({}, {"prompt": "Anna", "temperature": 0.5}):
        assert len(decode(clip_of(10, (0, 9.5), **changes), script(STOPPED))[1]) == 1


@pytest.mark.parametrize("words_wanted", [True, False])
def test_the_segments_of_a_window_with_a_prompt_end_where_sentences_do(words_wanted: bool) -> None:
    """Also where nobody wants the times of words."""
    clip = replace(CLIP, decoding=replace(CLIP.decoding, word_timestamps=words_wanted))
    result, windows = decode(clip, script(ALL))
    assert windows[0].decoding.word_timestamps
    assert [text for _, _, text in texts(result)] == [
        "She has left the room.",
        "He is still here with all of them.",
        "Nobody else has come.",
    ]
    ends = [(one.end, other.start) for one, other in pairwise(result.segments)]
    assert all(end == start for end, start in ends)
    plain, _ = decode(clip_of(10, (0, 9.5)), script(ALL))
    assert len(plain.segments) == 1


def parts(*words: tuple[str, float, float], end: float | None = None) -> list[str]:
    whole = spoken(*words)
    whole = replace(whole, end=whole.end if end is None else samples(end))
    return [part.text.strip() for part in at_sentence_ends(whole, "en")]


def test_a_sentence_without_a_duration_stays_with_its_neighbour() -> None:
    assert parts(("Stop.", 0, 1), ("Run.", 1, 1), ("Where?", 1, 2)) == ["Stop.", "Run. Where?"]
    assert parts(("Stop.", 0, 1), ("Run.", 1, 1)) == ["Stop. Run."]
    assert parts(("Stop.", 0, 1), ("Run.", 2, 3), end=2) == ["Stop. Run."]
    assert parts(("Mr.", 0, 1), ("Smith", 1, 2), ("left.", 2, 3)) == ["Mr. Smith left."]


@given(
    st.lists(st.tuples(st.sampled_from(["no", "No.", "Why?", "Mr.", "我。"]), st.integers(0, 9)), max_size=9),
    st.integers(0, 60),
)
def test_the_parts_are_the_segment(lengths: list[tuple[str, int]], end: int) -> None:
    words: list[Word] = []
    for text, length in lengths:
        at = words[-1].end if words else 0
        words.append(Word(f" {text}", at, at + length, 0.9))
    whole = Segment(0, end, "".join(word.text for word in words), (1, 2), 0, -0.2, 1, 0, tuple(words))
    found = list(at_sentence_ends(whole, "en"))
    assert "".join(part.text for part in found) == whole.text
    assert tuple(word for part in found for word in part.words) == whole.words
    assert (found[0].start, found[-1].end) == (whole.start, whole.end)
    assert len(found) == 1 or all(part.start < part.end for part in found)
    assert [part.start for part in found] == sorted(part.start for part in found)
