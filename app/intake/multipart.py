"""The parts of a multipart body: text fields and one file, as a push parser finds them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.multipart import parse_options_header

from app.common.errors import InvalidInput
from app.intake.file_sink import FileSink

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_FIELD_BYTES = 1 << 20  # all text fields together
MAX_LARGE_FIELD_BYTES = 16 << 20  # all large text fields together
MAX_PARTS = 256
MAX_FILENAME_CHARS = 255


@dataclass(slots=True)
class _Part:
    """The part that is being parsed."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    header_name: bytearray = field(default_factory=bytearray)
    header_value: bytearray = field(default_factory=bytearray)
    name: str = ""
    text: bytearray | None = None  # of a text field
    sink: FileSink | None = None  # of the file


@dataclass(slots=True)
class Parts:
    """Callbacks for a `MultipartParser`. Each may raise InvalidInput, which passes through the parser.

    The name of its field identifies the file, as some clients send no filename. Files in other fields are
    ignored. `large_fields`: names of text fields that have a larger limit of their own.
    """

    file_field: str
    open_sink: Callable[[str, bool], FileSink]  # by its filename, and whether that or a type describes it
    large_fields: Collection[str] = frozenset()
    fields: dict[str, list[str]] = field(default_factory=dict)
    _count: int = 0
    _field_bytes: int = 0
    _large_bytes: int = 0
    _part: _Part = field(default_factory=_Part)

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers_finished,
            "on_part_data": self._on_data,
            "on_part_end": self._on_part_end,
        }

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._part.header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.header_value += data[start:end]

    def _on_header_end(self) -> None:
        part = self._part
        part.headers[bytes(part.header_name).lower()] = bytes(part.header_value)
        part.header_name.clear()
        part.header_value.clear()

    def _on_headers_finished(self) -> None:
        self._count += 1
        if self._count > MAX_PARTS:
            raise InvalidInput(f"The multipart body has over {MAX_PARTS} parts.")
        part = self._part
        _, options = parse_options_header(part.headers.get(b"content-disposition"))
        if b"name" not in options:
            raise InvalidInput('A part of the multipart body has no name (Content-Disposition: …; name="…").')
        part.name = _decode(options[b"name"], "The name of a field")
        filename = options.get(b"filename")
        if part.name == self.file_field:
            media_type = part.headers.get(b"content-type", b"text/plain")
            described = filename is not None or not media_type.lower().startswith(b"text/")
            part.sink = self.open_sink(base_name(filename or b""), described)
        elif filename is None:
            part.text = bytearray()

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        if part.sink is not None:
            part.sink.feed(data[start:end])
        elif part.text is not None:
            name = part.name
            if name in self.large_fields:
                self._large_bytes += end - start
                if self._large_bytes > MAX_LARGE_FIELD_BYTES:
                    raise InvalidInput(
                        f"The fields `{name}` exceed {MAX_LARGE_FIELD_BYTES} bytes together. Send less.",
                        param=name,
                    )
            else:
                self._field_bytes += end - start
                if self._field_bytes > MAX_FIELD_BYTES:
                    raise InvalidInput(f"The text fields exceed {MAX_FIELD_BYTES} bytes.", param=name)
            part.text += data[start:end]

    def _on_part_end(self) -> None:
        part, self._part = self._part, _Part()
        if part.text is not None:
            text = _decode(bytes(part.text), f"`{part.name}`")
            self.fields.setdefault(part.name, []).append(text)


def _decode(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} is not valid UTF-8.") from None


def base_name(filename: bytes) -> str:
    """The name without folders and control characters, for people to read; never used as a path."""
    name = filename.decode(errors="replace").replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(char for char in name if char.isprintable())[:MAX_FILENAME_CHARS]
