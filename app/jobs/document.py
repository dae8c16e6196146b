"""The JSON of a job, in answers, events and webhooks. Its model also makes the OpenAPI document."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from app.common.options import Options
from app.jobs.job import Job as StoredJob
from app.jobs.job import JobError, Stage, Status
from workers.messages import MAX_FAILED_SPANS, MAX_LISTED_SPEAKERS, MAX_TRACKS, Span, Warnings, seconds

# ISO 8601 in UTC, with milliseconds.
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class FailedSpan(BaseModel):
    start: float = Field(description="Seconds from the recording's start.")
    end: float = Field(description="Seconds from the recording's start.")


class JobProgress(BaseModel):
    stage: Annotated[str, Field(json_schema_extra={"enum": list(Stage)})]
    done_s: float = Field(description="Audio transcribed so far (s); never decreases.")
    total_s: float | None = Field(
        description="Length of the recording, or of the part that is transcribed (s), once it is known. "
        "It is what the file says until all is decoded."
    )
    clips_done: int
    clips_total: int | None
    realtime_factor: float | None = Field(description="Seconds of audio transcribed per second.")


class SoundTrack(BaseModel):
    index: int = Field(description="Place among the sound tracks, from 0: a value of `audio_track`.")
    language: str | None = Field(description="As in the file, usually ISO 639-2.")
    title: str | None
    codec: str | None
    channels: int | None
    default: bool = Field(description="Whether the file asks players to prefer it.")


class Job(BaseModel):
    id: str
    object: Literal["job"] = "job"
    status: Annotated[str, Field(json_schema_extra={"enum": list(Status)})]
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    filename: str | None
    url: str | None = Field(description="URL of the recording.")
    duration: float | None = Field(
        description="Length of the recording (s); where the part ends that was transcribed, if it was one."
    )
    audio_tracks: list[SoundTrack] | None = Field(
        description=f"The recording's sound tracks, the first {MAX_TRACKS}; null until it is decoded."
    )
    language: str | None = Field(description="Spoken language, ISO 639-1.")
    languages: dict[str, float] | None = Field(
        description="If several are spoken: each one, ISO 639-1, and its part of the text's time, 0 to 1; "
        "most first. Null also if an older version of the service made the transcript."
    )
    model: str
    options: Options
    progress: JobProgress
    error: JobError | None
    failed_spans: list[FailedSpan] = Field(
        description=f"The parts that could not be transcribed. Of more than {MAX_FAILED_SPANS}, the last one "
        "goes to the end of all others."
    )
    warnings: Warnings = Field(
        description="What is wrong with the recording, once it is decoded. Codes are `undecodable`, `gap`, "
        "`cut_off`, …; `more` counts those that are left out, and `tracks` the sound tracks."
    )
    webhook_url: str | None
    owner: str | None = Field(None, description="Whose job it is, for operators.")
    parent: str | None = Field(
        description="The id of the job whose recording this one transcribes again. What it makes is a "
        "revision of that job's transcript; it has none of its own."
    )
    revision: int = Field(description="Number of the newest correction; 0: the transcript is the original.")
    excerpt: str | None = Field(
        description="The beginning of the newest transcript. Null: there is none, or an older version of the "
        "service made it."
    )
    speakers: list[str] | None = Field(
        description=f"Who speaks in it, in the order in which they begin; at most {MAX_LISTED_SPEAKERS}. "
        "Empty: that is not known."
    )
    title: str | None = Field(description="What people call it, instead of its file name.")
    notes: str | None
    tags: list[str]
    expires_at: Moment | None = Field(
        description="When the service deletes the job with all of it. Null: never, or the job has not ended."
    )
    audio_expires_at: Moment | None = Field(
        description="When it deletes the recording. Null: never, there is none, or the job has not ended."
    )
    trashed_at: Moment | None = Field(description="When it was put into the trash. Null: it is not there.")


# Of a job that a shared link opens: what a reader of its transcript needs. A new field is not one of them.
SHARED_FIELDS = frozenset(
    {
        *("id", "object", "status", "created_at", "finished_at", "expires_at", "audio_expires_at"),
        *("title", "duration", "language", "languages", "speakers", "revision"),
        *("progress", "failed_spans", "warnings"),
    }
)


def document(job: StoredJob, now: float) -> Job:
    """The document of a job at the Unix time `now` (s). Also those that older versions stored have limits."""
    submission, progress = job.submission, job.progress
    return Job(
        id=job.id,
        status=job.status,
        created_at=timestamp(job.created_at),
        started_at=_optional(job.started_at),
        finished_at=_optional(job.finished_at),
        filename=submission.filename or None,
        url=submission.url,
        duration=job.duration,
        audio_tracks=job.audio_tracks
        and [SoundTrack(**asdict(track)) for track in job.audio_tracks[:MAX_TRACKS]],
        language=job.language,
        languages=job.languages,
        model=submission.model,
        options=submission.options,
        progress=JobProgress(
            stage=progress.stage,
            done_s=round(progress.done_s, 3),
            total_s=None if progress.total_s is None else round(progress.total_s, 3),
            clips_done=progress.clips_done,
            clips_total=progress.clips_total,
            realtime_factor=job.realtime_factor(now),
        ),
        error=job.error,
        failed_spans=[
            FailedSpan(start=seconds(start), end=seconds(end)) for start, end in _listed(job.failed_spans)
        ],
        warnings=job.warnings,
        webhook_url=submission.webhook_url,
        parent=submission.again and submission.again.parent,
        revision=job.revision,
        excerpt=job.excerpt,
        speakers=None if job.speakers is None else list(job.speakers[:MAX_LISTED_SPEAKERS]),
        title=submission.title,
        notes=submission.notes,
        tags=list(submission.tags),
        expires_at=_optional(job.expires_at),
        audio_expires_at=_optional(job.audio_expires_at),
        trashed_at=_optional(job.trashed_at),
    )


def public(job: StoredJob, now: float) -> dict[str, Any]:
    """The same as JSON, for answers, events and webhooks."""
    return document(job, now).model_dump(mode="json")


def timestamp(moment: float) -> str:
    """A Unix time in s as a `Moment`."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _listed(spans: Sequence[Span]) -> Sequence[Span]:
    """At most `MAX_FAILED_SPANS`, which leave nothing out."""
    first, rest = spans[: MAX_FAILED_SPANS - 1], spans[MAX_FAILED_SPANS - 1 :]
    return [*first, (rest[0][0], rest[-1][1])] if rest else first


def _optional(moment: float | None) -> str | None:
    return None if moment is None else timestamp(moment)
