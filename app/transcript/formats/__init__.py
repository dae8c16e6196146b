"""The formats of files that transcripts can be written as. One module writes each family of them.

None of these is imported here: the command line lists the formats, and a shell waits for it.
"""

from dataclasses import dataclass

SCC_COLUMNS = 32
STL_COLUMNS = 37  # of 40: three control codes stand before the text of a row


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a transcript can be written as."""

    description: str  # in Markdown, for the documentation
    content_type: str  # for HTTP
    writer: str  # its module, and the function there; see `rendering.writer_of`
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
    "srt": Format("SubRip.", _text("application/x-subrip"), "srt_vtt.write_srt", names_speakers_in_text=True),
    "vtt": Format("WebVTT.", _text("text/vtt"), "srt_vtt.write_vtt"),
    "ass": Format("Advanced SubStation Alpha.", _text("text/x-ssa"), "ass.write_ass"),
    "ttml": Format("TTML in the text profile of IMSC 1.1.", _text("application/ttml+xml"), "ttml.write_ttml"),
    "scc": Format(
        "Scenarist closed captions (CEA-608, pop-on, 29.97 drop-frame): its own characters only.",
        _text("text/x-scc"),
        "scc.write_scc",
        max_line_chars=SCC_COLUMNS,
    ),
    "stl": Format(
        "EBU-STL (Tech 3264, teletext) at 25 frames per second, or 30 for a picture of that rate: Latin, "
        "Cyrillic, Arabic, Greek or Hebrew.",
        "application/x-ebu-stl",
        "stl.write_stl",
        max_line_chars=STL_COLUMNS,
    ),
    "txt": Format(
        "A line for each segment, without times.",
        _text("text/plain"),
        "records.write_txt",
        has_cues=False,
        names_speakers_in_text=True,
    ),
    "tsv": Format(
        "A line for each segment, with its times (ms).",
        _text("text/tab-separated-values"),
        "records.write_tsv",
        has_cues=False,
    ),
    # It has no type of its own.
    "lrc": Format("LRC, as players of music show it.", _text("text/plain"), "lrc.write_lrc"),
    "json": Format(
        "The text. The command line adds segments, words, and where somebody speaks.",
        _text("application/json"),
        "records.write_json",
        has_cues=False,
    ),
}
