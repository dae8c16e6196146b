"""Cues of segments that somebody timed by hand, and of corrected transcripts."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pysubs2
import pytest
from correction_cases import CLIPS, RECORDING, bases, edited, is_valid, words_of
from document_readers import READERS as DOCUMENT_READERS
from hypothesis import assume, given, note
from hypothesis import strategies as st
from test_broadcast import read as read_broadcast
from test_format_readers import READERS, comparable
from transcript_cases import (
    ALL,
    STYLE,
    letters,
    samples,
    segment,
    shown_cues,
    span,
    spoken,
    spoken_words,
    styles,
    words_by_speaker,
)

from app.common.options import Options
from app.transcript.corrections import correct
from app.transcript.cues.lines import CueStyle
from app.transcript.cues.shaping import shape_cues, without_overlap
from app.transcript.cues.timing import Cue
from app.transcript.edited import EditedSegment
from app.transcript.edited import edited as edited_segment
from app.transcript.formats import DOCUMENT_FORMATS, FORMATS
from app.transcript.rendering import render_transcript
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Segment, Span


def by_hand(part: Segment, speaker: str | None = None) -> EditedSegment:
    return edited_segment(part, id="0-0", speaker=speaker, timed_by_hand=True)


def shaped(
    *segments: Segment, speech: Sequence[Span] = ALL, style: CueStyle = STYLE, recording: float = 1000
) -> str:
    return shown_cues(shape_cues(segments, speech, style, "en", samples(recording)))


def test_short_cues_before_one_start_earlier_or_share_the_time() -> None:
    crowd = [segment(2 + at / 100, 2.01 + at / 100, f" Go{at}!") for at in range(3)]
    style = replace(STYLE, max_lines=1, max_line_chars=10)
    assert (
        shaped(*crowd, by_hand(segment(2.03, 4, " Now.")), style=style).splitlines()[-1] == "2.03 4.00 Now."
    )
    packed = shaped(by_hand(segment(0, 2, " So.")), *crowd, by_hand(segment(2.03, 4, " Now.")), style=style)
    assert packed.splitlines()[0] == "0.00 2.00 So."
    assert packed.splitlines()[-1] == "2.03 4.00 Now."
    assert letters([packed]).count("Go") == 3


def test_a_hundred_words_in_no_time() -> None:
    text = " ".join(f"word{n}" for n in range(100))
    cues = list(shape_cues([by_hand(spoken(1, 1.05, text))], ALL, STYLE, "en", samples(10)))
    assert (cues[0].start, cues[-1].end) == span(1, 1.05)
    assert len(cues) > 5
    check_order(cues)
    assert " ".join(line for cue in cues for line in cue.lines) == text


@pytest.mark.parametrize("fps", [None, 25])
def test_a_thousand_segments_of_a_millisecond(fps: float | None) -> None:
    parts = [by_hand(segment(n / 1000, (n + 1) / 1000, f" w{n}")) for n in range(1000)]
    style = replace(STYLE, fps=fps)
    cues = list(shape_cues(parts, ALL, style, "en", samples(1000)))
    check_order(cues)
    assert [cue.lines for cue in cues] == [(f"w{n}",) for n in range(1000)]
    if fps is None:
        assert [(cue.start, cue.end) for cue in cues] == [(part.start, part.end) for part in parts]


TALKS = Path(__file__).parents[1] / "data"


# Of the files of version 0.1.0 for talks in three languages, in every profile, with and without word times.
def test_without_them_every_byte_stays() -> None:
    digest = hashlib.sha256()
    for name in ("talk", "talk_de", "talk_es"):
        talk = json.loads((TALKS / f"{name}.json").read_text())
        segments = tuple(spoken(cue["start"], cue["end"], cue["text"]) for cue in talk["cues"])
        cut = [replace(part, words=()) if at % 3 else part for at, part in enumerate(segments)]
        speech = tuple((part.start, part.end) for part in segments)
        for parts in (segments, tuple(cut)):
            transcript = Transcript(
                "transcribe", "demo", talk["language"], samples(talk["duration"]), speech, parts
            )
            for profile in (None, "netflix", "bbc", "broadcast", "social"):
                for more in ({}, {"fps": 23.976, "start_offset_s": 0.2}):
                    options = Options.model_validate({"profile": profile, **more})
                    for file_format in ("ass", "json", "lrc", "scc", "srt", "tsv", "ttml", "txt", "vtt"):
                        digest.update(render_transcript(transcript, options, file_format))
    assert digest.hexdigest() == "3b31db612aa7ddd95fbc17fc12b93ba92a870a62388f21b23ed3bb679cb18af5"


_TIMESTAMP = re.compile(r"<\d\d:\d\d:\d\d\.\d{3}>")  # of a word, in WebVTT
_SPEAKER = re.compile("S[12][:∶] ?|-")  # what says who speaks
NEW_TEXTS = st.sampled_from(["new", " words. And more", "新しい。", "ใหม่", "- Who?", "x" * 90, "the river,"])


@st.composite
def corrected(draw: st.DrawFn, language: str | None = None) -> tuple[EditedSegment, ...]:
    """A transcript that was corrected twice."""
    texts = None if language is None else st.sampled_from(words_of(language))
    base = draw(bases(texts))
    for revision in (1, 2):
        edits = draw(edited(base, NEW_TEXTS if language is None else st.sampled_from(words_of(language))))
        assume(is_valid(edits, base))
        base = correct(base, edits, revision, RECORDING, CLIPS).segments
    return base


def check_order(cues: Sequence[Cue]) -> None:
    assert all(0 <= cue.start < cue.end for cue in cues)
    assert all(before.end <= after.start for before, after in pairwise(cues))


@given(
    corrected(), st.lists(st.tuples(st.integers(0, RECORDING), st.integers(0, RECORDING)), max_size=3), styles
)
def test_cues_of_any_correction_respect_times_set_by_hand(
    segments: tuple[EditedSegment, ...], spans: list[Span], style: CueStyle
) -> None:
    speech = tuple(pair for pair in sorted(spans) if pair[0] < pair[1])[:1]
    cues = list(shape_cues(segments, speech, style, "en", RECORDING))
    check_order(cues)
    assert words_by_speaker(cues) == spoken_words(segments)
    overlap = any(before.end > after.start for before, after in pairwise(segments))
    if overlap or style.fps is not None:
        return
    for part in segments:
        own = [cue for cue in cues if cue.units[0][0].hand_times == (part.start, part.end)]
        if part.timed_by_hand:
            assert words_by_speaker(own) == spoken_words([part])
            assert (own[0].start, own[-1].end) == (part.start, part.end)
            others = [cue for cue in cues if cue not in own]
            assert all(cue.end <= part.start or cue.start >= part.end for cue in others)
        else:
            assert not own


@given(corrected(), st.sampled_from([24, 25, 29.97]))
def test_with_a_frame_rate_edges_are_at_most_a_frame_away(
    segments: tuple[EditedSegment, ...], fps: float
) -> None:
    lengths = [part.end - part.start for part in segments]
    starts = [later.start - part.start for part, later in pairwise(segments)]
    assume(min([*lengths, *starts], default=SAMPLE_RATE) > SAMPLE_RATE // 2)  # many cues need many frames
    assume(all(before.end <= after.start for before, after in pairwise(segments)))
    cues = list(shape_cues(segments, ALL, replace(STYLE, fps=fps), "en", RECORDING))
    for part in segments:
        own = [cue for cue in cues if cue.units[0][0].hand_times == (part.start, part.end)]
        if part.timed_by_hand:
            assert abs(own[0].start - part.start) <= SAMPLE_RATE / fps
            assert abs(own[-1].end - part.end) <= 2 * SAMPLE_RATE / fps


@given(corrected())
def test_overlaps_end_and_all_else_stays(segments: tuple[EditedSegment, ...]) -> None:
    apart = list(without_overlap(segments))
    assert all(before.end <= after.start for before, after in pairwise(apart))
    assert [part.text for part in apart] == [part.text for part in segments]
    if all(before.end <= after.start for before, after in pairwise(segments)):
        assert apart == list(segments)


@given(corrected("en"), st.sampled_from([None, "bbc", "social"]), st.sampled_from([None, 25.0]))
def test_a_corrected_transcript_gives_valid_files(
    segments: tuple[EditedSegment, ...], profile: str | None, fps: float | None
) -> None:
    options = Options.model_validate({"profile": profile, "fps": fps})
    transcript = Transcript("transcribe", "demo", "en", RECORDING, ALL, segments)
    for file_format in FORMATS:
        note(file_format)
        check_file(file_format, render_transcript(transcript, options, file_format), segments)


def check_file(file_format: str, file: bytes, segments: Sequence[EditedSegment]) -> None:
    text = letters([part.text for part in segments])
    if file_format == "json":
        document = json.loads(file)
        assert [entry["text"] for entry in document["segments"]] == [part.text.strip() for part in segments]
        return
    if file_format in DOCUMENT_FORMATS:
        found = letters(DOCUMENT_READERS[file_format](file))
        assert _SPEAKER.sub("", found) == _SPEAKER.sub("", text)
        return
    if file_format in ("scc", "stl"):
        read = read_broadcast(file_format, file)
    else:
        read = READERS[file_format](file.decode())
    wanted = comparable([text], file_format)
    found = comparable(["".join(line for _, _, lines in read for line in lines)], file_format)
    assert _bare(found) == _bare(wanted)
    if file_format != "tsv":  # its rows are segments, which may overlap
        assert all(end is None or start < end for start, end, _ in read)
        assert all((before[1] or before[0]) <= after[0] for before, after in pairwise(read))
    if file_format in ("srt", "vtt"):
        events = pysubs2.SSAFile.from_string(file.decode(), file_format)
        assert len(events) == len(read)


def _bare(lines: list[str]) -> list[str]:
    """The characters, but for what says who speaks. People who speak at once may be in another order."""
    return sorted(_SPEAKER.sub("", letters(lines)))


@given(corrected(), st.sampled_from(["ja", "th", "ar", "en"]))
def test_no_script_loses_text(segments: tuple[EditedSegment, ...], language: str) -> None:
    transcript = Transcript("transcribe", "demo", language, RECORDING, ALL, segments)
    for file_format in ("srt", "vtt", "ass", "ttml", "lrc"):
        file = render_transcript(transcript, Options(word_level=True), file_format).decode()
        read = READERS[file_format](_TIMESTAMP.sub("", file))
        shown = comparable(["".join(line for _, _, lines in read for line in lines)], file_format)
        wanted = comparable(["".join(part.text for part in segments)], file_format)
        assert _bare(shown) == _bare(wanted), file_format
