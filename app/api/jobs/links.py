"""The endpoints of links: paths of a job's audio and result that work without an API key for a while."""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse, Response

from app.api.http.keys import operators_only, shared_link_of
from app.api.http.receiving import check_json, receive_document
from app.api.jobs.lookup import find_job
from app.api.jobs.results import ResultFormat
from app.api.jobs.signatures import SHARED, signed_query
from app.api.jobs.sound import SoundFormat, SpanTime, check_sound_query
from app.api.schemas import Link
from app.api.transcripts.correction_bodies import RevisionNumber
from app.api.transcripts.versions import wanted_number
from app.common.errors import InvalidInput, NotAllowed
from app.common.options import FileChanges
from app.jobs.document import timestamp
from app.jobs.service import JobService
from app.jobs.shared_links import SharedLink
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors, validated
from app.server.json_bodies import documented_body, json_object
from app.server.requests import client_of, public_path

LIFETIME_S = 12 * 3600


class AudioLink(BaseModel):
    """A link to the recording, a copy of it or a span: with the parameters of `…/audio`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    path: Literal["audio"]
    format: SoundFormat | None = None
    start: SpanTime | None = None
    end: SpanTime | None = None


class ResultLink(FileChanges):
    """A link to the transcript: with the parameters of `…/result`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    path: Literal["result"]
    format: ResultFormat | None = None
    revision: RevisionNumber | None = None
    allow_partial: bool | None = None


_KINDS: Mapping[str, type[AudioLink | ResultLink]] = {"audio": AudioLink, "result": ResultLink}
_BODY = documented_body({"oneOf": [kind.model_json_schema() for kind in _KINDS.values()]})


def link_routes(service: TranscriptionService, jobs: JobService) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["jobs"])

    @router.post(
        "/jobs/{job_id}/links",
        summary="Get a link to the audio or the result that needs no key",
        status_code=201,
        response_model=Link,
        responses=documented_errors(400, 401, 403, 404, 413, 415, 503),
        openapi_extra=_BODY,
    )
    async def create_link(request: Request, job_id: str) -> Response:
        """The link works for 12 hours, for GET of exactly this path and query, also with `Range`.

        Its query ends with `expires` and `signature`; `expires_at` says until when it works. A request with
        any other query than the link's gets a 403.
        """
        job = await find_job(jobs, request, job_id)
        check_json(request)
        link = _parse(await receive_document(service, request))
        shared = shared_link_of(request)
        if shared is not None and not shared.may("GET", link.path):
            raise NotAllowed("This shared link does not open the recording.")
        if isinstance(link, ResultLink):
            wanted_number(request, link.revision)
        else:
            check_sound_query(job, link.format, link.start, link.end)
        expires = int(jobs.clock()) + LIFETIME_S
        if shared is not None:
            expires = min(expires, int(shared.expires_at))
        path = f"/v1/jobs/{job.id}/{link.path}"
        secret = await jobs.link_secrets.of(client_of(request).owner)
        query = signed_query(secret, path, _query(link, shared), expires)
        answer = Link(
            path=public_path(request, f"{path}?{query}"), expires_at=timestamp(jobs.clock.date(expires))
        )
        return JSONResponse(answer.model_dump(), 201)

    @router.delete(
        "/links",
        summary="Withdraw all links to audio and results",
        status_code=204,
        responses=documented_errors(401, 403, 503, 507),
        dependencies=[Depends(operators_only)],
    )
    async def withdraw_links() -> Response:
        """All links of all jobs stop working at once. New ones can be made."""
        await jobs.link_secrets.renew((), jobs.link_secrets.by_owner)
        jobs.on_links_ended()
        return Response(status_code=204)

    return router


def _parse(body: bytes) -> AudioLink | ResultLink:
    """The link that a body describes. Raises InvalidInput."""
    document = json_object(body, '{"path": "audio"}')
    path = document.get("path")
    if not isinstance(path, str) or path not in _KINDS:
        raise InvalidInput("`path`: name what the link is for, `audio` or `result`.", param="path")
    return validated(_KINDS[path], document)


def _query(link: AudioLink | ResultLink, shared: SharedLink | None) -> str:
    """The parameters that a link was asked for with, as a query, and the shared link that it ends with."""
    fields = link.model_dump(exclude={"path"}, exclude_none=True)
    if shared is not None:
        fields[SHARED] = shared.id
    return urlencode({name: _text(value) for name, value in fields.items()})


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
