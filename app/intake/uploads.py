"""Uploads: a body goes to disk as it arrives, is hashed on the way, and is never held in memory.

The event loop only parses. Threads write and hash, about a mebibyte at a time, and the body is read no
faster than the disk takes it.
"""

import asyncio
import math
import re
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, MultipartState, parse_options_header

from app.common.errors import InvalidInput, UnsupportedContentType
from app.common.files import is_older
from app.common.ids import ID
from app.intake.disk import DiskSpace, disk_errors
from app.intake.file_sink import FileSink, too_large
from app.intake.multipart import MAX_FIELD_BYTES, MAX_LARGE_FIELD_BYTES, Parts, base_name
from app.telemetry.work import current_work

FEED_BYTES = 1 << 18  # parsed at once, and received: a huge chunk would block the event loop
OVERHEAD_BYTES = 2 * MAX_FIELD_BYTES  # that a body may have beside its file: fields, headers, boundaries
_LEFTOVER = re.compile(rf"({ID.pattern}(?:-\d+)?)(?:\.\d+)?")

Fields = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a client sent, complete on disk."""

    path: Path
    filename: str  # as the client calls it, without folders; may be empty
    size: int  # bytes
    sha256: str  # of the content, in hex
    raw_pcm: bool = False  # the file is bare int16 mono 16 kHz samples, not a media container

    def remove(self) -> None:
        """Delete the file, if it is still there."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Form:
    """A multipart body: its text fields in order of arrival, and its one file if there is one."""

    fields: dict[str, list[str]]
    file: Upload | None

    def remove(self) -> None:
        if self.file is not None:
            self.file.remove()


async def receive_form(
    stream: AsyncIterator[bytes],
    content_type: str,
    folder: Path,
    disk: DiskSpace,
    max_bytes: int,
    *,
    content_length: int | None = None,
    file_field: str = "file",
    before_file: Callable[[Fields], object] | None = None,
    durable: bool = False,
    large_fields: Collection[str] = frozenset(),
) -> Form:
    """Read a multipart body; its part called `file_field` becomes a file in `folder`.

    `max_bytes` limits the file. `content_length`: as the client declares it; a body that is too large, or
    for which `disk` has no space, is refused before it is read. `before_file` gets the fields that come
    before the file and may raise: so a client learns that its options are wrong before it uploads the file.
    `durable`: the file survives a power cut. `large_fields`: text fields with a limit of their own.

    Raises UnsupportedContentType, InvalidInput, TooLarge, DiskFull, and the exceptions of `stream` and
    `before_file`; no file is left then.
    """
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise UnsupportedContentType(
            f"This path takes multipart/form-data, not {content_type[:100] or 'a body without Content-Type'}."
        )
    if not options.get(b"boundary"):
        raise InvalidInput("The Content-Type names no multipart boundary.")
    overhead = OVERHEAD_BYTES + (MAX_LARGE_FIELD_BYTES if large_fields else 0)
    if content_length is not None and content_length > max_bytes + overhead:
        raise too_large(max_bytes, file_field)
    sinks: list[FileSink] = []

    def open_sink(filename: str, described: bool) -> FileSink:
        if sinks:
            raise InvalidInput(f"Send one `{file_field}`, not several.", param=file_field)
        if before_file is not None:
            before_file(parts.fields)
        path = folder / uuid.uuid4().hex
        sink = FileSink(path, filename, max_bytes, file_field, space, described=described, durable=durable)
        sinks.append(sink)
        return sink

    parts = Parts(file_field, open_sink, large_fields)
    with closing(disk.reserve(current_work().owner)) as space:
        await asyncio.to_thread(space.expect, content_length or 0)
        try:
            with disk_errors():
                parser = MultipartParser(options[b"boundary"], parts.callbacks())
                async for chunk in _limited(stream, max_bytes, file_field, overhead):
                    parser.write(chunk)
                    for sink in sinks:
                        await sink.drain()
                if parser.state != MultipartState.END:
                    raise InvalidInput("The multipart body ends before its closing boundary.")
                for sink in sinks:
                    await sink.finish()
        except BaseException as error:
            for sink in sinks:
                await sink.discard()
            if isinstance(error, FormParserError):
                raise InvalidInput(f"The multipart body is malformed: {error}.") from None
            raise
    uploads = [Upload(sink.path, sink.filename, sink.size, sink.hash.hexdigest()) for sink in sinks]
    return Form(parts.fields, next(iter(uploads), None))


async def receive_raw(
    stream: AsyncIterator[bytes],
    filename: str,
    folder: Path,
    disk: DiskSpace,
    max_bytes: int,
    *,
    content_length: int | None = None,
) -> Upload:
    """Read a body that is the recording itself into a file in `folder`, which survives a power cut.

    Parameters and errors are those of `receive_form`.
    """
    if content_length is not None and content_length > max_bytes:
        raise too_large(max_bytes, "file")
    name = base_name(filename.encode())
    path = folder / uuid.uuid4().hex
    with closing(disk.reserve(current_work().owner)) as space:
        await asyncio.to_thread(space.expect, content_length or 0)
        sink = FileSink(path, name or "recording", max_bytes, "file", space, described=True, durable=True)
        try:
            with disk_errors():
                async for chunk in _limited(stream, max_bytes, "file"):
                    sink.feed(chunk)
                    await sink.drain()
                await sink.finish()
        except BaseException:
            await sink.discard()
            raise
    return Upload(sink.path, name, sink.size, sink.hash.hexdigest())


def remove_leftovers(folder: Path, keep: Collection[str], before: float = math.inf) -> None:
    """Remove files that a killed process left in `folder`, except those named in `keep`.

    Only files with names like those of uploads are removed, which were last written `before` a Unix time (s),
    and decoded audio: a name has the epoch of a job's front end and the number of a channel after it.
    """
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        match = _LEFTOVER.fullmatch(path.name)
        if match and match[1] not in keep and path.is_file() and is_older(path, before):
            path.unlink(missing_ok=True)


async def _limited(
    stream: AsyncIterator[bytes], max_bytes: int, param: str, overhead: int = OVERHEAD_BYTES
) -> AsyncIterator[bytes]:
    """The chunks of `stream`, at most `FEED_BYTES` each. Raises TooLarge if the body is too large."""
    received = 0
    async for chunk in stream:
        received += len(chunk)
        if received > max_bytes + overhead:
            raise too_large(max_bytes, param)
        for start in range(0, len(chunk), FEED_BYTES):
            yield chunk[start : start + FEED_BYTES]
