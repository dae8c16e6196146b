from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import (
    ALL,
    STYLE,
    clip_results,
    letters,
    samples,
    segment,
    shown_cues,
    span,
    speech_spans,
    spoken,
    styles,
)

from app.options import Options
from app.transcript.cues import shaping
from app.transcript.cues.lines import MIN_GAP, CueStyle, begins_line
from app.transcript.cues.profiles import cue_style
from app.transcript.cues.timed_text import timed_units
from app.transcript.cues.timing import Cue
from app.transcript.text.scripts import width
from app.transcript.timeline import ClipResult, place_segments
from tests.cases import read_cases
from workers.messages import SAMPLE_RATE, Segment, Span


def shape_cues(
    segments: Iterable[Segment],
    speech: tuple[Span, ...] = ALL,
    style: CueStyle = STYLE,
    language: str = "en",
    recording: int = samples(1000),
) -> tuple[Cue, ...]:
    return tuple(shaping.shape_cues(segments, speech, style, language, recording))


def shaped(*segments: Segment, style: CueStyle = STYLE, language: str = "en") -> str:
    return shown_cues(shape_cues(segments, style=style, language=language))


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
        0.00 4.65 when all the children | had come home from school,
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
        4.50 8.00 word5 word6 word7 | word8 word9 word10 word11
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


def test_a_flash_joins_its_neighbour_in_two_lines() -> None:
    assert shaped(segment(1, 1.4, " Yeah."), segment(1.5, 2, " Okay.")) == "1.00 2.00 Yeah. | Okay.\n"
    within = segment(1, 2, " Yeah. Okay.", (" Yeah.", 1, 1.5), (" Okay.", 1.5, 2))
    assert shaped(within) == "1.00 2.00 Yeah. Okay.\n"


@pytest.mark.parametrize("sound", ["[DOOR CREAKS]", "♪ la la la ♪"])
def test_a_flash_does_not_join_the_description_of_a_sound(sound: str) -> None:
    assert shaped(segment(1, 1.6, f" {sound}"), segment(1.6, 2, " Shh!")) == dedent(
        f"""\
        1.00 1.52 {sound}
        1.60 2.43 Shh!
        """
    )


