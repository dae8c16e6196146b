"""Copies of recordings that browsers play: made on demand, and cached in a folder within a budget."""

import asyncio
import math
import os
import re
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import structlog

from app.common.concurrency import end_tasks, run_shielded
from app.common.errors import NOT_KEPT, STOPPING, AudioNotKept, NotReady, WhisperfleetError
from app.common.files import is_older, remove_files
from app.common.ids import ID
from app.media.sound_encoder import SoundEncoder
from workers.messages import TrackChoice

_FORMS = ("flac", "ogg")
_COPY_NAME = re.compile(rf"({ID.pattern})\.({'|'.join(_FORMS)})")
_PART_SUFFIX = ".part"  # of files that are not complete, are spans, or are about to be removed
_IDLE_SPANS = 16  # that stay for further requests: players ask for ranges of them
_ALL = (0.0, math.inf)

T = TypeVar("T")

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Copy:
    name: str  # `<name of the recording's file>.<format>`, of a span `<that>.<start>-<end>.<format>`
    path: Path
    is_span: bool = False
    making: "asyncio.Task[None] | None" = None
    size: int | None = None  # bytes; None until it is made
    used_ns: int = field(default_factory=time.time_ns)
    holders: int = 0  # responses that send it or wait for it


class SoundCopies:
    """The copies in a folder, and spans of recordings, which do not outlast the process.

    While they have more than `budget_bytes` together, the least recently used one that nobody holds is
    removed. One that alone exceeds the budget goes after its last response, and the others stay. Of the spans
    that nobody holds, the `_IDLE_SPANS` that were used last stay.
    """

    def __init__(self, uploads: Path, folder: Path, budget_bytes: int, encoder: SoundEncoder) -> None:
        """`uploads` is the folder of the recordings."""
        self._uploads = uploads
        self._folder = folder
        self._budget_bytes = budget_bytes
        self._encoder = encoder
        self._copies: dict[str, _Copy] = {}
        self._stopping = False

    async def load(self, before: float = math.inf) -> None:
        """Find the complete copies of earlier runs, and remove incomplete ones of before a Unix time (s)."""
        copies = await asyncio.to_thread(_complete_copies, self._folder, before)
        self._copies = {copy.name: copy for copy in copies}
        await self._trim()

    async def stop(self) -> None:
        """End the making of copies."""
        self._stopping = True
        await end_tasks(*(copy.making for copy in self._copies.values()))

    @asynccontextmanager
    async def hold(
        self, recording: str, form: str, track: TrackChoice = None, span: tuple[float, float] = _ALL
    ) -> AsyncGenerator[Path]:
        """The copy of a recording in a format, or a span of it (s). It stays inside the block.

        It is made if it is not there. `recording` is the name of its file, and `track` the same in each call.
        Concurrent callers share one making. That of a copy goes on if they are cancelled: a client that gave
        up may ask again. Raises as `SoundEncoder.encode` does, AudioNotKept if the recording is removed
        meanwhile, and NotReady if the service stops.
        """
        copy = self._find_or_make(recording, form, track, span)
        copy.holders += 1
        try:
            if copy.making is not None:
                await until_made(copy.making, is_stopping=lambda: self._stopping)
            yield copy.path
        finally:
            copy.holders -= 1
            copy.used_ns = time.time_ns()
            await run_shielded(self._release(copy))

    async def remove(self, recording: str) -> None:
        """Remove the copies of a recording, whose file is gone already, and end their making."""
        copies = [copy for name, copy in self._copies.items() if name.startswith(f"{recording}.")]
        await end_tasks(*(copy.making for copy in copies))
        await self._drop([copy for copy in copies if self._copies.get(copy.name) is copy])
        made_elsewhere = [self._folder / f"{recording}.{form}" for form in _FORMS]  # by another front end
        await run_shielded(asyncio.to_thread(remove_files, made_elsewhere))

    def _find_or_make(
        self, recording: str, form: str, track: TrackChoice, span: tuple[float, float]
    ) -> _Copy:
        is_span = span != _ALL
        name = f"{recording}.{span[0]}-{span[1]}.{form}" if is_span else f"{recording}.{form}"
        copy = self._copies.get(name)
        if copy is None or (copy.size is not None and not copy.path.is_file()):
            path = self._new_part() if is_span else self._folder / name
            copy = self._copies[name] = _Copy(name, path, is_span)
            copy.making = asyncio.create_task(
                self._make(copy, recording, form, track, span), name=f"sound copy {name}"
            )
            copy.making.add_done_callback(_log_failure)
        return copy

    async def _make(
        self, copy: _Copy, recording: str, form: str, track: TrackChoice, span: tuple[float, float]
    ) -> None:
        part = self._new_part()
        try:
            async with self._source(recording, track) as (source, of_source):
                start_s, end_s = span
                await self._encoder.encode(source, part, form, track=of_source, start_s=start_s, end_s=end_s)
            size = part.stat().st_size
            part.replace(copy.path)
            copy.size = size
        finally:
            if copy.size is None:
                self._forget(copy)
                await run_shielded(asyncio.to_thread(part.unlink, missing_ok=True))
        copy.making = None
        await self._trim()

    @asynccontextmanager
    async def _source(self, recording: str, track: TrackChoice) -> AsyncGenerator[tuple[Path, TrackChoice]]:
        """The file to encode, and its track. A FLAC copy has the same samples, and is faster to read."""
        flac = self._copies.get(f"{recording}.flac")
        if flac is None or flac.size is None:
            yield self._uploads / recording, track
        else:
            async with self.hold(recording, "flac", track) as path:
                yield path, None

    async def _release(self, copy: _Copy) -> None:
        if copy.size is not None:
            await asyncio.to_thread(_mark_used, copy.path, copy.used_ns)
        elif copy.is_span and not copy.holders and copy.making is not None:
            self._forget(copy)
            await end_tasks(copy.making)
        await self._trim()

    async def _trim(self) -> None:
        """Remove copies until the others fit into the budget."""
        idle = [copy for copy in self._copies.values() if copy.size is not None and not copy.holders]
        idle.sort(key=lambda copy: copy.used_ns)
        spans = [copy for copy in idle if copy.is_span]
        dropped = {*spans[:-_IDLE_SPANS], *(copy for copy in idle if not self._fits(copy))}
        kept = (copy for copy in self._copies.values() if self._fits(copy) and copy not in dropped)
        excess = sum(copy.size or 0 for copy in kept) - self._budget_bytes
        for copy in idle:
            if excess <= 0:
                break
            if copy not in dropped:
                excess -= copy.size or 0
                dropped.add(copy)
        await self._drop(dropped)

    def _fits(self, copy: _Copy) -> bool:
        return (copy.size or 0) <= self._budget_bytes

    async def _drop(self, copies: Iterable[_Copy]) -> None:
        # Renamed at once, and removed by a thread: meanwhile a new copy may get the name.
        parts = []
        for copy in copies:
            del self._copies[copy.name]
            parts.append(self._new_part())
            with suppress(FileNotFoundError):
                copy.path.rename(parts[-1])
        if parts:
            await run_shielded(asyncio.to_thread(remove_files, parts))

    def _forget(self, copy: _Copy) -> None:
        if self._copies.get(copy.name) is copy:
            del self._copies[copy.name]

    def _new_part(self) -> Path:
        return self._folder / f"{uuid.uuid4().hex}{_PART_SUFFIX}"


