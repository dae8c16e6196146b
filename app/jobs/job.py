"""A job, its states and their transitions."""

from dataclasses import dataclass
from enum import StrEnum

from app.common.files import titled_stem
from app.common.options import Options
from workers.messages import SoundTrack, Span, Warnings


class Status(StrEnum):
    """The state of a job."""

    QUEUED = "queued"  # accepted; waits for its turn
    RUNNING = "running"
    SUCCEEDED = "succeeded"  # the transcript is stored
    FAILED = "failed"
    CANCELLED = "cancelled"  # deleted by the client before it was done

    @property
    def is_terminal(self) -> bool:
        """Whether nothing is left to do."""
        return not TRANSITIONS[self]


TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.RUNNING, Status.CANCELLED}),
    # A running job returns to the queue if the service stops, a transient error occurs, or it gives way.
    Status.RUNNING: frozenset({Status.QUEUED, Status.SUCCEEDED, Status.FAILED, Status.CANCELLED}),
    Status.SUCCEEDED: frozenset(),
    Status.FAILED: frozenset(),  # unless a client has it run again: see `Store.reopen`
    Status.CANCELLED: frozenset(),
}


class Stage(StrEnum):
    """The current step of a job."""

    QUEUED = "queued"
    DOWNLOADING = "downloading"
    RECORDING = "recording"  # of a live stream: its sound still comes
    DECODING = "decoding"  # and transcribing the part that is decoded already
    TRANSCRIBING = "transcribing"  # the decoding is complete
    DONE = "done"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a job. Times in s; totals are None until they are known."""

    stage: Stage = Stage.QUEUED
    done_s: float = 0.0
    total_s: float | None = None
    clips_done: int = 0
    clips_total: int | None = None

    def advance_to(self, new: "JobProgress") -> "JobProgress":
        """The progress `new`, except that no amount decreases and no total is lost."""
        return JobProgress(
            stage=new.stage,
            done_s=max(self.done_s, new.done_s),
            total_s=self.total_s if new.total_s is None else new.total_s,
            clips_done=max(self.clips_done, new.clips_done),
            clips_total=self.clips_total if new.clips_total is None else new.clips_total,
        )


# Why a job failed, in rows as in answers.
@dataclass(frozen=True, slots=True)
class JobError:
    message: str
    code: str | None


@dataclass(frozen=True, slots=True)
class Again:
    """What a job transcribes again: the recording of another job, whose transcript gets a new revision.

    The job has no recording and no transcript of its own.
    """

    parent: str  # the id of the other job, which is nobody's child
    revision: int  # the parent's newest one, from which the new one is made; any other is a conflict
    keep_corrections: bool  # what people changed stays


@dataclass(frozen=True, slots=True)
class Submission:
    """The request for a job: a file in the uploads folder or a URL to download, with options."""

    filename: str  # as the client named it; may be empty
    file: str | None  # its name in the uploads folder
    size: int | None  # bytes
    sha256: str | None
    url: str | None
    model: str
    options: Options
    webhook_url: str | None
    owner: str  # a digest of the client's API key, or "" if the service requires none
    idempotency_key: str | None
    fingerprint: str  # equal for equal requests
    request_id: str | None = None  # of the request that submitted it
    traceparent: str | None = None  # of that request, if it was traced: see `traces.job_run`
    # What people call the job: the request may say so, and they may change it later.
    title: str | None = None
    notes: str | None = None
    tags: tuple[str, ...] = ()
    title_from_text: bool = False  # its transcript gives it a title, unless somebody has done so
    from_upload: bool = False  # `file` is a resumable upload, which the new job uses up; not stored
    again: Again | None = None
    has_terms: bool = False  # it was submitted with some, which stay with it

    @property
    def is_download(self) -> bool:
        """Whether the recording must be downloaded before it can be transcribed."""
        return self.file is None and self.again is None


@dataclass(frozen=True, slots=True)
class Job:
    """A job as stored in the database. Points in time are Unix times in s."""

    number: int  # ascending in the order of acceptance
    id: str
    status: Status
    created_at: float
    started_at: float | None
    finished_at: float | None
    submission: Submission
    progress: JobProgress
    duration: float | None  # of the recording, or up to where it was transcribed, in s
    language: str | None  # ISO 639-1
    error: JobError | None
    failed_spans: tuple[Span, ...]  # samples
    result_digest: str | None  # of everything that the stored clip results depend on
    pcm: str | None  # describes the complete decoded audio; see `app.jobs.running.executor`
    audio_tracks: tuple[SoundTrack, ...] | None = None  # of the recording; None until it is decoded
    warnings: Warnings = ()  # about the recording, once it is decoded
    interruptions: int = 0  # how often the whole service has ended in its middle
    revision: int = 0  # number of the newest correction; 0: the transcript is the original
    excerpt: str | None = None  # the beginning of the newest transcript; None: not known
    speakers: tuple[str, ...] | None = None  # of the newest transcript, in order; None: not known
    languages: dict[str, float] | None = None  # of the newest transcript, if several are known
    corrected_at: float | None = None  # when people last changed the transcript
    expires_at: float | None = None  # when the service deletes it; see `app.jobs.storage.retention`
    audio_expires_at: float | None = None  # when it deletes the recording
    trashed_at: float | None = None  # when it was put into the trash, where it is
    # The front end that runs it, or did so last, and its epoch then; None before the first run.
    front_end: str | None = None
    epoch: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether its recording comes, or came, by a live stream."""
        return self.submission.file == self.id

    @property
    def file_stem(self) -> str:
        """The name of files about the job, for every system, without an extension."""
        return titled_stem(self.submission.title, self.submission.filename, self.id)

    def realtime_factor(self, now: float) -> float | None:
        """Seconds of the recording done per second since the job started; None while nothing is done."""
        if self.started_at is None or not self.progress.done_s:
            return None
        elapsed_s = (now if self.finished_at is None else self.finished_at) - self.started_at
        return round(self.progress.done_s / max(elapsed_s, 1e-3), 2)
