"""Cues of several speakers: whose words are on which line, and when."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcript_cases import ALL, STYLE, letters, samples, spoken, words_by_speaker

from app.transcript.cues.lines import CueStyle
from app.transcript.cues.shaping import shape_cues
from app.transcript.cues.timing import Cue
from app.transcript.edited import EditedSegment, edited, speaker_of
from app.transcript.text.scripts import width
from app.transcript.text.speaker_text import SpeakerPrefix
from workers.messages import SAMPLE_RATE, Segment

NAMES = SpeakerPrefix()
WHISPERX = SpeakerPrefix("[{name}]: ", {"Ann": "SPEAKER_00", "Bob": "SPEAKER_01"}, is_repeated=True)


def by(speaker: str | None, part: Segment) -> EditedSegment:
    return edited(part, speaker=speaker)


def ann(start: float, end: float, text: str) -> EditedSegment:
    return by("Ann", spoken(start, end, text))


def bob(start: float, end: float, text: str) -> EditedSegment:
    return by("Bob", spoken(start, end, text))


def cues_of(*segments: Segment, prefix: SpeakerPrefix | None = None, style: CueStyle = STYLE) -> list[Cue]:
    return list(shape_cues(segments, ALL, style, "en", samples(1000), prefix))


MONOLOGUE = ann(
    0, 9, "Nobody knows how these machines work inside, and yet we all use them every single day."
)


def test_a_word_within_a_long_monologue_follows_a_cue_of_it() -> None:
    long = (MONOLOGUE, bob(2, 2.3, "Yes."), ann(9, 11, "Good night, everybody."))
    texts = [" ".join(cue.lines) for cue in cues_of(*long)]
    at = texts.index("Yes.")
    cues = cues_of(*long)
    assert cues[at - 1].units[-1][-1].end <= cues[at].start < cues[at].end <= cues[at + 1].start
    assert cues[at].end - cues[at].start >= STYLE.min_samples


def test_names_for_programs_stand_in_every_cue_and_are_not_shortened() -> None:
    parts = (ann(0, 3, "It is late."), ann(4, 6, "We go home."), bob(7, 9, "Good night."))
    style = replace(STYLE, max_line_chars=16)
    lines = [cue.lines[0] for cue in cues_of(*parts, prefix=WHISPERX, style=style)]
    assert all(line.startswith(("[SPEAKER_00]: ", "[SPEAKER_01]: ")) for line in lines)


@pytest.mark.parametrize(
    ("name", "text"), [("Ann:\n1", "Ann: 1: "), ("\u202eAnn\u2066", "Ann: "), ("\x00\u2028", ""), (" ", "")]
)
def test_names_stand_on_one_line_and_keep_their_direction(name: str, text: str) -> None:
    assert NAMES.of(name) == text


styles = st.builds(
    CueStyle,
    max_line_chars=st.integers(20, 42),
    max_lines=st.integers(1, 3),
    max_cps=st.floats(10, 30),
    min_samples=st.integers(samples(0.1), samples(2)),
    max_samples=st.integers(samples(2), samples(10)),
    min_gap=st.integers(0, samples(0.3)),
    fps=st.sampled_from([None, 25]),
)
WORDS = st.sampled_from(["the", "end.", "of", "a,", "and", "But", "York?", "extraordinary", "when", "I"])


@st.composite
def conversations(draw: st.DrawFn) -> list[EditedSegment]:
    """Segments of up to three speakers, ordered by their start; only those of different ones overlap."""
    parts: list[EditedSegment] = []
    for speaker in ("Ann", "Bob", None):
        at = draw(st.floats(0, 3))
        for text in draw(st.lists(st.lists(WORDS, min_size=1, max_size=15).map(" ".join), max_size=4)):
            end = at + draw(st.floats(0.2, 6))
            part = by(speaker, spoken(at, end, text))
            if speaker and len(part.words) > 3 and draw(st.booleans()):
                part = replace(part, turns=((2, draw(st.sampled_from(["Ann", "Bob", "Eve"]))),))
            parts.append(part)
            at = end + draw(st.sampled_from([0, 0.2, 0.6, 4]))
    return sorted(parts, key=lambda part: part.start)


@given(conversations(), styles, st.sampled_from([None, NAMES, WHISPERX]))
def test_any_conversation_makes_valid_cues(
    parts: Sequence[EditedSegment], style: CueStyle, prefix: SpeakerPrefix | None
) -> None:
    cues = cues_of(*parts, style=style, prefix=prefix)
    for cue in cues:
        assert 0 <= cue.start < cue.end
        assert cue.end - cue.start <= style.max_samples + SAMPLE_RATE // 25
        assert len(cue.lines) <= style.max_lines
        assert len(set(cue.speakers)) <= 2
        assert len(set(cue.speakers)) == 1 or len(cue.lines) == 2
        assert all(unit.speaker == line[0].speaker for line in cue.units for unit in line)
        if prefix is None:
            assert all(width(line) <= style.max_line_chars for line in cue.lines)
    for before, after in pairwise(cues):
        assert after.start - before.end >= (style.min_gap if style.fps is None else 1)
    if not any(part.turns for part in parts) and prefix is None:
        wanted: dict[str | None, str] = {}
        for part in parts:
            wanted[part.speaker] = wanted.get(part.speaker, "") + letters([part.text])
        assert words_by_speaker(cues) == wanted


@given(conversations(), styles)
def test_without_speakers_nothing_changes(parts: Sequence[EditedSegment], style: CueStyle) -> None:
    nobody = [replace(part, speaker=None, turns=()) for part in parts]
    plain = [Segment(*(getattr(part, name) for name in Segment.__match_args__)) for part in parts]
    assert cues_of(*nobody, style=style, prefix=NAMES) == cues_of(*plain, style=style)
    assert all(speaker_of(part) is None for part in plain)
