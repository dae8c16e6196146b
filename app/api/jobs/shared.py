"""The endpoints of shared links, which open one transcript on the page without a key; and who a client is."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from app.api.http.keys import IDENTITY_PATH, shared_link_of
from app.api.http.receiving import check_json, receive_document
from app.api.jobs.lookup import check_done, find_job
from app.api.schemas import Identity, NewSharedLink, SharedLink, SharedLinkList
from app.common.errors import NoKeys
from app.jobs.document import timestamp
from app.jobs.service import JobService
from app.jobs.shared_links import SharedLink as StoredLink
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors, validated
from app.server.json_bodies import documented_body, json_object
from app.server.requests import client_of, public_path
from app.settings import Settings

DAY_S = 24 * 3600


class LinkOptions(BaseModel):
    """What a new shared link opens."""

    model_config = ConfigDict(extra="forbid", strict=True)

    correct: bool = Field(False, description="It may correct the transcript, too.")
    audio: bool = Field(True, description="It opens the recording and its waveform, too.")
    revisions: bool = Field(False, description="It shows earlier revisions, as with `correct`, too.")
    expires_in_s: Annotated[int, Field(ge=60, le=366 * DAY_S)] = Field(
        30 * DAY_S, description="The link ends so long (s) after it was made."
    )


def shared_routes(service: TranscriptionService, jobs: JobService, settings: Settings) -> APIRouter:
    router = APIRouter(tags=["jobs"])

    def document(link: StoredLink) -> SharedLink:
        return SharedLink(
            id=link.id,
            job=link.job_id,
            correct=link.may_correct,
            audio=link.has_audio,
            revisions=link.has_revisions,
            created_at=timestamp(link.created_at),
            expires_at=timestamp(jobs.clock.date(link.expires_at)),
        )

    @router.post(
        "/v1/jobs/{job_id}/shared",
        summary="Share the transcript: get a link to the page that needs no key",
        status_code=201,
        response_model=NewSharedLink,
        responses=documented_errors(400, 401, 404, 409, 413, 415, 429, 503, 507),
        openapi_extra=documented_body(LinkOptions.model_json_schema()),
    )
    async def share_job(request: Request, job_id: str) -> Response:
        """The link opens this transcript on the page, and nothing else, until it expires or is revoked."""
        job = await find_job(jobs, request, job_id)
        check_json(request)
        body = json_object(await receive_document(service, request), '{"correct": true}')
        options = validated(LinkOptions, body)
        if not settings.needs_key:
            raise NoKeys(
                "This service requires no key, so everyone who reaches it sees all jobs. Set "
                "WHISPER_API_KEYS to share one of them alone."
            )
        check_done(job)
        opens = (options.correct, options.audio, options.correct or options.revisions)
        owner, lifetime_s = client_of(request).owner, options.expires_in_s
        link, token = await jobs.shared_links.add(job, owner, *opens, lifetime_s)
        path = public_path(request, f"/#/jobs/{job.id}?link={token}")
        answer = NewSharedLink(**document(link).model_dump(), token=token, path=path)
        return JSONResponse(answer.model_dump(), 201, {"Cache-Control": "no-store"})

    @router.get(
        "/v1/jobs/{job_id}/shared",
        summary="List the links that share the transcript",
        response_model=SharedLinkList,
        responses=documented_errors(401, 404, 503),
    )
    async def list_shared_links(request: Request, job_id: str) -> Response:
        job = await find_job(jobs, request, job_id)
        links = SharedLinkList(data=[document(link) for link in jobs.shared_links.of_job(job)])
        return JSONResponse(links.model_dump())

    @router.delete(
        "/v1/jobs/{job_id}/shared/{link_id}",
        summary="Revoke a shared link",
        status_code=204,
        responses=documented_errors(401, 404, 503, 507),
    )
    async def revoke_shared_link(request: Request, job_id: str, link_id: str) -> Response:
        """It stops working at once, and so do the links to the audio and the result that it has made."""
        await jobs.shared_links.revoke(await find_job(jobs, request, job_id), link_id)
        jobs.on_links_ended()
        return Response(status_code=204)

    @router.get(
        IDENTITY_PATH,
        summary="Who the client is",
        response_model=Identity,
        responses=documented_errors(401),
        tags=["system"],
    )
    async def identify(request: Request) -> Response:
        client, link = client_of(request), shared_link_of(request)
        identity = Identity(
            owner=client.owner or None,
            operator=client.is_operator,
            shared=None if link is None else document(link),
        )
        return JSONResponse(identity.model_dump())

    return router
