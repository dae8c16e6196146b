"""`GET /v1/jobs/archive`: the results of many jobs as one ZIP, made while it is sent."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from io import RawIOBase
from typing import Annotated, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import structlog
from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from app.api.http.unused import note_without_effect
from app.api.jobs.lookup import distinct_ids
from app.api.jobs.results import FileQuery, result_response
from app.api.jobs.submissions import BINARY
from app.common.concurrency import run_shielded
from app.common.errors import JobNotDone, UnknownJob, UnsuitableFormat, WhisperfleetError
from app.common.files import folded_name
from app.common.ids import ID
from app.common.options import Options
from app.intake.limits import Admission
from app.jobs.job import Status
from app.jobs.service import JobService
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors
from app.server.requests import client_of
from app.server.sending import AdmittedResponse, plain_body

MAX_JOBS = 1000
ERRORS = "errors.txt"  # lists the results that are not in the archive

_UNEXPECTED = "The service failed unexpectedly; its log has the details."
_FILE_MODE = 0o644 << 16  # Unix permissions, where ZIP has them
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that ZIP can express

log = structlog.get_logger("whisperfleet.api")


class ArchiveQuery(FileQuery):
    ids: list[Annotated[str, Field(pattern=r"[^,\s]")]] = Field(
        min_length=1, description=f"Ids of jobs, separated by commas: {MAX_JOBS} at most."
    )


class ArchiveNames:
    """Gives each file of an archive a name of its own, for every system. Case does not tell names apart."""

    def __init__(self, *reserved: str) -> None:
        self._taken = {folded_name(name) for name in reserved}
        self._numbers: Counter[str] = Counter()  # the last number of each name

    def unique(self, stem: str, extension: str) -> str:
        """A name for a file, from `safe_name` or `safe_stem`, and its extension."""
        name = f"{stem}.{extension}"
        first = folded_name(name)
        while folded_name(name) in self._taken:
            self._numbers[first] += 1
            name = f"{stem} ({self._numbers[first] + 1}).{extension}"
        self._taken.add(folded_name(name))
        return name


def archive_routes(service: TranscriptionService, jobs: JobService, admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.get(
        "/archive",
        summary="Get the transcripts of many jobs, as a ZIP",
        responses={
            200: {"content": {"application/zip": BINARY}},
            **documented_errors(400, 401, 404, 409, 429, 503),
        },
        response_class=StreamingResponse,
    )
    async def retrieve_archive(request: Request, query: Annotated[ArchiveQuery, Query()]) -> Response:
        """All jobs must have succeeded. Files have the titles of jobs, or else the names of recordings, and
        the times of results.

        If a result cannot be made, because its job is deleted meanwhile or the format lacks a character, the
        archive says so in `errors.txt`.
        """
        note_without_effect(request, Options.model_construct(**query.changes), query.changes, query.format)
        wanted = distinct_ids(query.ids, MAX_JOBS)
        owner = client_of(request).visible_owner
        await _check_done(jobs, wanted, owner)
        parts = archive(service, jobs, wanted, query, owner)
        name = f"transcripts-{query.format}.zip"
        response = ArchiveResponse(parts, headers={"content-disposition": f'attachment; filename="{name}"'})
        response.admitted, response.held = admission.sending.hold(client_of(request)), AsyncExitStack()
        response.held.push_async_callback(parts.aclose)
        return response

    return router


class ArchiveResponse(AdmittedResponse, StreamingResponse):
    """Sends an archive part by part."""

    media_type = "application/zip"


async def archive(
    service: TranscriptionService,
    jobs: JobService,
    ids: Sequence[str],
    file: FileQuery,
    owner: str | None = None,
) -> AsyncGenerator[bytes]:
    """A ZIP with the results of an owner's jobs in a format, in parts of about one result each."""
    written = _Written()
    names = ArchiveNames(ERRORS)
    extension = "json" if file.format == "verbose_json" else file.format
    errors: list[str] = []
    with ZipFile(written, "w", ZIP_DEFLATED) as archived:
        for job_id in ids:
            try:
                job = await jobs.store.get(job_id, owner)
                result = await result_response(service, jobs, job, file)
                moment = job.finished_at or job.created_at
                entry = _info(names.unique(job.file_stem, extension), moment)
            except (UnknownJob, JobNotDone, UnsuitableFormat) as error:
                errors.append(f"{job_id}: {error.message}\n")
            except WhisperfleetError:
                raise  # a retry may give all results: a client must not take this archive for complete
            except Exception:
                log.exception("a result cannot be added to an archive", job=job_id)
                errors.append(f"{job_id}: {_UNEXPECTED}\n")
            else:
                # To the end: a thread cannot be cancelled.
                await run_shielded(asyncio.to_thread(_add, archived, entry, result))
                yield written.take()
        if errors:
            archived.writestr(_info(ERRORS, time.time()), "".join(errors))
    yield written.take()


def _add(file: ZipFile, entry: ZipInfo, result: Response) -> None:
    file.writestr(entry, plain_body(result))


def _info(name: str, moment: float) -> ZipInfo:
    """An entry; `moment`: Unix time in s, which ZIP has in UTC here."""
    info = ZipInfo(name, max(time.gmtime(moment)[:6], _EARLIEST))
    info.compress_type = ZIP_DEFLATED
    info.external_attr = _FILE_MODE
    return info


class _Written(RawIOBase):
    """What a `ZipFile` has written, until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


async def _check_done(jobs: JobService, ids: Sequence[str], owner: str | None) -> None:
    """Raises UnknownJob and JobNotDone, for the first job of the owner that has no result."""
    statuses = await jobs.store.statuses([job_id for job_id in ids if ID.fullmatch(job_id)], owner)
    for job_id in ids:
        if job_id not in statuses:
            raise UnknownJob(f"There is no job {job_id[:64]!r}; leave it out.", param="ids")
    for job_id, status in statuses.items():
        if status is not Status.SUCCEEDED:
            raise JobNotDone(f"Job {job_id} is {status}, and has no result; leave it out.", param="ids")
