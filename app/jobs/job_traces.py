"""The span of a whole job, from its submission to its end."""

from app import tracing
from app.jobs.job import Job


def trace_job(job: Job) -> None:
    """Record a job that has just ended. Call it once for each."""
    submission = job.submission
    attributes: dict[str, str | float] = {"status": job.status.value}
    if submission.request_id is not None:
        attributes["request_id"] = submission.request_id
    if job.duration is not None:
        attributes["audio_s"] = job.duration
    if job.error is not None and job.error.code is not None:
        attributes["error_code"] = job.error.code
    tracing.add_job(job.id, submission.traceparent, job.created_at, job.started_at, **attributes)
