"""Clips that were heard for a client which went away: it may come back for them."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from app.compression import pack, unpack
from workers.messages import ClipResult

ClipKey = tuple[int, int, str | None]  # first and last sample, and the language that was asked for

KEEP_S = 600.0  # clients retry after their own time-out, without saying that they do


class ClipResults(Protocol):
    """What has been heard of one recording with one set of options, clip by clip."""

    async def hear(self, clip: ClipKey, work: Callable[[], Coroutine[Any, Any, ClipResult]]) -> ClipResult:
        """The clip's result: what is known already, or else what `work` comes to."""

    def deaths(self, clip: ClipKey) -> int:
        """How many workers have died of a clip that they had alone in hand."""

    def died(self, clip: ClipKey, deaths: int) -> None:
        """Note a further death: there have been so many now."""


class CachedRecording:
    """A recording whose request is under way, or may be sent again."""

    def __init__(self) -> None:
        self.users = 0
        self.forgetting: asyncio.TimerHandle | None = None
        self._heard: dict[ClipKey, bytes] = {}  # packed
        self._at_work: dict[ClipKey, asyncio.Task[bytes]] = {}
        self._deaths: dict[ClipKey, int] = {}

    def deaths(self, clip: ClipKey) -> int:
        """How many workers have died of a clip that they had alone in hand."""
        return self._deaths.get(clip, 0)

    def died(self, clip: ClipKey, deaths: int) -> None:
        """Note a further death."""
        self._deaths[clip] = deaths

    async def hear(self, clip: ClipKey, work: Callable[[], Coroutine[Any, Any, ClipResult]]) -> ClipResult:
        """The clip's result: what is known already, or is being worked on, or else what `work` comes to.

        Work that has been begun goes on when the caller is cancelled; whoever gave it out takes it back.
        """
        while (content := self._heard.get(clip)) is None:
            task = self._at_work.get(clip)
            if task is None or task.done():
                task = self._at_work[clip] = asyncio.create_task(self._work(clip, work))
            try:
                content = await asyncio.shield(task)
                break
            except asyncio.CancelledError:
                caller = asyncio.current_task()
                if caller is None or caller.cancelling() or not task.cancelled():
                    raise
                # Another request for the same recording took its work back, and it was this clip's.
        result: ClipResult = unpack(content)
        return result

    async def _work(self, clip: ClipKey, work: Callable[[], Coroutine[Any, Any, ClipResult]]) -> bytes:
        """Note what work comes to; packed, since most of it is never asked for again."""
        try:
            content = self._heard[clip] = pack(await work())
        finally:
            self._at_work.pop(clip, None)
        return content


class ResultCache:
    """Recordings whose requests were not answered, for `keep_s` after the last of them went away."""

    def __init__(self, keep_s: float = KEEP_S) -> None:
        self._keep_s = keep_s
        self._recordings: dict[Hashable, CachedRecording] = {}

    def __len__(self) -> int:
        return len(self._recordings)

    @contextmanager
    def recall(self, identity: Hashable) -> Iterator[CachedRecording]:
        """The memory of one recording; it is forgotten once the work in this context has succeeded.

        `identity`: whatever the results depend on.
        """
        recording = self._recordings.setdefault(identity, CachedRecording())
        if recording.forgetting is not None:
            recording.forgetting.cancel()
        recording.users += 1
        keep_s = self._keep_s
        try:
            yield recording
            keep_s = 0.0
        finally:
            recording.users -= 1
            if not recording.users:
                loop = asyncio.get_running_loop()
                recording.forgetting = loop.call_later(keep_s, self._recordings.pop, identity, None)
