"""Error responses: one table of statuses and one JSON format. Never a traceback, and never a 422."""

from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from app.common import errors
from app.common.suggestions import nearest_name
from app.intake import limits
from app.server.json_bodies import fault_of_field
from app.server.requests import CLIENT_CLOSED_REQUEST, METHODS, route_path

TUS_PATH, TUS_VERSION = "/v1/uploads", "1.0.0"  # of the protocol for resumable uploads
RETRY_AFTER_S = {429: limits.RETRY_AFTER_S, 503: 5}  # by status
MAX_MESSAGE_CHARS = 1000
MAX_NAME_CHARS = 100  # of a field that a client has named
MAX_LISTED = 12  # faults, or names, in one message
NOTHING: Mapping[str, Any] = {}

M = TypeVar("M", bound=BaseModel)

log = structlog.get_logger("whisperfleet.api")


class ErrorDetail(BaseModel):
    message: str = Field(description="What happened, and what to do about it.")
    type: str
    param: str | None = Field(description="The field at fault.")
    code: str | None = Field(description="A short constant for programs.")


class Error(BaseModel):
    error: ErrorDetail


class Kind(NamedTuple):
    status: int
    code: str | None = None  # if the exception has none


KINDS: dict[type[errors.WhisperfleetError], Kind] = {
    errors.InvalidInput: Kind(400),
    errors.UnsuitableFormat: Kind(400, "unsuitable_format"),
    errors.Unauthorized: Kind(401, "invalid_api_key"),
    errors.NotAllowed: Kind(403, "not_allowed"),
    errors.OriginNotAllowed: Kind(403, "origin_not_allowed"),
    errors.LinkRefused: Kind(403, "link_refused"),
    errors.UnknownModel: Kind(404, "model_not_found"),
    errors.UnknownJob: Kind(404, "job_not_found"),
    errors.UnknownRevision: Kind(404, "revision_not_found"),
    errors.UnknownSharedLink: Kind(404, "shared_link_not_found"),
    errors.UnknownUpload: Kind(404, "upload_not_found"),
    errors.UnknownStream: Kind(404, "stream_not_found"),
    errors.UnknownNode: Kind(404, "node_not_found"),
    errors.AmbiguousNode: Kind(409, "ambiguous_node"),
    errors.JobNotDone: Kind(409, "job_not_done"),
    errors.NoVoices: Kind(409, "no_voices"),
    errors.AudioNotKept: Kind(409, "audio_not_kept"),
    errors.NoKeys: Kind(409, "no_keys"),
    errors.NoTrash: Kind(409, "no_trash"),
    errors.KeyReused: Kind(409, "idempotency_key_reused"),
    errors.UploadConflict: Kind(409, "upload_conflict"),
    errors.UploadExpired: Kind(410, "upload_expired"),
    errors.StreamRefused: Kind(409, "stream_refused"),
    errors.PreconditionFailed: Kind(412, "revision_changed"),
    errors.UnsupportedTusVersion: Kind(412, "unsupported_tus_version"),
    errors.TooLarge: Kind(413, "too_large"),
    errors.UnsupportedContentType: Kind(415, "unsupported_content_type"),
    errors.HostNotAllowed: Kind(421, "host_not_allowed"),
    errors.UploadLocked: Kind(423, "upload_locked"),
    errors.UpgradeRequired: Kind(426, "web_socket_required"),
    errors.PreconditionRequired: Kind(428, "if_match_required"),
    errors.QueueFull: Kind(429, "queue_full"),
    errors.InsufficientQuota: Kind(429),
    errors.ProcessCrashed: Kind(500, "child_died"),
    errors.ClipFailed: Kind(500, "clip_failed"),
    errors.HelperFailed: Kind(503, "helper_failed"),
    errors.ModelUnavailable: Kind(503, "model_unavailable"),
    errors.DatabaseUnavailable: Kind(503, "database_unavailable"),
    errors.NotReady: Kind(503, "not_ready"),
    errors.Interrupted: Kind(503, "interrupted"),
    errors.DiskFull: Kind(507, "disk_full"),
    errors.WhisperfleetError: Kind(500),
}


class ErrorResponse(JSONResponse):
    """An error. Whoever refuses a request for a resumable upload, the answer names the protocol's version."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if f"{route_path(scope)}/".startswith(f"{TUS_PATH}/"):
            self.headers["Tus-Resumable"] = TUS_VERSION
            if self.status_code == 412:
                self.headers["Tus-Version"] = TUS_VERSION
        await super().__call__(scope, receive, send)


def json_error(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """The response to every error, in the format of OpenAI's API."""
    detail = _detail(status, message, param, code)
    return ErrorResponse(Error(error=detail).model_dump(), status, dict(headers or {}))


