"""Finds the job that a request names."""

from typing import TYPE_CHECKING

from app.errors import UnknownJob
from app.ids import ID
from app.jobs.job import Job

if TYPE_CHECKING:
    from app.jobs.service import JobService


async def find_job(jobs: "JobService", job_id: str, param: str | None = None) -> Job:
    """The job with an id; `param` names the request's parameter. Raises UnknownJob."""
    if not ID.fullmatch(job_id):
        raise UnknownJob(f"There is no job {job_id[:64]!r}.", param=param)
    try:
        return await jobs.store.get(job_id)
    except UnknownJob as error:
        error.param = param
        raise
