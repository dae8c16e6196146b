"""The formats of files that transcripts can be written as. One module writes each family of them.

None of these is imported here: the command line lists the formats, and a shell waits for it.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a transcript can be written as."""

    description: str  # in Markdown, for the documentation
    content_type: str  # for HTTP
    writer: str  # its module, and the function there; see `rendering.writer_of`
    cues: str | None = None  # makes those of the file; see `rendering.file_cues`. Others list segments
    max_line_chars: int | None = None  # what the format can hold
    names_speakers_in_text: bool = False  # the others have other means, or none
    is_document: bool = False  # for readers: has the options `times` and `speakers`
    loads_library: bool = False  # which the server keeps out of its process

    @property
    def has_cues(self) -> bool:
        return self.cues is not None

    @property
    def media_type(self) -> str:
        """The content type without parameters."""
        return self.content_type.partition(";")[0]


_ROWS = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
FORMATS: dict[str, Format] = {name: Format(**row) for name, row in _ROWS.items()}
DOCUMENT_FORMATS = tuple(name for name, form in FORMATS.items() if form.is_document)
SCC_COLUMNS: int = _ROWS["scc"]["max_line_chars"]
STL_COLUMNS: int = _ROWS["stl"]["max_line_chars"]
