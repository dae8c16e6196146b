"""Reads the headers of recordings in a child process: an untrusted file may crash FFmpeg."""

import asyncio
from pathlib import Path

from app.errors import ProcessCrashed, ProcessStuck
from app.scheduling.process import ChildProcess
from workers import runtime
from workers.media import streams
from workers.media.streams import Streams

_NICENESS = 15
_DEADLINE_S = 120.0  # a network mount may be slow
_UNKNOWN = Streams(0.0, ())


class HeaderReader:
    """Reads one file at a time. The process starts with the first one."""

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
                    self._child = ChildProcess(runtime.initialise, "", _NICENESS)
                    await self._child.start()
                    await self._child.call(streams.prepare, deadline_s=_DEADLINE_S)
                return await self._child.call(streams.read_streams, str(recording), deadline_s=_DEADLINE_S)
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
