"""The TCP server for clients of Wyoming."""

import asyncio
import uuid
from dataclasses import dataclass, field

import structlog

from app.api.wyoming.framing import MAX_LINE_BYTES, EventReader, encode
from app.api.wyoming.session import OpenStream, WyomingSession
from app.common.concurrency import end_tasks
from app.common.errors import InvalidSetting
from app.engines.catalogue import ModelCatalogue
from app.intake.limits import Limiter
from app.server.listening import GRACE_S
from app.settings import Settings
from app.telemetry.work import Work, working_for

log = structlog.get_logger("whisperfleet.api")


@dataclass(slots=True)
class WyomingServer:
    """Listens on the address of `WHISPER_WYOMING_PORT`, and does nothing without one."""

    _settings: Settings
    _open_stream: OpenStream
    _catalogue: ModelCatalogue
    _places: Limiter
    _sessions: dict[asyncio.Task[None], WyomingSession] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _end_at: float | None = None  # of the last sessions, in the event loop's time

    @property
    def port(self) -> int | None:
        """Where it listens, which matters if the setting is port 0; None if it does not."""
        return self._server.sockets[0].getsockname()[1] if self._server and self._server.sockets else None

    @property
    def clients(self) -> int:
        """How many are connected."""
        return len(self._sessions)

    async def start(self) -> None:
        """Raises InvalidSetting if the address is in use, or none of this machine."""
        address = self._settings.wyoming_address
        if address is None:
            return
        host, port = address
        try:
            self._server = await asyncio.start_server(self._accept, host, port, limit=MAX_LINE_BYTES)
        except OSError as error:
            raise InvalidSetting(f"WHISPER_WYOMING_PORT={host}:{port}: {error.strerror or error}") from None
        log.info("Wyoming is served", host=host, port=self.port)
        if self._settings.needs_key:
            log.warning(
                "Wyoming knows no keys",
                reason=f"whoever reaches {host} port {self.port} can have speech transcribed without a key",
            )

    def begin_shutdown(self) -> None:
        """Accept no more clients, and let those that are connected have the text of what they have said."""
        if self._server is not None and self._end_at is None:
            self._server.close()
            self._end_at = asyncio.get_running_loop().time() + GRACE_S
            for session in self._sessions.values():
                session.stop()

    async def stop(self) -> None:
        """Disconnect all clients, at the latest `GRACE_S` after `begin_shutdown`."""
        self.begin_shutdown()
        if self._server is None or self._end_at is None:
            return
        tasks = [*self._sessions]
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, self._end_at - asyncio.get_running_loop().time()))
        await end_tasks(*tasks)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        most = self._settings.max_streams
        if self.clients >= most:
            text = f"{most} clients are connected, as many as this service takes (WHISPER_MAX_STREAMS)."
            writer.write(encode("error", {"text": text, "code": "too_many_streams"}))
            writer.close()
            return
        events = EventReader(reader, self._settings.header_timeout_s)
        session = WyomingSession(reader, writer, self._open_stream, self._catalogue, self._places, events)
        task = asyncio.create_task(self._serve(session))
        self._sessions[task] = session
        task.add_done_callback(self._sessions.pop)

    async def _serve(self, session: WyomingSession) -> None:
        with working_for(Work(f"wyoming_{uuid.uuid4().hex}")):
            try:
                await session.run()
            except Exception:
                log.exception("a client of Wyoming was disconnected")
