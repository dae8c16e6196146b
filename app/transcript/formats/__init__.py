"""Transcripts as files: one module for each family of formats, and the registry that names them all."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.transcript.cues import Cue
from app.transcript.formats import scc, stl
from app.transcript.formats.ass import write_ass
from app.transcript.formats.common import FileStyle
from app.transcript.formats.lrc import write_lrc
from app.transcript.formats.records import write_json, write_tsv, write_txt
from app.transcript.formats.scc import write_scc
from app.transcript.formats.srt_vtt import write_srt, write_vtt
from app.transcript.formats.stl import write_stl
from app.transcript.formats.ttml import write_ttml
from app.transcript.timeline import Transcript

__all__ = ["FORMATS", "FileStyle", "Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a transcript can be written as.

    `write` takes the transcript and its cues, in order, and yields the file in parts: text in UTF-8, or the
    bytes of a binary file. It raises `UnsuitableFormat` if the format cannot hold the transcript.
    """

    description: str  # in Markdown, for the documentation
    content_type: str  # for HTTP
    write: Callable[[Transcript, Iterable[Cue], FileStyle], Iterator[str | bytes]]
    has_cues: bool = True  # the others consist of segments
    max_line_chars: int | None = None  # what the format can hold
    names_speakers_in_text: bool = False  # the others have other means, or none

    @property
    def media_type(self) -> str:
        """The content type without parameters."""
        return self.content_type.partition(";")[0]


def _text(media_type: str) -> str:
    return f"{media_type}; charset=utf-8"


# By name, which is also the suffix of the file.
FORMATS: dict[str, Format] = {
    "srt": Format("SubRip.", _text("application/x-subrip"), write_srt, names_speakers_in_text=True),
    "vtt": Format("WebVTT.", _text("text/vtt"), write_vtt),
    "ass": Format("Advanced SubStation Alpha.", _text("text/x-ssa"), write_ass),
    "ttml": Format("TTML in the text profile of IMSC 1.1.", _text("application/ttml+xml"), write_ttml),
    "scc": Format(
        "Scenarist closed captions (CEA-608, pop-on, 29.97 drop-frame): its own characters only.",
        _text("text/x-scc"),
        write_scc,
        max_line_chars=scc.COLUMNS,
    ),
    "stl": Format(
        "EBU-STL (Tech 3264, teletext) at 25 frames per second, or 30 for a picture of that rate: Latin, "
        "Cyrillic, Arabic, Greek or Hebrew.",
        "application/x-ebu-stl",
        write_stl,
        max_line_chars=stl.COLUMNS,
    ),
    # It has no type of its own.
    "lrc": Format("LRC, as players of music show it.", _text("text/plain"), write_lrc),
    "txt": Format(
        "A line for each segment, without times.",
        _text("text/plain"),
        write_txt,
        has_cues=False,
        names_speakers_in_text=True,
    ),
    "tsv": Format(
        "A line for each segment, with its times (ms).",
        _text("text/tab-separated-values"),
        write_tsv,
        has_cues=False,
    ),
    "json": Format(
        "The text. The command line adds segments, words, and where somebody speaks.",
        _text("application/json"),
        write_json,
        has_cues=False,
    ),
}
