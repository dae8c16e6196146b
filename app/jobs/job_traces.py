"""The span of a whole job, from its submission to its end."""

from app.jobs.job import Job
from app.telemetry import traces


def trace_job(job: Job) -> None:
    """Record a job that has just ended. Call it once for each."""
    submission = job.submission
    attributes: dict[str, str | float] = {"whisperfleet.status": job.status.value}
    if submission.request_id is not None:
        attributes["whisperfleet.request_id"] = submission.request_id
    if job.duration is not None:
        attributes["whisperfleet.audio_s"] = job.duration
    if job.error is not None and job.error.code is not None:
        attributes["whisperfleet.error_code"] = job.error.code
    traces.add_job(job.id, submission.traceparent, job.created_at, job.started_at, attributes)
