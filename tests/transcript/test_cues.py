from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import (
    STYLE,
    clip_results,
    letters,
    samples,
    segment,
    span,
    speech_spans,
    spoken,
)

from app.transcript import cues
from app.transcript.cues import Cue, CueStyle
from app.transcript.lines import MIN_GAP, width
from app.transcript.timeline import merge
from workers.messages import SAMPLE_RATE, ClipResult, Segment, Span

ALL = (span(0, 1000),)


def shape_cues(
    segments: Iterable[Segment],
    speech: tuple[Span, ...] = ALL,
    style: CueStyle = STYLE,
    language: str = "en",
    recording: int = samples(1000),
) -> tuple[Cue, ...]:
    return tuple(cues.shape_cues(segments, speech, style, language, recording))


def shaped(*segments: Segment, style: CueStyle = STYLE, language: str = "en") -> str:
    """The cues as text: times in seconds, a bar between lines."""
    return "".join(
        f"{cue.start / 16_000:.2f} {cue.end / 16_000:.2f} {' | '.join(cue.lines)}\n"
        for cue in shape_cues(segments, style=style, language=language)
    )


def test_a_segment_that_fits_is_a_cue() -> None:
    assert shape_cues([segment(1, 3, " Good morning.")]) == (Cue(*span(1, 3), ("Good morning.",)),)


def test_a_cue_lasts_from_the_first_to_the_last_speech_of_its_segment() -> None:
    shaped = shape_cues([segment(1, 9, " Good morning.")], (span(2, 4.5), span(12, 14)))
    assert shaped == (Cue(*span(2, 4.5), ("Good morning.",)),)


def test_long_segments_are_split_after_sentences() -> None:
    text = (
        "The first sentence is of a fair length and ends here. The second one goes on for about as long as "
        "that. A third one closes it."
    )
    assert shaped(spoken(0, 13, text)) == dedent(
        """\
        0.00 5.21 The first sentence is | of a fair length and ends here.
        5.30 10.51 The second one goes | on for about as long as that.
        10.59 13.00 A third one closes it.
        """
    )


def test_long_segments_are_split_after_commas_then_before_conjunctions() -> None:
    text = (
        "when all the children had come home from school, their father was still sitting in his old "
        "kitchen chair"
    )
    assert shaped(spoken(0, 10, text)) == dedent(
        """\
        0.00 4.65 when all the children had | come home from school,
        4.74 10.00 their father was still sitting | in his old kitchen chair
        """
    )
    text = (
        "all the small children had come home from school because their father was still sitting there alone"
    )
    assert shaped(spoken(0, 9.5, text)) == dedent(
        """\
        0.00 4.95 all the small children | had come home from school
        5.03 9.50 because their father was | still sitting there alone
        """
    )


def test_segments_without_punctuation_are_split_at_a_long_pause() -> None:
    words = [(f" word{n}", n / 2 + 2 * (n > 4), n / 2 + 0.5 + 2 * (n > 4)) for n in range(12)]
    paused = segment(0, 8, "".join(word for word, _, _ in words), *words)
    assert shaped(paused) == dedent(
        """\
        0.00 2.50 word0 word1 word2 word3 word4
        4.50 8.00 word5 word6 word7 word8 | word9 word10 word11
        """
    )


def test_a_cue_is_never_longer_than_the_longest() -> None:
    assert shaped(segment(0, 20, " Ooooh")) == "0.00 7.00 Ooooh\n"
    assert shaped(
        segment(0, 20, " Hm no"), style=replace(STYLE, min_samples=samples(5), max_samples=samples(2))
    ) == dedent(
        """\
        0.00 2.00 Hm
        10.00 12.00 no
        """
    )


def test_a_short_cue_stays_into_the_silence() -> None:
    assert shaped(segment(1, 1.2, " Yes.")) == "1.00 1.83 Yes.\n"
    assert shaped(segment(1, 1.2, " Yes."), segment(1.5, 3, " Come in.")) == dedent(
        """\
        1.00 1.42 Yes.
        1.50 3.00 Come in.
        """
    )


def test_a_fast_cue_stays_until_it_can_be_read() -> None:
    assert (
        shaped(segment(0, 1, " This was said very, very fast."))
        == "0.00 1.50 This was said very, very fast.\n"
    )