def _detail(status: int, message: str, param: str | None, code: str | None) -> ErrorDetail:
    kind = (
        "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    )
    return ErrorDetail(message=message[:MAX_MESSAGE_CHARS], type=kind, param=param, code=code)


def _kind(error: errors.WhisperfleetError) -> Kind:
    """A subclass uses the entry of its nearest base."""
    return next(KINDS[base] for base in type(error).__mro__ if base in KINDS)


def error_detail(error: errors.WhisperfleetError) -> dict[str, Any]:
    """One of the service's own errors, as responses and the events of live streams describe it."""
    kind = _kind(error)
    return _detail(kind.status, error.message, error.param, error.code or kind.code).model_dump()


def error_response(error: errors.WhisperfleetError) -> JSONResponse:
    """The response to one of the service's own errors."""
    kind = _kind(error)
    if kind.status == 500 and (lack := errors.no_descriptor(error)) is not None:
        return error_response(lack)
    headers: dict[str, str] = {}
    if kind.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if kind.status == 426:
        headers |= {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    may_pass = kind.status in RETRY_AFTER_S and not isinstance(error, errors.InsufficientQuota)
    if may_pass:
        headers["Retry-After"] = str(RETRY_AFTER_S[kind.status])
    if kind.status == 429 or kind.status >= 500:
        # OpenAI's clients retry after all of these statuses, unless this header says no.
        headers["x-should-retry"] = str(may_pass).lower()
    return json_error(
        kind.status, error.message, param=error.param, code=error.code or kind.code, headers=headers
    )


def invalid_input(
    problems: Sequence[Mapping[str, Any]], known: Collection[str] = (), advice: Mapping[str, str] = NOTHING
) -> errors.InvalidInput:
    """pydantic's list of errors as one readable error. `param` is the first field at fault.

    `known`: the names that a request may use. `advice`: what to do instead of sending one of these others.
    """
    lines = []
    for problem in problems[:MAX_LISTED]:  # a body may have thousands
        name = _field_name(problem)
        if name is not None and problem["type"] == "extra_forbidden":
            lines.append(f"`{name}` is not known here{_instead(name, known, advice)}")
        else:
            text = fault_of_field(problem)
            lines.append(f"`{name}`: {text}" if name else text)
    return errors.InvalidInput("; ".join(lines), param=_field_name(problems[0]) if problems else None)


def validated(model: type[M], values: Mapping[str, Any], known: Collection[str] = ()) -> M:
    """The values of a request, checked by a model. Raises InvalidInput.

    `known`: the names that a request may use, if they are not all of the model's.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise invalid_fields(model, error.errors(include_url=False), known) from None


def invalid_fields(
    model: type[BaseModel], problems: Sequence[Mapping[str, Any]], known: Collection[str] = ()
) -> errors.InvalidInput:
    """As `invalid_input`, with the names that the model has for those that it has not."""
    return invalid_input(problems, known or names_of(model), getattr(model, "advice", NOTHING))


def names_of(model: type[BaseModel]) -> list[str]:
    """The names that requests use for the fields of a model."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _instead(name: str, known: Collection[str], advice: Mapping[str, str]) -> str:
    if name in advice:
        return f": {advice[name]}"
    if near := nearest_name(name, known):
        return f" (did you mean `{near}`?)"
    if 0 < len(known) <= MAX_LISTED:
        return f"; these are: {', '.join(known)}"
    return ": leave it out, or see /docs"


def _field_name(problem: Mapping[str, Any]) -> str | None:
    return str(problem["loc"][0])[:MAX_NAME_CHARS] if problem["loc"] else None


def documented_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's `responses` for errors. `default` also prevents FastAPI from documenting its own 422."""
    # FastAPI builds a validator for each `model`: hundreds would take a tenth of a second of each start.
    schema = {"$ref": f"#/components/schemas/{Error.__name__}"}
    named: dict[int | str, dict[str, Any]] = {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": schema}},
        }
        for status in statuses
    }
    return named | {"default": {"model": Error, "description": "Any other error"}}


def add_error_handlers(app: FastAPI) -> None:
    """Handle every expected exception of the service, FastAPI and Starlette."""

    @app.exception_handler(errors.WhisperfleetError)
    async def service_error(request: Request, error: errors.WhisperfleetError) -> Response:
        response = error_response(error)
        if response.status_code == 500:
            log.error("request failed", error=repr(error), path=request.url.path, exc_info=error.__cause__)
        return response

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> Response:
        # FastAPI says first which part of the request it is: "query", "path" or "header".
        problems = [{**problem, "loc": problem["loc"][1:]} for problem in error.errors()]
        return error_response(invalid_input(problems))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        message = str(error.detail)
        if error.status_code == 404:
            message = f"There is nothing at {request.method} {request.url.path}; see /docs."
        elif error.status_code == 405:
            message = f"{request.url.path} does not take {request.method}."
            # Starlette names only the methods of one of the path's routes.
            return json_error(405, message, headers={"Allow": ", ".join(_methods(app, request.scope))})
        return json_error(error.status_code, message, headers=error.headers)

    @app.exception_handler(ClientDisconnect)
    async def client_disconnected(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=CLIENT_CLOSED_REQUEST)


def _methods(app: FastAPI, scope: Scope) -> list[str]:
    """The methods that the routes of a request's path accept."""
    return [
        method
        for method in METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in app.router.routes)
    ]
