"""What a media worker is asked that sees no file of the front end: it runs on another machine.

Files arrive in blocks, and samples with the calls that need them. Here they are files without a name, which
the functions of `tasks` and `embed` open as /proc/self/fd/N. The system removes them when this process ends,
however it ends. Linux only.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from typing import IO

from workers.media import tasks
from workers.media.tasks import DecodeRequest, DecodeStep
from workers.media.voices import embed
from workers.messages import BYTES_PER_SAMPLE, Span, SpeakerModel

_MARGIN_BYTES = 256 << 20  # that stay free on the disk for temporary files


@dataclass(frozen=True, slots=True)
class RemoteStep:
    """The progress of decoding a recording, and the samples that are new."""

    step: DecodeStep
    offset: int  # of the samples in the file of each channel, in bytes
    pcm: tuple[bytes, ...]  # of each channel that is written


@dataclass(slots=True)
class _Output:
    """The decoded audio of a recording: a file for each channel, which has the samples of one step."""

    files: list[FileIO]
    offset: int  # in bytes; the samples before have been taken

    def take(self, step: DecodeStep) -> RemoteStep:
        """The samples that a step has written."""
        written = self.files[: step.channels]
        offset = self.offset
        pcm = tuple(os.pread(file.fileno(), max(0, _size(file) - offset), offset) for file in written)
        for file in written:
            file.truncate(0)  # the decoder goes on at its own position
        self.offset += max(map(len, pcm), default=0)
        return RemoteStep(step, offset, pcm)

    def close(self) -> None:
        for file in self.files:
            file.close()


_files: dict[str, IO[bytes]] = {}  # received, by name
_outputs: dict[str, _Output] = {}  # by session


def begin_file(name: str, size: int) -> bool:
    """Begin to receive a file of `size` bytes. Returns False if the disk here has too little space for it.

    Raises OSError.
    """
    drop_file(name)
    if shutil.disk_usage(tempfile.gettempdir()).free < size + _MARGIN_BYTES:
        return False
    file = _files[name] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open until `drop_file`
    if size:
        os.posix_fallocate(file.fileno(), 0, size)
    return True


def receive_block(name: str, offset: int, block: bytes) -> None:
    """Receive a block of a file, at `offset` bytes. Raises OSError."""
    os.pwrite(_files[name].fileno(), block, offset)


def drop_file(name: str) -> None:
    """Forget a file, if it is there."""
    file = _files.pop(name, None)
    if file is not None:
        file.close()


def decode(session_id: str, request: DecodeRequest) -> RemoteStep:
    """As `tasks.decode`, of the file that was received under the name of the session.

    The files that the request names are those of the front end: each has one here. After the last step, and
    after an error, the source is forgotten.
    """
    if session_id not in _outputs:
        files = [_file_in_memory() for _ in request.pcm_paths]
        _outputs[session_id] = _Output(files, request.selection.start * BYTES_PER_SAMPLE)
    output = _outputs[session_id]
    paths = tuple(map(_path, output.files))
    try:
        request = replace(request, source=_path(_files[session_id]), pcm_paths=paths)
        step = tasks.decode(session_id, request)
        result = output.take(step)
    except BaseException:
        close(session_id)
        raise
    if step.finished:
        close(session_id)
    return result


def close(session_id: str) -> None:
    """Close a session of decoding, and forget its file."""
    tasks.close(session_id)
    drop_file(session_id)
    output = _outputs.pop(session_id, None)
    if output is not None:
        output.close()


def speech_probabilities(pcm: bytes, offset: int, start_frame: int, frames: int) -> bytes:
    """As `tasks.speech_probabilities`, of a recording with these samples at `offset` bytes."""
    with _recording(pcm, offset) as path:
        return tasks.speech_probabilities(path, start_frame, frames)


def embed_voices(pcm: bytes, offset: int, windows: Sequence[Span], model: SpeakerModel) -> bytes:
    """As `embed.embed`, of a recording with these samples at `offset` bytes.

    The model's file was received under its identity.
    """
    with _recording(pcm, offset) as path:
        return embed.embed(path, windows, model, _path(_files[model.identity]))


@contextmanager
def _recording(pcm: bytes, offset: int) -> Iterator[str]:
    """A file with a hole before `offset`, so that all positions are those in the recording."""
    with _file_in_memory() as file:
        os.pwrite(file.fileno(), pcm, offset)
        yield _path(file)


def _file_in_memory() -> FileIO:
    return FileIO(os.memfd_create("samples"), "r+b")


def _path(file: IO[bytes] | FileIO) -> str:
    return f"/proc/self/fd/{file.fileno()}"


def _size(file: FileIO) -> int:
    return os.fstat(file.fileno()).st_size
