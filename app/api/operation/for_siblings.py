"""What a server process answers its siblings, on its socket, of itself alone. No other program gets there."""

import os
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.api.audio.realtime import connect_again
from app.api.audio.realtime_sessions import RealtimeSessions
from app.api.operation.metrics import MetricTexts
from app.api.operation.owners import Owners
from app.common.errors import NotReady, WhisperfleetError
from app.live.metrics import LiveMetrics
from app.recording.fleet import WhisperFleet
from app.server.errors import error_response
from app.server.listening import STREAM_PATH


@dataclass(frozen=True, slots=True)
class ForSiblings:
    """The parts of the service that they ask."""

    fleet: WhisperFleet
    live: LiveMetrics
    streams: RealtimeSessions
    owners: Owners
    metric_texts: MetricTexts

    def app(self) -> Starlette:
        """The application of the socket."""
        routes = [
            Route("/ready", self._ready),
            Route("/metrics", self._metrics),
            Route("/workers", self._workers),
            Route("/withdraw", self._withdraw, methods=["POST"]),
            Route(STREAM_PATH, self._realtime),
        ]
        return Starlette(routes=routes, exception_handlers={WhisperfleetError: _error})

    async def _ready(self, request: Request) -> Response:
        if (reason := self.fleet.readiness()) is not None:
            raise NotReady(reason)
        return Response()

    async def _metrics(self, request: Request) -> Response:
        return JSONResponse(await self.metric_texts.of_this_process())

    async def _workers(self, request: Request) -> Response:
        """The workers, their blocks after those that `since` knows, and the queue."""
        await self.fleet.gpus.sample()
        process, _, last = request.query_params.get("since", "").partition(":")
        own, ledger = self.fleet.slot_statuses(), self.fleet.ledger
        blocks = ledger.blocks_after(int(last) if process == str(os.getpid()) else 0)
        clips, oldest_s = self.fleet.backlog()
        return JSONResponse(
            {
                "workers": self.fleet.workers(),
                "blocks": [block.public() for block in blocks if block.slot in own],
                "since": f"{os.getpid()}:{ledger.last_block}",
                "queue": {"clips": clips, "oldest_s": oldest_s, "streams": self.live.open},
            }
        )

    async def _withdraw(self, request: Request) -> Response:
        await self.owners.withdraw(request.query_params["owner"])
        return Response(status_code=204)

    async def _realtime(self, request: Request) -> Response:
        given = request.query_params
        request.scope["state"] = {"request_id": given["request_id"]}
        return connect_again(
            request.scope, self.streams, given["session"], given["owner"], given["last_event_id"]
        )


async def _error(request: Request, error: Exception) -> Response:
    assert isinstance(error, WhisperfleetError)
    return error_response(error)
