"""What a job is, and what may become of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from app.options import Options
from workers.messages import Span, seconds


class JobStatus(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"  # accepted; waits for its turn
    RUNNING = "running"
    SUCCEEDED = "succeeded"  # there is a transcript
    FAILED = "failed"
    CANCELLED = "cancelled"  # the client deleted it before it was done

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more becomes of such a job."""
        return not TRANSITIONS[self]


TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset({JobStatus.RUNNING, JobStatus.FAILED, JobStatus.CANCELLED}),
    # Back to the queue: the service stopped, or something that it needs is gone for a while.
    JobStatus.RUNNING: frozenset(
        {JobStatus.QUEUED, JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED}
    ),
    JobStatus.SUCCEEDED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.CANCELLED: frozenset(),
}


class Stage(StrEnum):
    """What is being done for a job."""

    QUEUED = "queued"
    DOWNLOADING = "downloading"
    DECODING = "decoding"  # and transcribing what has been decoded
    TRANSCRIBING = "transcribing"  # all of it has been decoded
    DONE = "done"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job has come. Times in s; totals are None until they are known."""

    stage: Stage = Stage.QUEUED
    done_s: float = 0.0
    total_s: float | None = None
    clips_done: int = 0
    clips_total: int | None = None

    def after(self, before: "JobProgress") -> "JobProgress":
        """This progress, with nothing that `before` had told already taken back."""
        return JobProgress(
            stage=self.stage,
            done_s=max(self.done_s, before.done_s),
            total_s=before.total_s if self.total_s is None else self.total_s,
            clips_done=max(self.clips_done, before.clips_done),
            clips_total=before.clips_total if self.clips_total is None else self.clips_total,
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed."""

    message: str
    code: str | None


@dataclass(frozen=True, slots=True)
class Submission:
    """What a client hands in: a file that lies in the uploads folder, or an address to fetch one from."""

    filename: str  # as the client calls it; may be empty
    file: str | None  # its name in the uploads folder
    size: int | None  # bytes
    sha256: str | None
    url: str | None
    model: str
    options: Options
    webhook_url: str | None
    owner: str  # who hands it in: a digest of the API key, or "" where none is asked for
    idempotency_key: str | None
    fingerprint: str  # equal for equal requests


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the database has it. Points in time are Unix times in s."""

    number: int  # in the order in which jobs were accepted
    id: str
    status: JobStatus
    created_at: float
    started_at: float | None
    finished_at: float | None
    submission: Submission
    progress: JobProgress
    duration: float | None  # of the recording, in s
    language: str | None  # ISO 639-1
    error: Failure | None
    failed_spans: tuple[Span, ...]  # samples
    identity: str | None  # what the clips that are stored depend on
    pcm: str | None  # what the decoded recording should be; see `app.jobs.runner`

    def public(self, now: float) -> dict[str, Any]:
        """The job at the Unix time `now` (s) as clients see it: in answers, events and webhooks."""
        submission = self.submission
        return {
            "id": self.id,
            "object": "job",
            "status": self.status.value,
            "created_at": timestamp(self.created_at),
            "started_at": timestamp(self.started_at),
            "finished_at": timestamp(self.finished_at),
            "filename": submission.filename or None,
            "url": submission.url,
            "duration": self.duration,
            "language": self.language,
            "model": submission.model,
            "options": submission.options.model_dump(mode="json"),
            "progress": {
                "stage": self.progress.stage.value,
                "done_s": round(self.progress.done_s, 3),
                "total_s": None if self.progress.total_s is None else round(self.progress.total_s, 3),
                "clips_done": self.progress.clips_done,
                "clips_total": self.progress.clips_total,
                "realtime_factor": self._realtime_factor(now),
            },
            "error": {"message": self.error.message, "code": self.error.code} if self.error else None,
            "failed_spans": [
                {"start": seconds(start), "end": seconds(end)} for start, end in self.failed_spans
            ],
            "webhook_url": submission.webhook_url,
        }

    def _realtime_factor(self, now: float) -> float | None:
        """Seconds of the recording done for each second since the job was begun; None before anything is."""
        done_s = self.duration if self.status is JobStatus.SUCCEEDED else self.progress.done_s
        if self.started_at is None or not done_s:
            return None
        took_s = (now if self.finished_at is None else self.finished_at) - self.started_at
        return round(done_s / max(took_s, 1e-3), 2)


def timestamp(moment: float | None) -> str | None:
    """A Unix time in ISO 8601, UTC, to the millisecond."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
