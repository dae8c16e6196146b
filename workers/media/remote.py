"""What a media worker is asked that sees no file of the front end: it runs on another machine.

Files arrive in blocks, and samples with the calls that need them. Here they are files without a name, which
the functions of `tasks` and `embed` open as /proc/self/fd/N. The system removes them when this process ends,
however it ends. Linux only.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from typing import IO

from workers.media import sessions, tasks
from workers.media.tasks import DecodeRequest
from workers.media.voices import embed
from workers.messages import BYTES_PER_SAMPLE, Decoded, Span, SpeakerModel

_MARGIN_BYTES = 256 << 20  # that stay free on the disk for temporary files


@dataclass(frozen=True, slots=True)
class RemoteStep:
    """The progress of decoding a recording, and the samples that are new."""

    step: Decoded
    offset: int  # of the samples in the file of each channel, in bytes
    pcm: tuple[bytes, ...]  # of each channel that is written


class _Decoding:
    """The decoding of a recording: a file for each channel, which has the samples of one step."""

    def __init__(self, session_id: str, request: DecodeRequest) -> None:
        self.finished = False
        self._id = session_id
        self._files = [_file_in_memory() for _ in request.pcm_paths]
        self._offset = request.selection.start * BYTES_PER_SAMPLE  # the samples before have been taken
        self._request = replace(request, pcm_paths=tuple(map(_path, self._files)))

    def advance(self, max_samples: int, max_declared: float) -> RemoteStep:
        """The next step, and the samples that it has written."""
        request = replace(self._request, source=_path(_received[self._id]))
        step = tasks.decode(self._id, request, max_samples, max_declared)
        written, offset = self._files[: step.files], self._offset
        pcm = tuple(os.pread(file.fileno(), max(0, _size(file) - offset), offset) for file in written)
        for file in written:
            file.truncate(0)  # the decoder goes on at its own position
        self._offset += max(map(len, pcm), default=0)
        self.finished = step.finished
        return RemoteStep(step, offset, pcm)

    def close(self) -> None:
        close(self._id)
        for file in self._files:
            file.close()


_received: dict[str, IO[bytes]] = {}  # files by name


def begin_file(name: str, size: int) -> bool:
    """Begin to receive a file of `size` bytes. Returns False if the disk here has too little space for it.

    Raises OSError.
    """
    drop_file(name)
    if shutil.disk_usage(tempfile.gettempdir()).free < size + _MARGIN_BYTES:
        return False
    file = _received[name] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open until `drop_file`
    if size:
        os.posix_fallocate(file.fileno(), 0, size)
    return True


def receive_block(name: str, offset: int, block: bytes) -> None:
    """Receive a block of a file, at `offset` bytes. Raises OSError."""
    os.pwrite(_received[name].fileno(), block, offset)


def drop_file(name: str) -> None:
    """Forget a file, if it is there."""
    file = _received.pop(name, None)
    if file is not None:
        file.close()


def decode(session_id: str, request: DecodeRequest, max_samples: int, max_declared: float) -> RemoteStep:
    """As `tasks.decode`, of the file that was received under the name of the session.

    The paths of the request are those of another machine; their number counts. After the last step, and after
    an error, the file is forgotten.
    """
    with sessions.session(_remote(session_id), lambda: _Decoding(session_id, request)) as decoding:
        return decoding.advance(max_samples, max_declared)


def close(session_id: str) -> None:
    """Close a session of decoding, and forget its file."""
    sessions.close(_remote(session_id))
    sessions.close(session_id)
    drop_file(session_id)


def _remote(session_id: str) -> str:
    """The session of which that of the decoder is a part."""
    return f"remote {session_id}"


def speech_probabilities(channels: Sequence[bytes], offset: int, start_frame: int, frames: int) -> bytes:
    """As `tasks.speech_probabilities`, of a recording with these samples at `offset` bytes.

    `channels`: the one to examine, and those beside it.
    """
    with ExitStack() as opened:
        path, *beside = [opened.enter_context(_recording(pcm, offset)) for pcm in channels]
        return tasks.speech_probabilities(path, start_frame, frames, *beside)


def embed_voices(pcm: bytes, offset: int, windows: Sequence[Span], model: SpeakerModel) -> bytes:
    """As `embed.embed`, of a recording with these samples at `offset` bytes.

    The model's file was received under its identity.
    """
    with _recording(pcm, offset) as path:
        return embed.embed(path, windows, model, _path(_received[model.identity]))


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
