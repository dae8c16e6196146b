"""SubRip and WebVTT."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from app.common.languages import language_tag
from app.transcript.cues.timing import Cue
from app.transcript.formats.common import (
    FileCue,
    FileStyle,
    Run,
    clock,
    milliseconds,
    plain_lines,
    runs_of,
    timed_cues,
)
from app.transcript.text.direction import embed, embed_ambiguous, is_mixed
from app.transcript.timeline import Transcript

_BYTE_ORDER_MARK = "\ufeff"
_CLOCK_COLON = re.compile(r":(?=\d\d[.,]\d)")
_TWO_CLOCKS = re.compile(r"\d:\d\d[.,]\d.*\d:\d\d[.,]\d")

_TAG = re.compile("<([^<>]*)>")
_OVERRIDE = re.compile("{([^{}]*)}")
_ASS_ESCAPE = re.compile(r"\\(?=[Nnh])")


def write_srt(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """SubRip; no cue if there are no cues.

    Only lines with left-to-right letters get characters for their direction: players of SRT find that of
    other lines themselves, and programs that compare or search the text meet no invisible characters.
    """
    if style.srt_bom:
        yield _BYTE_ORDER_MARK
    for number, cue in enumerate(srt_cues(cues, style), start=1):
        marked = [
            line
            if line.isascii() or not is_mixed(line, cue.language or transcript.text_language)
            else embed(line)
            for line in cue.lines
        ]
        block = _block(number, cue, marked, ",")
        yield block.replace("\n", "\r\n") if style.srt_crlf else block


def srt_cues(cues: Iterable[Cue], style: FileStyle) -> Iterator[FileCue]:
    return timed_cues(cues, safe_lines=lambda lines: _without_markup(_unmistakable(lines)))


def write_vtt(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """WebVTT; only its header if there are no cues. `word_level`: a timestamp before each word.

    Each line is a voice span, unless the text itself says who speaks, and a language span (4.2.2) if its
    language is not that of the transcript.
    """
    yield "WEBVTT\n\n"
    for number, cue in enumerate(vtt_cues(cues, style), start=1):
        lines = (
            _with_timestamps(cue) if style.word_level else (escape(line, quote=False) for line in cue.lines)
        )
        marked = embed_ambiguous(cue.lines, lines, cue.language or transcript.text_language)
        if cue.language not in (None, transcript.text_language):
            marked = [f"<lang {language_tag(cue.language)}>{line}</lang>" for line in marked]
        if style.prefix is None:
            marked = [_voiced(line, name) for line, name in zip(marked, cue.speakers, strict=True)]
        yield _block(number, cue, marked, ".")


def vtt_cues(cues: Iterable[Cue], style: FileStyle) -> Iterator[FileCue]:
    return timed_cues(cues, safe_lines=_unmistakable)


def _block(number: int, cue: FileCue, lines: Sequence[str], decimal_sign: str) -> str:
    times = " --> ".join(clock(time, decimal_sign=decimal_sign) for time in (cue.start, cue.end))
    text = "\n".join(lines)
    return f"{number}\n{times}\n{text}\n\n"


def _voiced(line: str, name: str) -> str:
    """The line as a voice span (WebVTT, 4.2.2), if somebody is known to speak it."""
    return f"<v {escape(_CLOCK_COLON.sub('∶', name), quote=False)}>{line}</v>" if name else line


def _with_timestamps(cue: FileCue) -> Iterator[str]:
    """The lines of a cue, with a timestamp before each run that has a time of its own.

    Timestamps must increase, and lie inside the cue (WebVTT, 4.2.2). A run without one appears with the
    run before it.
    """
    latest = cue.start

    def timestamped(run: Run) -> str:
        nonlocal latest
        text = escape(run.text, quote=False)
        time = milliseconds(run.unit.start) if run.unit else 0
        if not latest < time < cue.end:
            return text
        latest = time
        return f"<{clock(time)}>{text}"

    for runs in runs_of(cue.lines, cue.units):
        yield "".join(map(timestamped, runs))


def _unmistakable(lines: Sequence[str]) -> list[str]:
    """The lines of a cue, without any that a reader would take for the number or the timing line of a cue.

    pysubs2 and others take a number on the last line for the number of the next cue, and any line with
    two timestamps for a timing line. Such timestamps get the colon that mathematicians write for a ratio.
    """
    safe: list[str] = []
    for line in plain_lines(lines):
        if _TWO_CLOCKS.search(line):
            line = _CLOCK_COLON.sub("∶", line)
        if safe and line.isdigit():
            safe[-1] += f" {line}"
        else:
            safe.append(line)
    return safe


def _without_markup(lines: Sequence[str]) -> list[str]:
    """The lines without anything that players of SRT interpret.

    SRT has no escapes. Players disagree on entities; they show some tags, and drop others, unknown ones with
    their content. Text that looks like markup is therefore written with similar characters: `<i>` as
    `‹i›`, `{\\an8}` as `(\\an8)`, `-->` as `→`, `\\N` as `∖N`. All other text stays, such as `3 < 5`.
    """
    if not lines:
        return []
    text = "\n".join(lines).replace("-->", "→")
    for markup, similar in ((_TAG, r"‹\1›"), (_OVERRIDE, r"(\1)")):
        while markup.search(text):  # nested markup, from the inside out
            text = markup.sub(similar, text)
    return _ASS_ESCAPE.sub("∖", text).split("\n")
