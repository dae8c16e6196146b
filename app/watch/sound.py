"""The sound of large recordings, in much smaller files: a film need not travel with its pictures."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.client.answers import NotRead, Refused
from app.errors import ProcessCrashed, ProcessStuck
from app.scheduling.process import ChildProcess
from workers import runtime
from workers.media import streams
from workers.messages import RecordingRefused

LARGE_BYTES = 200 * 10**6  # recordings of this size and above are sent as sound
_NICENESS = 15
_START_DEADLINE_S = 120.0
_DEADLINE_S = 4 * 3600.0  # a network mount may be slow


class SoundExtractor:
    """Extracts sound in child processes: an untrusted file may crash a decoder."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for this process alone. Files that a killed process left there are removed."""
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    @asynccontextmanager
    async def sound_of(self, recording: Path) -> AsyncIterator[Path]:
        """The sound of a recording, in a file for the time of the block.

        Raises Refused if there is none, and NotRead if a file cannot be read or written.
        """
        target = self._folder / f"{uuid.uuid4().hex}.flac"
        try:
            await self._extract(recording, target)
            yield target
        finally:
            await asyncio.to_thread(target.unlink, missing_ok=True)

    async def _extract(self, recording: Path, target: Path) -> None:
        child = ChildProcess(runtime.initialise, "", _NICENESS)
        try:
            await child.start()
            await child.call(streams.prepare, deadline_s=_START_DEADLINE_S)
            await child.call(streams.extract_sound, str(recording), str(target), deadline_s=_DEADLINE_S)
        except RecordingRefused as error:
            raise Refused(error.message) from None
        except (ProcessCrashed, ProcessStuck, MemoryError):
            raise Refused(
                "The file makes the decoder crash or hang. Convert it to WAV, FLAC or MP3."
            ) from None
        except OSError as error:
            raise NotRead(f"its sound cannot be extracted into {self._folder}: {error.strerror}") from None
        finally:
            await child.close()
