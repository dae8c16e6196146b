"""Segments and speech for tests: written in seconds, or drawn by hypothesis."""

from collections.abc import Iterable
from pathlib import Path

import ttconv.model
from hypothesis import strategies as st

from app.transcript.cues.lines import CueStyle
from app.transcript.cues.timing import Cue
from app.transcript.edited import speaker_of
from app.transcript.formats import FORMATS
from app.transcript.formats.common import FileStyle
from app.transcript.rendering import writer_of
from app.transcript.timeline import ClipResult, Transcript
from tests.cases import read_cases
from workers.messages import SAMPLE_RATE, Segment, Span, Word

DATA = Path(__file__).parents[1] / "data"
BREAKS = read_cases("breaks")


def render(
    transcript: Transcript, cues: Iterable[Cue], file_format: str, style: FileStyle = FileStyle()
) -> str:
    """The file as text."""
    return render_bytes(transcript, cues, file_format, style).decode()


def render_bytes(
    transcript: Transcript, cues: Iterable[Cue], file_format: str, style: FileStyle = FileStyle()
) -> bytes:
    parts = writer_of(FORMATS[file_format])(transcript, cues, style)
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in parts)


def text_in(element: ttconv.model.ContentElement) -> str:
    """The text of an element of ttconv, with its line breaks."""
    if isinstance(element, ttconv.model.Br):
        return "\n"
    if isinstance(element, ttconv.model.Text):
        return element.get_text()
    return "".join(map(text_in, element))


def samples(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)


STYLE = CueStyle(
    max_line_chars=42, max_lines=2, max_cps=20, min_samples=samples(0.83), max_samples=samples(7)
)


def span(start: float, end: float) -> Span:
    return samples(start), samples(end)


ALL = (span(0, 1000),)  # speech wherever a test has segments

styles = st.builds(
    CueStyle,
    max_line_chars=st.integers(10, 60),
    max_lines=st.integers(1, 4),
    max_cps=st.floats(5, 100),
    min_samples=st.integers(samples(0.1), samples(5)),
    max_samples=st.integers(samples(1), samples(30)),
    min_gap=st.integers(0, samples(1)),
    fps=st.sampled_from([None, 23.976, 25, 60]),
    start_offset=st.integers(0, samples(1)),
)


def shown_cues(cues: Iterable[Cue]) -> str:
    """Cues as text: times in seconds, a bar between lines."""
    return "".join(
        f"{cue.start / 16_000:.2f} {cue.end / 16_000:.2f} {' | '.join(cue.lines)}\n" for cue in cues
    )


def segment(start: float, end: float, text: str, *words: tuple[str, float, float]) -> Segment:
    """A segment; times in seconds."""
    return raw_segment(*span(start, end), text, [Word(word, *span(*times), 0.9) for word, *times in words])


def raw_segment(start: int, end: int, text: str, words: list[Word] | None = None) -> Segment:
    return Segment(
        start,
        end,
        text,
        tokens=(),
        temperature=0.0,
        avg_logprob=-0.2,
        compression_ratio=1.1,
        no_speech_prob=0.01,
        words=tuple(words or ()),
    )


def spoken(start: float, end: float, text: str) -> Segment:
    """A segment whose words are spoken evenly from start to end."""
    words = [f" {word}" for word in text.split()]
    step = (end - start) / len(words)
    times = [(word, start + n * step, start + (n + 1) * step) for n, word in enumerate(words)]
    return segment(start, end, "".join(words), *times)


def clip_result(*segments: Segment) -> ClipResult:
    return ClipResult("en", (), segments)


def letters(texts: list[str]) -> str:
    """All characters but white space. None may get lost."""
    return "".join("".join(texts).split())


def words_by_speaker(cues: Iterable[Cue]) -> dict[str | None, str]:
    """What each speaker says in the cues: all characters but white space and dashes."""
    said: dict[str | None, str] = {}
    for cue in cues:
        for speaker, line in zip(cue.speakers, cue.lines, strict=True):
            said[speaker] = said.get(speaker, "") + _words(line)
    return said


def spoken_words(segments: Iterable[Segment]) -> dict[str | None, str]:
    """The same of the segments, which have no `turns`."""
    said: dict[str | None, str] = {}
    for part in segments:
        speaker = speaker_of(part)
        said[speaker] = said.get(speaker, "") + _words(part.text)
    return said


def _words(text: str) -> str:
    return letters([text]).replace("-", "")


_COMMON = st.sampled_from(BREAKS["drawn_words"])
_WORDS = st.one_of(
    _COMMON,
    st.text("abcdefghij", min_size=1, max_size=60),
)
_UNSPACED = st.text("你好。、，「」世界ー々っ กำเ้ตลาด ភាសាabc12(", min_size=1, max_size=8)
_TEXTS = st.one_of(_WORDS.map(lambda word: f" {word}"), _UNSPACED)


@st.composite
def clip_segments(draw: st.DrawFn) -> Segment:
    """A segment with any times, with or without words."""
    times = st.integers(-SAMPLE_RATE, 12 * SAMPLE_RATE)
    texts = draw(st.lists(_TEXTS, max_size=25))
    words = [Word(text, draw(times), draw(times), 0.5) for text in texts] if draw(st.booleans()) else []
    return raw_segment(draw(times), draw(times), "".join(texts), words)


@st.composite
def clip_results(draw: st.DrawFn) -> ClipResult:
    return clip_result(*draw(st.lists(clip_segments(), max_size=5)))


@st.composite
def speech_spans(draw: st.DrawFn) -> tuple[Span, ...]:
    lengths = draw(st.lists(st.integers(1, 2 * SAMPLE_RATE), max_size=20))
    ends = [sum(lengths[: index + 1]) for index in range(len(lengths))]
    return tuple(zip(ends[0::2], ends[1::2], strict=False))
