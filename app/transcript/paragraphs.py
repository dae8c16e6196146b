"""A transcript as paragraphs, for readers. Pure.

The rule is that of the page's text view, `app/web/job/transcript_rows.js`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.transcript.edited import speaker_of, split_turns
from app.transcript.formats.common import plain_line
from app.transcript.text.scripts import joined_lines
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Segment

_PAUSE = 2 * SAMPLE_RATE
_LONG_CHARS, _MOST_CHARS = 500, 1000  # a long paragraph ends with its sentence, or at once
_SENTENCE_END = re.compile(r"[.!?…。！？।۔؟][\"'”’»)]*\s*$")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """What one speaker says in a row, in one language, on one line. `start` in samples of the recording."""

    start: int
    speaker: str | None
    language: str  # of the text, ISO 639-1
    text: str


def paragraphs_of(transcript: Transcript) -> Iterator[Paragraph]:
    """In order. A new one begins with another speaker or language, after a pause, and where one is long."""
    failed = sorted(start for start, _ in transcript.failed_spans)
    run: list[Segment] = []
    length = 0
    for segment in split_turns(transcript.segments):
        if not plain_line(segment.text):
            continue
        has_gap = bool(failed) and failed[0] <= segment.start
        is_other = bool(run) and _language(segment, transcript) != _language(run[-1], transcript)
        while failed and failed[0] <= segment.start:
            failed.pop(0)
        if run and (has_gap or is_other or _ends_before(segment, run[-1], length)):
            yield _paragraph(run, transcript)
            run, length = [], 0
        run.append(segment)
        length += len(segment.text.strip())
    if run:
        yield _paragraph(run, transcript)


def _ends_before(segment: Segment, before: Segment, length: int) -> bool:
    """Whether a paragraph of `length` characters ends between two segments."""
    return (
        speaker_of(segment) != speaker_of(before)
        or segment.start - before.end >= _PAUSE
        or length > _MOST_CHARS
        or (length > _LONG_CHARS and _SENTENCE_END.search(before.text) is not None)
    )


def _language(segment: Segment, transcript: Transcript) -> str:
    """That of the segment's text."""
    is_translated = transcript.task == "translate"
    return transcript.text_language if is_translated else segment.language or transcript.language


def _paragraph(run: list[Segment], transcript: Transcript) -> Paragraph:
    text = joined_lines(plain_line(segment.text) for segment in run)
    return Paragraph(run[0].start, speaker_of(run[0]), _language(run[0], transcript), text)
