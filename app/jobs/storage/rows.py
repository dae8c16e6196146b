"""Rows of the table `jobs`, and the jobs in them."""

from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from app.common.options import Options
from app.database.tables import jobs
from app.jobs.job import Again, Job, JobError, JobProgress, Stage, Status, Submission
from app.jobs.storage.retention import Retention
from workers.messages import RecordingWarning, SoundTrack

_DEFAULT_OPTIONS = Options().model_dump()
_OF_SUBMISSION = [field.name for field in fields(Submission) if field.name in jobs.c]
_OF_JOB = [field.name for field in fields(Job) if field.name in jobs.c]


def submission_row(submission: Submission) -> dict[str, Any]:
    """The columns of a submission: those with the names of its fields."""
    row = {name: getattr(submission, name) for name in _OF_SUBMISSION}
    again = submission.again
    if again is not None:
        row |= {
            "parent": again.parent,
            "parent_revision": again.revision,
            "keep_corrections": again.keep_corrections,
        }
    return row | {"options": submission.options.model_dump(mode="json")}


def job_from_row(row: sa.Row[Any], retention: Retention, lag_s: float) -> Job:
    """The job in a row of the table `jobs`. `lag_s`: see `Retention.expiry`."""
    # Stored options were validated on submission; a later version may have other limits.
    options = Options.model_construct(**{**_DEFAULT_OPTIONS, **row.options})
    tracks = row.audio_tracks
    again = None if row.parent is None else Again(row.parent, row.parent_revision, row.keep_corrections)
    converted = {
        "status": Status(row.status),
        "submission": Submission(
            **{name: getattr(row, name) for name in _OF_SUBMISSION}
            | {"options": options, "tags": tuple(row.tags or ()), "again": again}
        ),
        "progress": JobProgress(Stage(row.stage), row.done_s, row.total_s, row.clips_done, row.clips_total),
        "error": JobError(**row.error) if row.error else None,
        "failed_spans": tuple((start, end) for start, end in row.failed_spans),
        "speakers": None if row.speakers is None else tuple(row.speakers),
        "warnings": tuple(RecordingWarning(**warning) for warning in row.warnings or ()),
        "audio_tracks": None if tracks is None else tuple(SoundTrack(**track) for track in tracks),
    }
    expiry = retention.expiry(row, lag_s)
    return Job(**{name: getattr(row, name) for name in _OF_JOB} | converted | expiry)
