"""The live streams that clients of the Realtime API have: whose they are, and which wait for their client."""

import asyncio

from app.api.audio.realtime_session import RealtimeSession
from app.common.concurrency import BackgroundTasks
from app.common.errors import STOPPING, NotReady, UnknownStream

RESUME_S = 60.0  # a stream waits so long for its client


class RealtimeSessions:
    """Those of the service, by their ids."""

    def __init__(self) -> None:
        self._streams: dict[str, RealtimeSession] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}  # for their client
        self._tasks = BackgroundTasks()
        self._is_stopping = False

    def check(self) -> None:
        """Raise NotReady if the service stops, and takes no more streams."""
        if self._is_stopping:
            raise NotReady(STOPPING)

    def add(self, stream: RealtimeSession) -> None:
        """A client has opened a stream, and is connected to it."""
        self._streams[stream.id] = stream

    def has(self, id: str, owner: str) -> bool:
        """Whether an owner has a stream here."""
        return id in self._streams and self._streams[id].owner == owner

    def find(self, id: str, owner: str) -> RealtimeSession:
        """The stream that its owner wants to continue. Raises UnknownStream."""
        if not self.has(id, owner):
            raise UnknownStream(
                f"There is no stream {id[:40]!r} to continue: one waits {RESUME_S:.0f} s for its client. "
                "Open a new one.",
                param="session",
            )
        return self._streams[id]

    def connected(self, stream: RealtimeSession) -> None:
        """The client is back."""
        if (timer := self._waiting.pop(stream.id, None)) is not None:
            timer.cancel()

    def disconnected(self, stream: RealtimeSession) -> None:
        """The connection of the client broke. It may come back for a while."""
        self.connected(stream)
        if self._is_stopping:
            self._tasks.spawn(self.end(stream))
        elif stream.id in self._streams:
            loop = asyncio.get_running_loop()
            end = lambda: self._tasks.spawn(self.end(stream))  # noqa: E731
            self._waiting[stream.id] = loop.call_later(RESUME_S, end)

    async def end_waiting(self, owner: str) -> bool:
        """End the stream of an owner that has waited longest for its client. False if none waits."""
        waiting = (self._streams[id] for id in self._waiting)
        stream = next((stream for stream in waiting if stream.owner == owner), None)
        if stream is not None:
            await self.end(stream)
        return stream is not None

    async def end_of(self, owner: str) -> None:
        """End all streams of an owner."""
        for stream in [stream for stream in self._streams.values() if stream.owner == owner]:
            await self.end(stream)

    async def end(self, stream: RealtimeSession) -> None:
        """The client needs the stream no longer."""
        self.connected(stream)
        self._streams.pop(stream.id, None)
        await stream.close()

    def begin_shutdown(self) -> None:
        """Take no more streams, and let those of connected clients end."""
        self._is_stopping = True
        for stream in [*self._streams.values()]:
            if stream.id in self._waiting:
                self._tasks.spawn(self.end(stream))
            else:
                stream.stop()

    async def stop(self) -> None:
        """End all streams."""
        self._is_stopping = True
        await asyncio.gather(*(self.end(stream) for stream in [*self._streams.values()]), *self._tasks)
