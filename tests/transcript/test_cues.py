from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

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

from app.common.options import Options
from app.transcript.cues import shaping
from app.transcript.cues.lines import MIN_GAP, CueStyle, begins_line
from app.transcript.cues.profiles import cue_style
from app.transcript.cues.timing import Cue
from app.transcript.edited import EditedSegment, edited
from app.transcript.text.scripts import width
from app.transcript.text.speaker_text import SpeakerPrefix
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


CASES = {name: case for cases in read_cases("cues").values() for name, case in cases.items()}


def segment_of(row: dict[str, Any]) -> EditedSegment:
    plain = (
        spoken(*row["at"], row["spoken"])
        if "spoken" in row
        else segment(*row["at"], row["text"], *row.get("words", ()))
    )
    turns = tuple((at, speaker) for at, speaker in row.get("turns", ()))
    return edited(plain, speaker=row.get("speaker"), timed_by_hand=row.get("by_hand", False), turns=turns)


def cues_of(case: dict[str, Any]) -> list[Cue]:
    speech = [span(*times) for times in case["speech"]] if "speech" in case else ALL
    return list(
        shaping.shape_cues(
            map(segment_of, case["segments"]),
            speech,
            replace(STYLE, **case.get("style", {})),
            case.get("language", "en"),
            samples(case.get("seconds", 1000)),
            SpeakerPrefix() if case.get("names") else None,
        )
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cues_of_segments(case: dict[str, Any]) -> None:
    cues = cues_of(case)
    assert shown_cues(cues) == case["cues"]
    if "speakers" in case:
        assert [[speaker or "" for speaker in cue.speakers] for cue in cues] == case["speakers"]


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
