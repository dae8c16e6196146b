"""Jobs as rows of the database, and back."""

from typing import Any

import sqlalchemy as sa

from app.jobs.job import Failure, Job, JobProgress, Stage, Status, Submission
from app.options import Options


def submission_row(submission: Submission) -> dict[str, Any]:
    """The columns that say what was handed in."""
    return {
        "filename": submission.filename,
        "file": submission.file,
        "size": submission.size,
        "sha256": submission.sha256,
        "url": submission.url,
        "model": submission.model,
        "options": submission.options.model_dump(mode="json"),
        "webhook_url": submission.webhook_url,
        "owner": submission.owner,
        "idempotency_key": submission.idempotency_key,
        "fingerprint": submission.fingerprint,
    }


def progress_row(progress: JobProgress) -> dict[str, Any]:
    """The columns that say how far a job has come."""
    return {
        "stage": progress.stage.value,
        "done_s": progress.done_s,
        "total_s": progress.total_s,
        "clips_done": progress.clips_done,
        "clips_total": progress.clips_total,
    }


def job_of(row: sa.Row[Any]) -> Job:
    """The job in a row of the table `jobs`."""
    return Job(
        number=row.number,
        id=row.id,
        status=Status(row.status),
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        submission=Submission(
            filename=row.filename,
            file=row.file,
            size=row.size,
            sha256=row.sha256,
            url=row.url,
            model=row.model,
            # What was checked once stays as it is, though a later version may know other limits.
            options=Options.model_construct(**{**Options().model_dump(), **row.options}),
            webhook_url=row.webhook_url,
            owner=row.owner,
            idempotency_key=row.idempotency_key,
            fingerprint=row.fingerprint,
        ),
        progress=JobProgress(Stage(row.stage), row.done_s, row.total_s, row.clips_done, row.clips_total),
        duration=row.duration,
        language=row.language,
        error=Failure(**row.error) if row.error else None,
        failed_spans=tuple((start, end) for start, end in row.failed_spans),
        identity=row.identity,
        pcm=row.pcm,
    )