async def until_made(making: asyncio.Task[T], is_stopping: Callable[[], bool]) -> T:
    """What a task makes of a recording. If it is cancelled, that is gone, or the service stops."""
    await asyncio.wait([making])
    if not making.cancelled():
        return making.result()
    if is_stopping():
        raise NotReady(STOPPING)
    raise AudioNotKept(NOT_KEPT)


def remove_leftover_copies(folder: Path, recordings: Iterable[str], before: float = math.inf) -> None:
    """Remove the copies in `folder`, made `before` a Unix time (s), of all recordings but those named."""
    kept = set(recordings)
    for path in folder.iterdir():
        match = _COPY_NAME.fullmatch(path.name)
        if match and match[1] not in kept and is_older(path, before):
            path.unlink(missing_ok=True)


def _complete_copies(folder: Path, before: float) -> list[_Copy]:
    """The copies in a folder. Removes what else a killed process left there."""
    copies = []
    for path in folder.iterdir():
        if path.suffix == _PART_SUFFIX:
            if is_older(path, before):
                path.unlink(missing_ok=True)
        elif _COPY_NAME.fullmatch(path.name):
            stat = path.stat()
            copies.append(_Copy(path.name, path, size=stat.st_size, used_ns=stat.st_atime_ns))
    return copies


def _mark_used(path: Path, used_ns: int) -> None:
    """Record the time of the last use in the file. The time of its last change is part of its ETag."""
    with suppress(FileNotFoundError):
        os.utime(path, ns=(used_ns, path.stat().st_mtime_ns))


def _log_failure(making: asyncio.Task[None]) -> None:
    """Log why a copy was not made: perhaps nobody waits for it any more."""
    error = None if making.cancelled() else making.exception()
    if error is not None:
        reason = error.message if isinstance(error, WhisperfleetError) else repr(error)
        log.info("a copy of a recording could not be made", copy=making.get_name(), reason=reason)