def test_no_cue_stays_after_the_recording() -> None:
    shaped = shape_cues([segment(1, 1.2, " Yes.")], recording=samples(1.4))
    assert shaped == (Cue(*span(1, 1.4), ("Yes.",)),)


def test_a_cue_ends_before_the_next_one_in_continuous_speech() -> None:
    assert shaped(segment(0, 2, " It is late."), segment(2, 4, " We go home.")) == dedent(
        """\
        0.00 1.92 It is late.
        2.00 4.00 We go home.
        """
    )


def test_fragments_of_a_sentence_are_joined_and_sentences_are_not() -> None:
    assert shaped(segment(0, 2, " It is late"), segment(2, 2.4, " my friend.")) == (
        "0.00 2.40 It is late my friend.\n"
    )
    assert shaped(segment(0, 2, " It is late."), segment(2, 2.4, " my friend.")).count("\n") == 2
    assert shaped(segment(0, 2, " It is late"), segment(2.5, 2.9, " my friend.")).count("\n") == 2
    assert shaped(segment(0, 2, "It is late"), segment(2, 2.4, "my friend.")).count("\n") == 2


def test_chinese_is_split_by_its_own_punctuation() -> None:
    style = replace(STYLE, max_line_chars=16, max_lines=1)
    assert shaped(segment(0, 6, "我今天去了北京，天气很好。"), style=style, language="zh") == dedent(
        """\
        0.00 3.61 我今天去了北京，
        3.69 6.00 天气很好。
        """
    )


def test_no_cues_without_segments() -> None:
    assert shape_cues([]) == ()


@pytest.mark.parametrize("language", ["en", "ja", "xx"])
def test_the_same_input_gives_the_same_cues(language: str) -> None:
    segments = [spoken(0, 20, "one two three, four five six and seven eight nine. ten " * 4)]
    assert shape_cues(segments, language=language) == shape_cues(segments, language=language)


styles = st.builds(
    CueStyle,
    max_line_chars=st.integers(10, 60),
    max_lines=st.integers(1, 4),
    max_cps=st.floats(5, 100),
    min_samples=st.integers(samples(0.1), samples(5)),
    max_samples=st.integers(samples(1), samples(30)),
)


@given(st.lists(clip_results(), max_size=3), speech_spans(), styles)
def test_any_segments_make_valid_cues(
    results: list[ClipResult], speech: tuple[Span, ...], style: CueStyle
) -> None:
    clip = 12 * SAMPLE_RATE
    segments = merge(((n * clip, (n + 1) * clip), result) for n, result in enumerate(results))
    shaped = shape_cues(segments, speech, style)
    assert letters([line for cue in shaped for line in cue.lines]) == letters(
        [segment.text for segment in segments]
    )
    for cue in shaped:
        assert 0 <= cue.start < cue.end
        assert cue.end - cue.start <= style.max_samples
        assert all(line == line.strip() and line for line in cue.lines)
        if len(cue.lines) > 1:
            assert len(cue.lines) <= style.max_lines
    for before, after in pairwise(shaped):
        assert after.start - before.end >= MIN_GAP


@given(
    st.lists(
        st.sampled_from(["the", "a,", "end.", "of", "extraordinary", "I", "go,", "because", "when?"]),
        min_size=1,
    ),
    styles,
)
def test_lines_keep_their_width(words: list[str], style: CueStyle) -> None:
    style = replace(style, max_line_chars=max(style.max_line_chars, 13))
    shaped = shape_cues([spoken(0, len(words) / 2, " ".join(words))], style=style)
    assert all(width(line) <= style.max_line_chars for cue in shaped for line in cue.lines)
    assert all(len(cue.lines) <= style.max_lines for cue in shaped)
    assert " ".join(line for cue in shaped for line in cue.lines).split() == words
    assert shaped[0].start == 0


def test_a_segment_without_words_is_a_cue_and_a_long_one_is_split_by_its_text() -> None:
    text = (
        " The first sentence is of a fair length and ends here. The second one goes on for about as long as "
        "that."
    )
    assert shaped(
        segment(0, 2, " Good morning."), segment(2, 12, text), segment(12.5, 14, " Bye.")
    ) == dedent(
        """\
        0.00 1.92 Good morning.
        2.00 7.11 The first sentence is | of a fair length and ends here.
        7.19 12.00 The second one goes | on for about as long as that.
        12.50 14.00 Bye.
        """
    )
