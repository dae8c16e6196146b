"""The cues of files as data: they are those that libraries read in the files."""

import itertools
import json
from dataclasses import replace

import pytest
from correction_cases import CLIPS
from hypothesis import given, note
from hypothesis import strategies as st
from test_broadcast import read as read_broadcast
from test_format_readers import READERS
from test_hand_times import corrected
from transcript_cases import DATA, STYLE, samples, span, spoken

from app.common.options import Options
from app.transcript.corrections import SegmentEdit, correct
from app.transcript.cues.problems import problems
from app.transcript.cues.timing import Cue
from app.transcript.edited import EditedSegment, Mark, edited, with_ids
from app.transcript.formats.common import milliseconds
from app.transcript.rendering import CUE_FORMATS, file_cues, render_transcript
from app.transcript.timeline import Transcript

PROFILES = (None, "netflix", "bbc", "broadcast", "social")
TALKS = ("talk", "talk_de", "talk_es", "dialogue")


def talk(name: str) -> Transcript:
    content = json.loads((DATA / f"{name}.json").read_text())
    parts = [spoken(cue["start"], cue["end"], cue["text"]) for cue in content["cues"]]
    segments = [
        replace(part, speaker=cue.get("speaker"))
        for part, cue in zip(with_ids(parts, CLIPS), content["cues"], strict=True)
    ]
    speech = tuple((part.start, part.end) for part in segments)
    return Transcript(
        "transcribe", "demo", content["language"], samples(content["duration"]), speech, tuple(segments)
    )


def with_marks_and_edges(transcript: Transcript) -> Transcript:
    """The transcript with marks in all segments, and with other edges of every fourth."""
    kinds: itertools.cycle[Mark] = itertools.cycle(("break", "join", "join"))
    edits = [
        SegmentEdit(
            milliseconds(part.start) + 40 * (not at % 4),
            milliseconds(part.end),
            part.text.strip(),
            part.id,
            part.speaker,
            tuple((place, next(kinds)) for place in range(at % 3, len(part.text) - 1, 11)),
        )
        for at, part in enumerate(transcript.segments)
        if isinstance(part, EditedSegment)
    ]
    segments = correct(transcript.segments, edits, 1, transcript.samples, CLIPS).segments
    return replace(transcript, segments=segments)


def check_equal(transcript: Transcript, options: Options, file_format: str) -> None:
    """The cues are those of the file, as libraries read it."""
    file = render_transcript(transcript, options, file_format)
    cues = list(file_cues(transcript, options, file_format)[0])
    times = [(float(cue.start / cue.rate), float(cue.end / cue.rate)) for cue in cues]
    if file_format in ("scc", "stl"):
        read = read_broadcast(file_format, file)
        if file_format == "stl":  # captions of SCC may be late: sending them takes time
            read_times = [time for row in read for time in row[:2]]
            assert read_times == pytest.approx([time for row in times for time in row], abs=1e-6)
        assert [lines for *_, lines in read] == [cue.lines for cue in cues]
        return
    rows = [(start, end, lines) for start, end, lines in READERS[file_format](file.decode())]
    assert [row[0] / 1000 for row in rows] == pytest.approx([start for start, _ in times], abs=1e-6)
    if file_format != "lrc":
        assert [(row[1] or 0) / 1000 for row in rows] == pytest.approx([end for _, end in times], abs=1e-6)
    assert [lines for *_, lines in rows] == [cue.lines for cue in cues]


@pytest.mark.parametrize("name", TALKS)
@pytest.mark.parametrize("file_format", sorted(CUE_FORMATS))
def test_they_are_those_of_the_file(file_format: str, name: str) -> None:
    for profile in PROFILES:
        options = Options.model_validate({"profile": profile})
        check_equal(talk(name), options, file_format)
        check_equal(with_marks_and_edges(talk(name)), options, file_format)
    check_equal(talk(name), Options(fps=23.976, max_line_chars=20, start_offset_s=0.2), file_format)


@pytest.mark.parametrize("file_format", ["srt", "vtt", "lrc", "stl"])
def test_each_says_which_letters_of_which_segment_it_has(file_format: str) -> None:
    transcript = with_marks_and_edges(talk("talk_de"))
    cues = list(file_cues(transcript, Options(), file_format)[0])
    letters = {
        part.id: "".join(part.text.split()) for part in transcript.segments if isinstance(part, EditedSegment)
    }
    assert sum(len(cue.units) for cue in cues) > len(cues)
    for cue in cues:
        found = "".join(letters[unit.segment][slice(*unit.letters)] for unit in cue.units)
        assert found == "".join("".join(cue.lines).split())


def cue_of(start: float, end: float, *lines: str) -> Cue:
    return Cue(*span(start, end), lines)


@pytest.mark.parametrize(
    ("cue", "before", "after", "found"),
    [
        (cue_of(5, 7, "Fine."), None, None, {}),
        (
            cue_of(5, 6, "As many as thirty characters."),
            None,
            cue_of(6.5, 8, "b"),
            {"max_cps": (29.0, "shorten end start")},
        ),
        (
            cue_of(5, 6, "As many as thirty characters."),
            cue_of(3, 4.95, "a"),
            cue_of(6.05, 8, "b"),
            {"max_cps": (29.0, "shorten"), "min_gap_s": (0.05, "end")},
        ),
        (cue_of(5, 5.5, "Oh."), None, cue_of(5.6, 8, "b"), {"min_cue_s": (0.5, "start join")}),
        (cue_of(5, 13, "Oh."), None, None, {"max_cue_s": (8.0, "end start")}),
        (cue_of(5, 9, "x" * 43), None, None, {"max_line_chars": (43, "shorten")}),
        (cue_of(5, 9, "a", "b", "c"), None, None, {"max_lines": (3, "shorten")}),
        (cue_of(5, 6, "今日は晴れです。明日は"), None, None, {"max_cps": (22.0, "shorten end start")}),
    ],
)
def test_broken_limits_and_what_cures_them(
    cue: Cue, before: Cue | None, after: Cue | None, found: dict[str, tuple[float, str]]
) -> None:
    broken = {
        problem.limit: (problem.value, " ".join(problem.cures))
        for problem in problems(cue, STYLE, before, after)
    }
    assert broken == found


@given(corrected("en"), st.sampled_from(PROFILES), st.sampled_from([None, 23.976, 25.0]))
def test_what_nobody_timed_or_marked_breaks_no_limit_that_has_a_cure(
    segments: tuple[EditedSegment, ...], profile: str | None, fps: float | None
) -> None:
    plain = tuple(edited(part, id=part.id) for part in segments)
    options = Options.model_validate({"profile": profile, "fps": fps})
    transcript = Transcript("transcribe", "demo", "en", samples(1000), ((0, samples(1000)),), plain)
    cues, style = file_cues(transcript, options, "vtt")
    found = [cue.cue for cue in cues]
    for before, cue, after in zip([None, *found], found, [*found[1:], None], strict=False):
        for problem in problems(cue, style, before, after):
            note(f"{cue} {problem}")
            assert problem.limit not in ("max_lines", "max_cue_s", "min_gap_s", "join")
