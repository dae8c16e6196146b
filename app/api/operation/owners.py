"""What owners have made and hold open ends when their keys are removed, or an operator withdraws them."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

import httpx
import structlog
from fastapi import APIRouter
from starlette.responses import Response

from app.api.audio.realtime_sessions import RealtimeSessions
from app.api.http.keys import Authentication
from app.common.errors import NotReady, WhisperfleetError
from app.common.owners import LINK_OWNER, KeyRing
from app.jobs.service import JobService
from app.server.errors import documented_errors
from app.server.siblings import Siblings

_END_S = 30  # in which requests end that are cancelled

log = structlog.get_logger("whisperfleet.api")


@dataclass(frozen=True, slots=True)
class Owners:
    """Those that have keys, in this process."""

    keys: KeyRing
    authentication: Authentication
    streams: RealtimeSessions
    jobs: JobService
    has_users: bool  # a login names further owners

    async def load(self, before: Collection[str] = ()) -> None:
        """Withdraw the owners that have lost all keys, as those `before`. Raises what `Database` raises."""
        names, secrets = self.keys.owners(), self.jobs.link_secrets
        self.jobs.disk.has_others = self.has_users or len(names) > 1
        await self.jobs.store.rename_owners(self.keys.named())
        await self.jobs.load_used()
        stored = () if self.has_users or not names else secrets.by_owner  # without keys, all are let in
        gone = {*before, *stored} - names - {LINK_OWNER, ""}
        for owner in gone:
            await self.withdraw(owner)
        await secrets.renew(gone, names - secrets.by_owner.keys())

    async def reload(self) -> None:
        """Read the files of keys and budgets again. After an error, which is logged, they stay the same."""
        try:
            before = self.keys.owners()
            self.keys.load()
            self.authentication.end()
            await self.load(before)
            self.jobs.budgets.load()
        except (OSError, ValueError) as error:
            log.error("a file cannot be used; the keys or budgets stay as they were", error=str(error))
        except WhisperfleetError as error:
            log.error("links of removed keys may still work; send SIGHUP again", error=str(error))
        else:
            log.info("keys and budgets were read again", keys=len(self.keys), owners=len(self.keys.owners()))

    async def withdraw(self, owner: str) -> None:
        """End the requests and streams of an owner, and what else it has made. Its jobs and keys stay."""
        ended = self.authentication.end(owner)
        await self._end_made(owner)
        if ended:
            await asyncio.wait(ended, timeout=_END_S)
            await self._end_made(owner)  # what they have made meanwhile
        log.warning("an owner was withdrawn", withdrawn=owner, requests=len(ended))

    async def _end_made(self, owner: str) -> None:
        await self.jobs.withdraw(owner)
        await self.streams.end_of(owner)


def owner_routes(owners: Owners, siblings: Siblings) -> APIRouter:
    router = APIRouter(prefix="/v1/owners", tags=["service"])

    @router.post(
        "/{name:path}/withdraw",
        summary="End all that an owner has made or holds open",
        status_code=204,
        responses=documented_errors(401, 403, 423, 503, 507),
    )
    async def withdraw_owner(name: str) -> Response:
        """Requests, streams, links, uploads and webhooks. Its jobs stay, and its keys: remove them first."""

        async def withdraw_at(other: str) -> None:
            with suppress(httpx.ConnectError):  # the process has ended, and its requests with it
                await siblings.ask(other, "/withdraw", {"owner": name}, method="POST", wait_s=2 * _END_S)

        elsewhere = asyncio.gather(*map(withdraw_at, siblings.others))
        try:
            await owners.withdraw(name)  # by the task of this request, which it does not end
            await elsewhere
        except httpx.HTTPError as error:
            raise NotReady(
                "A process of the service did not answer, and may still serve the owner; try again later."
            ) from error
        finally:
            elsewhere.cancel()
        return Response(status_code=204)

    return router
