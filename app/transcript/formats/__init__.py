"""Transcripts as files: one module for each family of formats, and the registry that names them all."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.transcript.cues import Cue
from app.transcript.formats.ass import write_ass
from app.transcript.formats.lrc import write_lrc
from app.transcript.formats.records import write_json, write_tsv, write_txt
from app.transcript.formats.srt_vtt import write_srt, write_vtt
from app.transcript.formats.ttml import write_ttml
from app.transcript.timeline import Transcript


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a transcript can be written as.

    `write` takes the transcript and its cues, in order, and yields the text of the file in parts. Formats
    without cues ignore them.
    """

    media_type: str
    write: Callable[[Transcript, Iterable[Cue]], Iterator[str]]


# By name, which is also the suffix of the file.
FORMATS: dict[str, Format] = {
    "srt": Format("application/x-subrip", write_srt),
    "vtt": Format("text/vtt", write_vtt),
    "ass": Format("text/x-ssa", write_ass),
    "ttml": Format("application/ttml+xml", write_ttml),
    "lrc": Format("text/plain", write_lrc),  # it has no type of its own
    "txt": Format("text/plain", write_txt),
    "tsv": Format("text/tab-separated-values", write_tsv),
    "json": Format("application/json", write_json),
}
