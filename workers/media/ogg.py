"""The parts of an Ogg file that FFmpeg decodes one by one only: it gives up where another format begins."""

from pathlib import Path

_HEADER_BYTES = 27  # of a page, before the lengths of its segments
_BEGINS = 2  # flag of the first page of a stream
# By the first bytes of a stream: the part of its first page that must stay the same.
_SETTINGS = {b"OpusHead": slice(9, 10), b"\x01vorbis": slice(11, 16), b"\x7fFLAC": slice(27, 31)}


def formats(path: Path) -> list[tuple[int, int | None]]:
    """From which byte to which each part is of one format. None: to the end. Raises OSError.

    Streams whose sound has the same format are one part, also if they follow each other.
    """
    starts = [0]
    last: list[tuple[bytes, bytes]] = []
    there: list[tuple[bytes, bytes]] = []
    is_beginning = False
    begin = position = 0
    with path.open("rb") as file:
        while (header := file.read(_HEADER_BYTES))[:4] == b"OggS" and len(header) == _HEADER_BYTES:
            lengths = file.read(header[26])
            begins = bool(header[5] & _BEGINS)
            if begins:
                if not is_beginning:
                    begin, there = position, []
                there.append(_settings(file.read(sum(lengths))))
            elif is_beginning:
                if last not in ([], there):
                    starts.append(begin)
                last = there
            is_beginning = begins
            position = file.seek(position + _HEADER_BYTES + len(lengths) + sum(lengths))
    return list(zip(starts, [*starts[1:], None], strict=True))


def _settings(page: bytes) -> tuple[bytes, bytes]:
    """What tells the format of a stream, from the content of its first page."""
    for mark, settings in _SETTINGS.items():
        if page.startswith(mark):
            return mark, page[settings]
    return page[:8], b""  # that of another codec, or of pictures