def test_a_short_gap_closes_and_a_long_one_stays() -> None:
    assert shaped(segment(0, 2, " It is late."), segment(2.3, 4, " We go home.")) == dedent(
        """\
        0.00 2.22 It is late.
        2.30 4.00 We go home.
        """
    )
    assert shaped(segment(0, 2, " It is late."), segment(2.6, 4, " We go home.")) == dedent(
        """\
        0.00 2.00 It is late.
        2.60 4.00 We go home.
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


def test_a_sentence_goes_on_across_segments_until_a_pause() -> None:
    assert (
        shaped(segment(0, 2, " It is late"), segment(2, 4, " my friend."))
        == "0.00 4.00 It is late my friend.\n"
    )
    assert shaped(segment(0, 2, " It is late"), segment(2.9, 4, " my friend.")).count("\n") == 2
    assert shaped(segment(0, 2, " It is late."), segment(2, 4, " My friend.")).count("\n") == 2


def test_a_long_sentence_is_cut_anew_whatever_its_segments() -> None:
    parts = [
        spoken(0, 3, "But we can't go to the police. Not until we've spoken to"),
        spoken(3, 6, "Uncle Ray, who, as you know, hasn't left"),
        spoken(6, 9, "his apartment on 42nd Street since the funeral."),
    ]
    assert shaped(*parts) == dedent(
        """\
        0.00 1.67 But we can't go to the police.
        1.75 5.17 Not until we've spoken | to Uncle Ray, who, as you know,
        5.25 9.00 hasn't left his apartment | on 42nd Street since the funeral.
        """
    )


def test_texts_without_spaces_at_their_ends_are_joined_with_one() -> None:
    assert (
        shaped(segment(0, 2, "It is late"), segment(2, 4, "my friend."))
        == "0.00 4.00 It is late my friend.\n"
    )
    assert "今日は東京" in shaped(segment(0, 2, "今日は"), segment(2, 4, "東京です。"), language="ja")


def test_each_turn_of_a_dialogue_has_a_line_and_a_third_one_a_cue() -> None:
    text = "- Do you want some tea? - No, thanks. - Something stronger, then?"
    assert shaped(spoken(0, 4, text)) == dedent(
        """\
        0.00 2.69 - Do you want some tea? | - No, thanks.
        2.77 4.12 - Something stronger, then?
        """
    )


def test_no_line_ends_with_a_dash() -> None:
    text = "The whole house was quiet that evening – but somebody was there – and the door stood wide open."
    lines = [line for cue in shape_cues([spoken(0, 9, text)]) for line in cue.lines]
    assert len(lines) > 2
    assert not any(line.endswith("–") for line in lines)


def test_a_long_passage_without_sentences_ends_at_its_best_break_so_far() -> None:
    read = 0

    def segments() -> Iterator[Segment]:
        nonlocal read
        for number in range(1000):
            read += 1
            yield spoken(3 * number, 3 * number + 3, "and so it goes, on and on")

    first = next(shaping.shape_cues(segments(), ALL, STYLE, "en", samples(3000)))
    assert first.lines[0].startswith("and so it goes,")
    assert read < 40


@pytest.mark.parametrize("fps", [23.976, 24, 25, 29.97, 50])
def test_edges_lie_on_frames(fps: float) -> None:
    frame = SAMPLE_RATE / fps
    segments = [spoken(n * 3.1, n * 3.1 + 2.9, "And this is what he said to me.") for n in range(20)]
    for before, after in pairwise(shape_cues(segments, style=replace(STYLE, fps=fps))):
        for sample in (before.start, before.end):
            assert abs(sample / frame - round(sample / frame)) <= 1 / frame
        assert round((after.start - before.end) / frame) == round(MIN_GAP / frame)


def test_cues_can_start_before_their_first_word_but_not_in_the_words_before() -> None:
    style = replace(STYLE, start_offset=samples(0.2))
    assert shaped(segment(1, 3, " It is late."), segment(3.2, 5, " We go home."), style=style) == dedent(
        """\
        0.80 3.00 It is late.
        3.08 5.00 We go home.
        """
    )


def test_the_gap_can_be_chosen() -> None:
    style = replace(STYLE, min_gap=samples(0.25))
    assert shaped(segment(0, 2, " It is late."), segment(2, 4, " We go home."), style=style) == dedent(
        """\
        0.00 1.75 It is late.
        2.00 4.00 We go home.
        """
    )


@pytest.mark.parametrize(
    ("speech", "word_start", "start"),
    [
        ((span(2, 4),), 1.1, 1.0),  # decoder and word agree: the detector missed it
        ((span(2, 4),), 1.6, 2.0),  # they do not
        ((span(1.9, 4),), 1.05, 1.0),
    ],
)
def test_a_cue_starts_with_a_short_word_that_speech_detection_missed(
    speech: tuple[Span, ...], word_start: float, start: float
) -> None:
    words = [(" Ha!", word_start, word_start + 0.15), (" You", 2.1, 2.5), (" know", 2.5, 3), (" me.", 3, 4)]
    interjection = segment(1, 4, " Ha! You know me.", *words)
    assert shape_cues([interjection], speech)[0].start == samples(start)


def test_words_heaped_on_one_moment_share_the_time_before_it() -> None:
    heaped = [(f" word{n}", 5.0, 5.0) for n in range(8)]
    sentence = segment(
        0, 7, " First," + "".join(text for text, _, _ in heaped) + ", then the last word.",
        (" First,", 0, 0.6), *heaped[:-1], (" word7,", 5.0, 5.0), (" then", 5.1, 5.6), (" the", 5.6, 5.8),
        (" last", 5.8, 6.4), (" word.", 6.4, 7),
    )  # fmt: skip
    units = timed_units(sentence, ALL, "en", 42)
    starts = [unit.start / SAMPLE_RATE for unit in units]
    assert starts[1] == pytest.approx(0.6, abs=0.05)
    assert starts[8] == pytest.approx(4.5, abs=0.2)
    assert all(after - before > 0.3 for before, after in pairwise(starts[1:9]))


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


languages = st.sampled_from(["en", "de", "ja", "zh", "th", "ko", "ar", "he", "hi", "ru", "tr", "km", "xx"])


@given(st.lists(clip_results(), max_size=3), speech_spans(), styles, languages)
def test_any_segments_make_valid_cues(
    results: list[ClipResult], speech: tuple[Span, ...], style: CueStyle, language: str
) -> None:
    clip = 12 * SAMPLE_RATE
    segments = [
        segment
        for n, result in enumerate(results)
        for segment in place_segments(result.segments, (n * clip, (n + 1) * clip))
    ]
    shaped = shape_cues(segments, speech, style, language)
    assert letters([line for cue in shaped for line in cue.lines]) == letters(
        [segment.text for segment in segments]
    )
    for cue in shaped:
        assert 0 <= cue.start < cue.end
        assert cue.end - cue.start <= style.max_samples
        assert all(line == line.strip() and line for line in cue.lines)
        if len(cue.lines) > 1:
            assert len(cue.lines) <= style.max_lines
        units = [unit for line in cue.units for unit in line]
        assert letters(list(cue.lines)) == letters([unit.text for unit in units])
        assert all(unit.start <= unit.end for unit in units)
        assert all(before.end <= after.start for before, after in pairwise(units))
    for before, after in pairwise(shaped):
        assert after.start - before.end >= (style.min_gap if style.fps is None else 1)


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


_VOCABULARY = read_cases("vocabulary")["cues"]


@st.composite
def talks(draw: st.DrawFn) -> tuple[str, list[Segment]]:
    """A language, and segments of its words, spoken one after the other with pauses of any length."""
    language = draw(st.sampled_from(sorted(_VOCABULARY)))
    words = st.sampled_from(_VOCABULARY[language].split())
    segments = []
    start = 0.0
    for text in draw(st.lists(st.lists(words, min_size=1, max_size=20).map(" ".join), max_size=6)):
        start += draw(st.floats(0, 1.5))
        end = start + len(text) / draw(st.floats(8, 25))
        segments.append(spoken(start, end, text))
        start = end
    return language, segments


@given(talks())
def test_the_rules_hold_in_every_script(talk: tuple[str, list[Segment]]) -> None:
    language, segments = talk
    style = cue_style(Options(), language)
    shaped = shape_cues(segments, style=style, language=language)
    assert letters([line for cue in shaped for line in cue.lines]) == letters(
        [part.text for part in segments]
    )
    for cue in shaped:
        assert cue.end - cue.start <= style.max_samples
        assert len(cue.lines) <= style.max_lines
        assert all(width(line) <= style.max_line_chars for line in cue.lines)
        inside = [unit for line in cue.units for unit in line[1:]]
        assert not any(begins_line(unit) for unit in inside)
        gaps = [after.start - before.end for before, after in pairwise(chain.from_iterable(cue.units))]
        assert max(gaps, default=0) < samples(0.8)
    for before, after in pairwise(shaped):
        gap = after.start - before.end
        assert gap >= style.min_gap
        if style.min_gap < gap < samples(0.5):
            assert before.end - before.start == style.max_samples
        if before.lines[-1].endswith((" -", " –")):
            assert after.start - before.units[-1][-1].end >= samples(0.5)  # a dash before a pause
