"""The jobs that a request names."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.requests import Request

from app.api.http.keys import shared_link_of
from app.common.errors import InvalidInput, JobNotDone, UnknownJob
from app.common.ids import ID
from app.common.owners import Client
from app.jobs.document import Job as JobDocument
from app.jobs.document import document
from app.jobs.job import Job, Status
from app.server.requests import client_of

if TYPE_CHECKING:
    from app.jobs.service import JobService


async def find_job(
    jobs: "JobService", request: Request, job_id: str, param: str | None = None, *, trashed: bool = False
) -> Job:
    """The job with an id, if the client may see it; `param` names the request's parameter.

    `trashed`: also one in the trash. Raises UnknownJob, for another owner's job just as for none.
    """
    if not ID.fullmatch(job_id):
        raise UnknownJob(f"There is no job {job_id[:64]!r}.", param=param)
    try:
        get = jobs.store.get_any if trashed else jobs.store.get
        return await get(job_id, client_of(request).visible_owner)
    except UnknownJob as error:
        error.param = param
        raise


def without_file_name(request: Request, job: Job) -> Job:
    """A job for an answer, which nothing may store: a shared link does not get the name of its file."""
    if shared_link_of(request) is None:
        return job
    name = f"{job.id}{PurePath(job.submission.filename).suffix}"
    return replace(job, submission=replace(job.submission, filename=name))


def seen_by(client: Client, job: Job, now: float) -> JobDocument:
    """The document of a job at the Unix time `now` (s): operators alone see whose it is."""
    owner = job.submission.owner if client.is_operator else None
    return document(job, now).model_copy(update={"owner": owner or None})


def distinct_ids(ids: Sequence[str], most: int) -> list[str]:
    """The ids of a request's parameter `ids`, each once, in order. Raises InvalidInput."""
    found = [job_id for part in ids for job_id in re.split(r"[,\s]+", part) if job_id]
    distinct = list(dict.fromkeys(found))
    if not distinct:
        raise InvalidInput("`ids` has no id of a job; separate several by commas.", param="ids")
    if len(distinct) > most:
        raise InvalidInput(
            f"`ids` has {len(distinct)} ids, more than {most}; send several requests.", param="ids"
        )
    return distinct


def check_done(job: Job, allow_partial: bool = False) -> None:
    """Raise JobNotDone if a job has no transcript. `allow_partial`: that of a failed job is one, too."""
    if job.submission.again is not None:
        raise JobNotDone(
            f"The job has no transcript of its own: it transcribes the job {job.submission.again.parent} "
            "again. Ask for that one's.",
            code="no_transcript",
        )
    match job.status:
        case Status.SUCCEEDED:
            return
        case Status.FAILED:
            if allow_partial and job.excerpt is not None:
                return
            why = f": {job.error.message.rstrip('.')}" if job.error else ""
            remedy = "runs it again; …/result?allow_partial=true gives what could be transcribed, if anything"
            raise JobNotDone(f"The job has failed{why}. POST /v1/jobs/{job.id}/again {remedy}.")
        case Status.CANCELLED:
            raise JobNotDone("The job is cancelled and has no result.")
        case _:
            raise JobNotDone(f"The job is {job.status}; ask again when it has succeeded.")
