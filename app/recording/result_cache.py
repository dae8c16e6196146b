"""Clip results of requests whose client disconnected: a retry of the same request goes on from them."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from app.common.concurrency import spawn_shared
from app.recording.clip_decoding import ClipKey, ClipRequest
from app.telemetry.work import current_work
from app.transcript.packed import PackedResult, pack_result
from app.transcript.timeline import ClipResult
from workers.messages import Span

R = TypeVar("R")

KEEP_S = 600.0  # clients retry after their own timeout, without an idempotency key

Transcribe = Callable[[ClipRequest], Awaitable[ClipResult]]
Embed = Callable[[Span], Awaitable[bytes]]  # the voices in a clip, packed


class ClipResults(Protocol):
    """The results and voices of one recording's clips, for one set of options."""

    async def get_or_transcribe(self, request: ClipRequest, transcribe: Transcribe) -> PackedResult:
        """The clip's stored result, or else the new one, which is stored."""

    async def get_or_embed(self, clip: Span, embed: Embed) -> bytes:
        """The clip's stored voices, packed, or else the new ones, which are stored."""

    def crash_count(self, clip: ClipKey) -> int:
        """How many workers crashed by the fault of this clip, as far as that counts against it now."""

    def record_crash(self, clip: ClipKey, count: int) -> None:
        """Store the new number of such crashes."""

    def is_suspect(self, clip: ClipKey) -> bool:
        """Whether the clip may be what crashes workers, so it shares none with others."""


@dataclass(slots=True)
class CachedClipResults:
    """The results of a recording whose request runs, or may be sent again."""

    users: int = 0
    expiry: asyncio.TimerHandle | None = None
    # Results by the clip's key, voices by its span. Packed: most of them are never read again.
    _made: dict[ClipKey | Span, bytes] = field(default_factory=dict)
    _running: dict[ClipKey | Span, asyncio.Task[Any]] = field(default_factory=dict)
    # When workers crashed by the fault of clips, in s of the monotonic clock. Owners share results only.
    _crashed_at: dict[tuple[str, ClipKey], float] = field(default_factory=dict)

    def crash_count(self, clip: ClipKey) -> int:
        """None: each request gets a verdict of its own."""
        return 0

    def record_crash(self, clip: ClipKey, count: int) -> None:
        """A worker has crashed by the fault of a clip."""
        self._crashed_at[current_work().owner, clip] = time.monotonic()

    def is_suspect(self, clip: ClipKey) -> bool:
        """Whether that was lately, in a request of the same owner."""
        crashed_at = self._crashed_at.get((current_work().owner, clip), -math.inf)
        return time.monotonic() - crashed_at < KEEP_S

    async def get_or_transcribe(self, request: ClipRequest, transcribe: Transcribe) -> PackedResult:
        """The clip's cached result, the one that is being made, or else a new one.

        Transcribing goes on when the caller is cancelled, until its owner cancels the task itself.
        """

        async def make() -> PackedResult:
            result = await transcribe(request)
            self._made[request.key] = content = pack_result(result)
            return PackedResult(result, content)

        return await self._get_or_make(request.key, PackedResult.unpack, make)

    async def get_or_embed(self, clip: Span, embed: Embed) -> bytes:
        """The voices in the clip, in the same way."""

        async def make() -> bytes:
            self._made[clip] = content = await embed(clip)
            return content

        return await self._get_or_make(clip, bytes, make)

    async def _get_or_make(
        self, key: ClipKey | Span, read: Callable[[bytes], R], make: Callable[[], Awaitable[R]]
    ) -> R:
        while (content := self._made.get(key)) is None:
            task: asyncio.Task[R] | None = self._running.get(key)
            is_own = task is None or task.done()
            if task is None or is_own:
                task = self._running[key] = spawn_shared(self._run(key, make))
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                caller = asyncio.current_task()
                if caller is None or caller.cancelling() or not task.cancelled():
                    raise
                # Another request for the same recording was cancelled, and this task was its.
            except OSError:
                if is_own:
                    raise
                # The cancelled request took its audio away before a worker read it. This one has its own.
        return read(content)

    async def _run(self, key: ClipKey | Span, make: Callable[[], Awaitable[R]]) -> R:
        try:
            return await make()
        finally:
            self._running.pop(key, None)


class ResultCache:
    """Recordings whose requests were not answered, for `keep_s` after the last of these ended."""

    def __init__(self, keep_s: float = KEEP_S) -> None:
        self._keep_s = keep_s
        self._recordings: dict[Hashable, CachedClipResults] = {}

    def __len__(self) -> int:
        return len(self._recordings)

    @contextmanager
    def recording(self, key: Hashable) -> Iterator[CachedClipResults]:
        """The cached results of one recording; dropped when the block succeeds.

        `key`: everything that the results depend on.
        """
        recording = self._recordings.setdefault(key, CachedClipResults())
        if recording.expiry is not None:
            recording.expiry.cancel()
        recording.users += 1
        keep_s = self._keep_s
        try:
            yield recording
            keep_s = 0.0
        finally:
            recording.users -= 1
            if not recording.users:
                loop = asyncio.get_running_loop()
                recording.expiry = loop.call_later(keep_s, self._recordings.pop, key, None)
