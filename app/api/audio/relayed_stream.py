"""A live stream that another server process has: its WebSocket is passed on to there."""

import asyncio
import json
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.types import Scope
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from app.common.concurrency import end_tasks
from app.server.handshakes import INTERNAL_ERROR, UpgradeResponse, WebSocket
from app.server.listening import STREAM_PATH
from app.server.siblings import Siblings

PROTOCOL = "realtime"
_UNKNOWN = "stream_not_found"  # the code of an error
_CONNECT_S = 5.0
_GONE = "The process of the stream has ended. Open a new stream."


async def connect_elsewhere(
    scope: Scope, siblings: Siblings, session: str, owner: str, last_event_id: str
) -> Response | None:
    """Continues a stream of an owner at the process that has it; what that answers if it refuses.

    None if no process knows the stream, or the one that had it is gone.
    """
    given = {"session": session, "owner": owner, "last_event_id": last_event_id}
    query = urlencode({**given, "request_id": scope["state"]["request_id"]})
    for name in siblings.others:
        try:
            connection = await unix_connect(
                siblings.path(name),
                f"ws://sibling{STREAM_PATH}?{query}",
                compression=None,
                max_size=None,
                ping_interval=None,  # a process that reads nothing for a while is well
                open_timeout=_CONNECT_S,
            )
        except InvalidStatus as refusal:
            body = bytes(refusal.response.body or b"")
            if json.loads(body)["error"]["code"] != _UNKNOWN:
                return Response(body, refusal.response.status_code, media_type="application/json")
        except (OSError, TimeoutError):
            continue
        else:
            return RelayResponse(scope, connection)
    return None


class RelayResponse(UpgradeResponse):
    """Passes messages on between a client and the process that has its stream."""

    def __init__(self, scope: Scope, connection: ClientConnection) -> None:
        super().__init__(scope, PROTOCOL)
        self._connection = connection

    async def run(self, web_socket: WebSocket) -> None:
        tasks = [asyncio.create_task(work(web_socket)) for work in (self._pass_up, self._pass_down)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await end_tasks(*tasks)
            self._connection.transport.abort()  # unless the client has ended the stream, it may come back

    async def _pass_up(self, web_socket: WebSocket) -> None:
        while (message := await web_socket.receive()) is not None:
            await self._connection.send(message, text=True)
        await self._connection.close()

    async def _pass_down(self, web_socket: WebSocket) -> None:
        try:
            while True:
                await web_socket.send(str(await self._connection.recv()))
        except ConnectionClosed as closed:
            end = closed.rcvd
            await web_socket.close(*((end.code, end.reason) if end else (INTERNAL_ERROR, _GONE)))
