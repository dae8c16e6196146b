"""The endpoints of an owner's names and terms."""

import asyncio

from fastapi import APIRouter, Request

from app.api.http.receiving import check_json, receive_document
from app.common.errors import InvalidInput
from app.intake.multipart import MAX_FIELD_BYTES
from app.jobs.service import JobService
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors
from app.server.json_bodies import documented_body
from app.server.requests import client_of
from app.transcript.term_list import EXAMPLE, TermList, parse_terms


def term_routes(service: TranscriptionService, jobs: JobService) -> APIRouter:
    router = APIRouter(prefix="/v1/terms", tags=["jobs"])

    @router.get("", summary="Get your names and terms", responses=documented_errors(401))
    async def list_terms(request: Request) -> TermList:
        """Those of the service (`WHISPER_TERMS`) count besides, unless they disagree with them."""
        return TermList.of(jobs.terms.own(client_of(request).owner))

    @router.put(
        "",
        summary="Replace your names and terms",
        responses=documented_errors(400, 401, 413, 415, 429, 503, 507),
        openapi_extra=documented_body({"$ref": "#/components/schemas/TermList"}),
    )
    async def replace_terms(request: Request) -> TermList:
        """All of them. They count for what is submitted from now on; a job keeps those of its submission."""
        check_json(request)
        await jobs.check_space()
        body = await receive_document(service, request, MAX_FIELD_BYTES)
        try:
            new = await asyncio.to_thread(parse_terms, body)  # a long list takes a while to check
        except ValueError as error:
            raise InvalidInput(f"{error}. Send JSON as {EXAMPLE}") from None
        await jobs.terms.replace(client_of(request).owner, new)
        return TermList.of(new)

    return router
