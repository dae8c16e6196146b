"""Reads the streams of recordings in child processes: an untrusted file may crash FFmpeg."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.client.answers import NotRead, Refused
from app.common.errors import ProcessCrashed, ProcessStuck
from app.pool.process import ChildProcess
from workers import runtime
from workers.media import streams
from workers.media.streams import Streams
from workers.messages import RecordingRefused, Warnings

LARGE_BYTES = 200 * 10**6  # recordings of this size and above are sent as sound
_NICENESS = 15
_HEADER_DEADLINE_S = 120.0  # a network mount may be slow
_SOUND_DEADLINE_S = 4 * 3600.0
_UNKNOWN = Streams(0.0, ())


async def _start() -> ChildProcess:
    """A process that can read streams. Raises ProcessCrashed and ProcessStuck."""
    child = ChildProcess(runtime.initialise, "", _NICENESS)
    try:
        await child.start()
        await child.call(streams.prepare, deadline_s=_HEADER_DEADLINE_S)
    except BaseException:
        await child.close()
        raise
    return child


class HeaderReader:
    """Reads the headers of one file at a time. The process starts with the first one."""

    def __init__(self) -> None:
        self._child: ChildProcess | None = None
        self._lock = asyncio.Lock()

    async def read(self, recording: Path) -> Streams:
        """The length and the subtitles of a recording; no length and no subtitles if its headers are broken.

        Raises OSError if the file cannot be read.
        """
        async with self._lock:
            try:
                if self._child is None:
                    self._child = await _start()
                call = self._child.call(streams.read_streams, str(recording), deadline_s=_HEADER_DEADLINE_S)
                return await call
            except (ValueError, MemoryError):
                return _UNKNOWN  # the service finds the words for what is wrong
            except (ProcessCrashed, ProcessStuck):
                await self.close()
                return _UNKNOWN

    async def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            await child.close()


class SoundExtractor:
    """Extracts the sound of large recordings: a film need not travel with its pictures."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for this process alone. Files that a killed process left there are removed."""
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    @asynccontextmanager
    async def sound_of(self, recording: Path) -> AsyncIterator[tuple[Path, Warnings]]:
        """The sound of a recording, in a file for the time of the block, and what is wrong with it.

        Raises Refused if there is none, and NotRead if a file cannot be read or written or no process starts.
        """
        target = self._folder / f"{uuid.uuid4().hex}.flac"
        try:
            yield target, await self._extract(recording, target)
        finally:
            await asyncio.to_thread(target.unlink, missing_ok=True)

    async def _extract(self, recording: Path, target: Path) -> Warnings:
        try:
            try:
                child = await _start()
            except (ProcessCrashed, ProcessStuck, MemoryError):
                raise NotRead("its sound cannot be extracted: the process for it does not start") from None
            try:
                return await child.call(
                    streams.extract_sound, str(recording), str(target), deadline_s=_SOUND_DEADLINE_S
                )
            finally:
                await child.close()
        except RecordingRefused as error:
            raise Refused(error.message) from None
        except (ProcessCrashed, ProcessStuck, MemoryError):
            raise Refused(
                "The file makes the decoder crash or hang. Convert it to WAV, FLAC or MP3."
            ) from None
        except OSError as error:
            raise NotRead(f"its sound cannot be extracted into {self._folder}: {error.strerror}") from None
