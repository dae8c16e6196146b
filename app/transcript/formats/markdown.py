"""Markdown: a title, and a paragraph for what each speaker says in a row."""

import re
from collections.abc import Iterable, Iterator

from app.transcript.cues.timing import Cue
from app.transcript.formats.common import FileStyle
from app.transcript.paragraphs import paragraphs_of
from app.transcript.timeline import Transcript

# What CommonMark takes for markup inside a line, and at the start of one. GitHub adds `~` and `$`.
_INSIDE = re.compile(r"[\\`*_\[\]<~$]|&(?=[#\w])")
_NUMBER = re.compile(r"\d{1,9}[.)]")


def write_md(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """CommonMark. Text that looks like markup is escaped."""
    if heading := style.heading:
        yield f"# {_escaped(heading).replace('#', chr(92) + '#')}\n\n"
    for number, paragraph in enumerate(paragraphs_of(transcript), start=1):
        text = _escaped(paragraph.text)
        lead = style.time_of(paragraph.start)
        if name := style.name_of(paragraph.speaker):
            lead += f"**{_escaped(name)}** "
        blank = "\n" if number > 1 else ""
        yield f"{blank}{style.numeral(number)}{lead}{text if lead else _at_start(text)}\n"


def _escaped(text: str) -> str:
    return _INSIDE.sub(r"\\\g<0>", text)


def _at_start(text: str) -> str:
    """Escaped text that begins a line, and neither a list, a quote, a heading nor a rule."""
    if text[0] in "-+>#":
        return f"\\{text}"
    if number := _NUMBER.match(text):
        return f"{text[: number.end() - 1]}\\{text[number.end() - 1 :]}"
    return text
