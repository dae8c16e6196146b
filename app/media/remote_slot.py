"""A media worker on another machine: it gets the files to work on, and returns what it makes of them."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from app.common.errors import ProcessCrashed, RequeueBatch
from app.media.worker_slot import DEADLINE_S, MediaCall, MediaWorkerSlot
from app.pool.tasks import WorkerProcess
from workers.media import remote, sessions, tasks
from workers.media.remote import RemoteStep
from workers.media.tasks import DecodeRequest
from workers.media.voices import embed
from workers.messages import BYTES_PER_SAMPLE, FRAME_SAMPLES, Decoded, Span, SpeakerModel

R = TypeVar("R")

_BLOCK_BYTES = 4 << 20  # of a file, in one call
_MAX_RECORDING_BYTES = 512 << 20  # a larger one is a film: sending it takes longer than decoding its sound
_MAX_SENT_BYTES = 1 << 30  # of all files that a worker has: the disk of its node is not for the service alone
_SEND_S = 300.0  # for a whole file; its node, or the network, is too slow to help if it takes longer
_REMEMBERED_REFUSALS = 1000


class RemoteMediaSlot(MediaWorkerSlot):
    """A media worker that sees no file of this machine. Calls and results are those of a local one.

    The slot reads the files that a call names and sends what the worker needs, and writes the samples that
    come back. What a worker cannot do goes to another one: its node's disk may be too small, or the library
    that embeds voices may be missing there.
    """

    def __init__(self, index: int, process: WorkerProcess) -> None:
        super().__init__(index, process)
        self._methods: dict[Callable[..., Any], Callable[..., Awaitable[Any]]] = {
            tasks.decode: self._decode,
            sessions.close: self._close,
            tasks.speech_probabilities: self._speech_probabilities,
            embed.embed: self._embed,
        }
        # Files that its process has, with their sizes in bytes: recordings by job, models by identity.
        self._sent: dict[str, int] = {}
        self._refused: deque[str] = deque(maxlen=_REMEMBERED_REFUSALS)  # files that it cannot use

    async def start(self) -> None:
        """As `MediaWorkerSlot.start`."""
        self._sent.clear()
        self._refused.clear()
        await super().start()

    def can_run(self, call: MediaCall) -> bool:
        """Whether the worker may be asked. Copies for browsers are encoded on this machine."""
        if call.function is tasks.decode:
            return call.args[0] not in self._refused
        if call.function is embed.embed:
            return cast(SpeakerModel, call.args[2]).identity not in self._refused
        return call.function in self._methods

    async def run(self, payloads: Sequence[MediaCall], expected_s: float | None) -> list[Any]:
        """Run one call. Raises RequeueBatch if the worker cannot: then `can_run` is False from now on."""
        [call] = payloads
        return [await self._methods[call.function](*call.args)]

    async def _decode(
        self, job: str, request: DecodeRequest, max_samples: int, max_declared: float = math.inf
    ) -> Decoded:
        """As `tasks.decode`."""
        try:
            if job not in self._sent:
                await self._send_recording(job, request.source)
            found = await self._ask(
                remote.decode,
                *(job, request, max_samples, max_declared),
                refused=job,
                errors=OSError,  # of the node's disk
            )
            await asyncio.to_thread(_write, request.pcm_paths, found)
        except ProcessCrashed:
            raise
        except Exception:
            await self._forget(job)
            raise
        if found.step.finished:
            self._sent.pop(job, None)
        return found.step

    async def _close(self, job: str) -> None:
        """As `sessions.close`."""
        if job in self._sent:
            await self._forget(job)

    async def _speech_probabilities(
        self, pcm_path: str, start_frame: int, frames: int, *beside: str
    ) -> bytes:
        """As `tasks.speech_probabilities`."""
        first = max(0, start_frame - tasks.WARM_UP_FRAMES)
        end = start_frame + frames
        span = (first * FRAME_SAMPLES, end * FRAME_SAMPLES)
        channels = [await _samples(path, span) for path in (pcm_path, *beside)]
        pcm, [offset, *_] = zip(*channels, strict=True)
        return await self._process.call(
            remote.speech_probabilities, pcm, offset, start_frame, frames, deadline_s=DEADLINE_S
        )

    async def _embed(self, pcm_path: str, windows: Sequence[Span], model: SpeakerModel) -> bytes:
        """As `embed.embed`. Its errors are those of a local worker."""
        if model.identity not in self._sent:
            await self._send_file(model.identity, model.path, await asyncio.to_thread(_size, model.path))
        span = min(start for start, _ in windows), max(end for _, end in windows)
        pcm, offset = await _samples(pcm_path, span)
        return await self._ask(
            remote.embed_voices, pcm, offset, windows, model, refused=model.identity, errors=Exception
        )

    async def _send_recording(self, job: str, source: str) -> None:
        size = await asyncio.to_thread(_size, source)
        if size > _MAX_RECORDING_BYTES:
            raise self._refuse(job, "recordings of this size are decoded where they are")
        if size + sum(self._sent.values()) > _MAX_SENT_BYTES:
            raise self._refuse(job, "it has as many recordings as it may")
        await self._send_file(job, source, size)

    async def _send_file(self, name: str, path: str, size: int) -> None:
        try:
            async with asyncio.timeout(_SEND_S):
                await self._send_blocks(name, path, size)
        except TimeoutError:
            raise self._refuse(name, f"it did not get {size} bytes within {_SEND_S:.0f} s") from None
        self._sent[name] = size

    async def _send_blocks(self, name: str, path: str, size: int) -> None:
        if not await self._ask(remote.begin_file, name, size, refused=name, errors=OSError):
            raise self._refuse(name, f"its node's disk has too little space for {size} bytes")
        for offset in range(0, size, _BLOCK_BYTES):
            # Opened for each block: if the client leaves and the file is removed, this ends.
            block = await asyncio.to_thread(_read, path, offset, _BLOCK_BYTES)
            if len(block) < min(_BLOCK_BYTES, size - offset):
                raise OSError(f"{path} has become shorter")
            await self._ask(remote.receive_block, name, offset, block, refused=name, errors=OSError)

    async def _forget(self, job: str) -> None:
        """Stop decoding a recording, and remove what the worker has of it."""
        self._sent.pop(job, None)
        await self._process.call(remote.close, job, deadline_s=DEADLINE_S)

    async def _ask(
        self, function: Callable[..., R], *args: object, refused: str, errors: type[Exception]
    ) -> R:
        """Call the process. Those `errors` are the node's: from now on, it refuses the file `refused`."""
        try:
            return await self._process.call(function, *args, deadline_s=DEADLINE_S)
        except ProcessCrashed:
            raise
        except errors as error:
            raise self._refuse(refused, repr(error)) from error

    def _refuse(self, name: str, reason: str) -> RequeueBatch:
        self._refused.append(name)
        return RequeueBatch(f"media worker {self.index} leaves it to the others: {reason}")


async def _samples(path: str, span: Span) -> tuple[bytes, int]:
    """The samples of a span that a file has, and their offset in it (bytes)."""
    start, end = (position * BYTES_PER_SAMPLE for position in span)
    return await asyncio.to_thread(_read, path, start, end - start), start


def _size(path: str) -> int:
    return Path(path).stat().st_size


def _read(path: str, offset: int, size: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(offset)
        return file.read(size)


def _write(paths: Sequence[str], found: RemoteStep) -> None:
    """Write the samples of a step where `tasks.decode` would. The files end with those of the last step."""
    for path, pcm in zip(paths, found.pcm, strict=False):
        with Path(path).open("r+b") as file:
            file.seek(found.offset)
            file.write(pcm)
            if found.step.finished:
                file.truncate()
