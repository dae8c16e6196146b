"""OpenAI's Realtime API for transcription: live streams by WebSocket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.audio.realtime_events import CONVERSATIONS, Transcription
from app.api.audio.realtime_session import (
    EVENT_PREFIX,
    IDLE_S,
    Ending,
    Lagging,
    RealtimeSession,
)
from app.api.audio.realtime_sessions import RealtimeSessions
from app.api.audio.relayed_stream import connect_elsewhere
from app.api.http.forms import JobFields
from app.api.jobs.submissions import submission_of
from app.common.concurrency import end_tasks, run_shielded
from app.common.errors import (
    InvalidInput,
    QueueFull,
    StreamRefused,
    UnknownStream,
    UpgradeRequired,
    WhisperfleetError,
)
from app.engines.catalogue import DEFAULT_MODEL_ALIAS
from app.intake.limits import Admission
from app.jobs.job import Submission
from app.jobs.service import JobService
from app.live.service import LiveService
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors, error_detail
from app.server.handshakes import POLICY_VIOLATION, UpgradeResponse, WebSocket, is_handshake
from app.server.listening import STREAM_PATH
from app.server.requests import client_of
from app.server.siblings import Siblings
from app.transcript.terms import Term

PROTOCOL = "realtime"
FILENAME = "live.wav"  # of the recording of a job
INTENT = "transcription"
# OpenAI's models for streams: clients cannot choose others. They mean the default one.
STREAM_MODELS = frozenset({"gpt-transcribe", "gpt-live-transcribe", "gpt-realtime-whisper"})

RESPONSES: dict[int | str, dict[str, Any]] = {
    101: {"description": "The stream is open: see docs/http.md for its events."},
    **documented_errors(400, 401, 403, 404, 421, 426, 429, 503, 507),
}

_NEWER = Ending(POLICY_VIOLATION, "A newer connection continues the stream.")
_SLOW = Ending(POLICY_VIOLATION, "The client reads too slowly: the service does not keep so many events.")
_IDLE = StreamRefused(
    f"No audio has come for {IDLE_S:.0f} s, so the stream has ended. Open a new one.", code="stream_idle"
)


def realtime_routes(
    service: TranscriptionService,
    live: LiveService,
    streams: RealtimeSessions,
    siblings: Siblings,
    jobs: JobService,
    admission: Admission,
) -> APIRouter:
    router = APIRouter(tags=["audio"])
    catalogue = service.fleet.catalogue

    def resolve_model(name: str, language: str | None) -> str:
        is_alias = name in STREAM_MODELS and name not in catalogue.listed()
        return catalogue.resolve(DEFAULT_MODEL_ALIAS if is_alias else name, "transcribe", language)

    async def open_session(
        request: Request, fields: JobFields, with_job: bool, job_id: str
    ) -> RealtimeSession:
        """A new session. Raises QueueFull, and what `RealtimeSession.open` does.

        With a job, whose fields these are, also what `JobService.open_live` raises. `job_id`: of one that
        goes on instead; what `JobService.resume_live` does.
        """
        owner = client_of(request).owner
        submission: Submission | None = None
        terms: tuple[Term, ...] = ()
        if with_job:
            terms = fields.terms_of(jobs.terms.all_of(owner))
            model = resolve_model(fields.model, fields.language)
            of_job = fields.model_copy(update={"model": model, "filename": fields.filename or FILENAME})
            submission = await submission_of(service, of_job, None, owner, None, terms)
        streams.check()
        with ExitStack() as admitted:
            try:
                admission.live_streams.check(client_of(request))
            except QueueFull:  # a client that opens a new stream does not come back to the one before
                if not await streams.end_waiting(client_of(request).owner):
                    raise
            admitted.enter_context(admission.live_streams.hold(client_of(request)))
            session = RealtimeSession(
                client_of(request).owner, live.open, resolve_model, service.settings.max_duration_s
            )
            await session.open(_words_of(fields))
            if submission is not None:
                try:
                    if job_id:
                        await run_shielded(session.take_up(jobs, job_id))
                    else:
                        await run_shielded(session.make_job(jobs, submission, terms))
                except BaseException:
                    await run_shielded(session.close())
                    raise
            session.admitted = admitted.pop_all()
        streams.add(session)
        return session

    @router.get(
        STREAM_PATH,
        summary="Transcribe live: a WebSocket",
        responses=RESPONSES,
        status_code=101,
        response_class=Response,
    )
    async def realtime(
        request: Request,
        fields: Annotated[JobFields, Query()],
        intent: Annotated[str, Query(description=f"`{INTENT}`, or nothing.")] = INTENT,
        session: Annotated[
            str, Query(max_length=64, description="The id of a stream whose connection broke.")
        ] = "",
        last_event_id: Annotated[
            str, Query(max_length=64, description="The last event of it that the client has got.")
        ] = "",
        job: Annotated[
            bool,
            Query(
                description="Make a job of the stream: its sound is stored as it comes, and all of it is "
                "transcribed at the end, as an upload. All other fields of a job count for it alone, but "
                "`model`, `language`, `languages`, `prompt` and `hotwords`."
            ),
        ] = False,
        job_id: Annotated[
            str,
            Query(
                max_length=64,
                description="With `job`: of a stream that the end of the service has ended. It goes on.",
            ),
        ] = "",
    ) -> Response:
        if not is_handshake(request.scope):
            raise UpgradeRequired(
                f"{STREAM_PATH} takes WebSockets alone (version 13), and this request is none. If the client "
                "has opened one, a proxy in between does not pass on `Upgrade` and `Connection`."
            )
        if intent != INTENT:
            raise InvalidInput(CONVERSATIONS, param="intent")

        owner = client_of(request).owner
        if session and siblings.others and not streams.has(session, owner):
            relay = await connect_elsewhere(request.scope, siblings, session, owner, last_event_id)
            if relay is not None:
                return relay
        if session:
            return connect_again(request.scope, streams, session, owner, last_event_id)

        async def find() -> tuple[RealtimeSession, int]:
            return await open_session(request, fields, job, job_id), 0

        return RealtimeResponse(request.scope, streams, find)

    @router.post("/v1/realtime/{what:path}", include_in_schema=False)
    async def no_realtime(what: str) -> Response:
        raise InvalidInput(
            f"There is no WebRTC here, nor sessions that are made before: open a WebSocket at {STREAM_PATH}, "
            "with the key of the service.",
            code="unsupported",
        )

    return router


def _words_of(fields: JobFields) -> Transcription:
    """What a session begins with."""
    return Transcription(
        model=fields.model or None,
        language=fields.language,
        languages=[*fields.expected_languages] or None,
        prompt=fields.prompt,
        keywords=[fields.hotwords] if fields.hotwords else None,
    )


def connect_again(
    scope: Scope, streams: RealtimeSessions, session: str, owner: str, last_event_id: str
) -> Response:
    """Continues a stream of this process, after the event that its client got last."""

    async def find() -> tuple[RealtimeSession, int]:
        known = streams.find(session, owner)
        return known, _event_number(known, last_event_id)

    return RealtimeResponse(scope, streams, find)


def _event_number(session: RealtimeSession, event_id: str) -> int:
    """The number of the last event that a client has got. Raises UnknownStream and InvalidInput."""
    digits = event_id.removeprefix(EVENT_PREFIX)
    number = int(digits) if digits.isascii() and digits.isdecimal() else 0 if not event_id else -1
    if not 0 <= number <= session.events.last:
        raise InvalidInput(
            "The stream has sent no such event: name the last `event_id` that has come.",
            param="last_event_id",
        )
    try:
        session.events.after(number)
    except Lagging:
        raise UnknownStream(
            "The events after that one are no longer kept. Open a new stream.",
            param="last_event_id",
            code="event_not_kept",
        ) from None
    return number


class RealtimeResponse(UpgradeResponse):
    """Connects a client to its session, after the events that it has seen."""

    def __init__(
        self,
        scope: Scope,
        streams: RealtimeSessions,
        find: Callable[[], Awaitable[tuple[RealtimeSession, int]]],
    ) -> None:
        """`find`: the session, and the number of the last event that the client has seen."""
        super().__init__(scope, PROTOCOL)
        self._streams = streams
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            session, seen = await self._find()
        except WhisperfleetError as error:
            if not scope["subprotocols"]:
                raise
            await RefusalResponse(scope, error)(scope, receive, send)
            return
        self._connection = ClientConnection(session, seen)
        try:
            await super().__call__(scope, receive, send)
        finally:
            await run_shielded(self._leave(session))

    async def run(self, web_socket: WebSocket) -> None:
        self._streams.connected(self._connection.session)
        await self._connection.run(web_socket)

    async def _leave(self, session: RealtimeSession) -> None:
        connection = self._connection
        connection.has_ended.set()
        if session.end_connection not in (None, connection.replace):  # a newer one has the session
            return
        session.end_connection = None
        if connection.is_over or not session.is_known:
            await self._streams.end(session)
        else:
            self._streams.disconnected(session)


class RefusalResponse(UpgradeResponse):
    """Says by an event why there is no stream: browsers hide the answer to a refused handshake."""

    def __init__(self, scope: Scope, error: WhisperfleetError) -> None:
        super().__init__(scope, PROTOCOL)
        self._error = error

    async def run(self, web_socket: WebSocket) -> None:
        event = {"type": "error", "event_id": f"{EVENT_PREFIX}0", "error": error_detail(self._error)}
        await web_socket.send(json.dumps(event, ensure_ascii=False))
        await web_socket.close(POLICY_VIOLATION, self._error.message)


class ClientConnection:
    """A WebSocket for a session, until it breaks, or a newer one takes its place."""

    def __init__(self, session: RealtimeSession, seen: int) -> None:
        self.session = session
        self.is_over = False  # the session is, too
        self.has_ended = asyncio.Event()
        self._seen = seen  # the number of the last event that the client has
        self._is_replaced = asyncio.Event()

    async def replace(self) -> None:
        """End this connection, for another one of the same session."""
        self._is_replaced.set()
        await self.has_ended.wait()

    async def run(self, web_socket: WebSocket) -> None:
        """Raises OSError if the connection breaks."""
        end_before, self.session.end_connection = self.session.end_connection, self.replace
        if end_before is not None:
            await end_before()
        tasks = [
            asyncio.create_task(work)
            for work in (self._read(web_socket), self._write(web_socket), self._until_replaced(web_socket))
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except OSError:
            raise
        except Exception:
            self.is_over = True
            raise
        finally:
            await end_tasks(*tasks)

    async def _read(self, web_socket: WebSocket) -> None:
        """Pass on the events of the client, until it closes the WebSocket."""
        session, loop = self.session, asyncio.get_running_loop()
        while True:
            waits_from = loop.time()
            await session.until_ready()
            session.active_at += loop.time() - waits_from
            try:
                async with asyncio.timeout_at(None if session.is_ending else session.active_at + IDLE_S):
                    message = await web_socket.receive()
            except TimeoutError:
                if session.owes_text:
                    session.active_at += IDLE_S
                else:
                    session.end(POLICY_VIOLATION, _IDLE)
                continue
            if message is None:
                self.is_over = True
                return
            handling = session.handle(message)
            del message  # it may be large, and its audio may have to wait
            # Shielded: a connection that takes the place of this one knows how much audio was taken.
            await run_shielded(handling)

    async def _write(self, web_socket: WebSocket) -> None:
        """Send the events of the session as they come, until it ends."""
        session, seen, events = self.session, self._seen, self.session.events
        await web_socket.send(session.created(seen))
        while True:
            events.sent = seen
            try:
                event = events.after(seen)
            except Lagging:
                ending: Ending | None = _SLOW
            else:
                if event is not None:
                    await web_socket.send(event)
                    seen += 1
                    continue
                ending = session.ending
            if ending is not None:
                self.is_over = True
                await web_socket.close(*ending)
                return
            await session.changed.wait()

    async def _until_replaced(self, web_socket: WebSocket) -> None:
        await self._is_replaced.wait()
        await web_socket.close(*_NEWER)
