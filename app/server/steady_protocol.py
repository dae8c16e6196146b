"""Connections whose clients stop reading are closed."""

import asyncio
import socket
from typing import Any

import structlog

from app.server.listening import PATIENT

UNSENT_BYTES = 1 << 17  # that the kernel takes for a connection beyond those under way
PATIENCE = 15  # timeouts that a player may pause for

log = structlog.get_logger("whisperfleet.api")


class Steady(asyncio.Protocol):
    """Mixin for uvicorn's protocols: a connection is closed if its client stops reading.

    What the client does not take at once has to be taken within `send_timeout_s`. `send_in_parts` passes a
    body on in parts, and each waits for the one before. So a client has to read a part in that time.
    """

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    client: tuple[str, int] | None
    scope: Any

    def __init__(self, *, send_timeout_s: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._send_timeout_s = send_timeout_s
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # `pause_writing` is called if anything waits
        connection = transport.get_extra_info("socket")
        is_tcp = connection is not None and connection.family != socket.AF_UNIX
        if is_tcp and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            # Else the kernel takes megabytes, and a slow client seems to stall until they are sent.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)

    def pause_writing(self) -> None:
        super().pause_writing()
        patience = PATIENCE if PATIENT in self._state else 1
        self._stall_timer = self.loop.call_later(patience * self._send_timeout_s, self._end_stalled)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def _state(self) -> Any:
        """The state of the request under way."""
        return (self.scope or {}).get("state", {})

    def _stop_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _end_stalled(self) -> None:
        """Close the connection at once. The response ends as if the client had disconnected."""
        log.info(
            "a client stopped reading; its connection is closed",
            path=(self.scope or {}).get("path"),
            client=self.client[0] if self.client else None,
            request_id=self._state.get("request_id"),
        )
        self.transport.abort()
