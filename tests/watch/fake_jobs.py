"""A service with jobs, without HTTP and without workers. Tests say what it answers, and when."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from app.client.answers import KeyTaken, NotRead, Refused
from app.client.jobs import JobClient
from app.watch.report import Report


@dataclass
class Job:
    """A job of the fake service."""

    id: str
    key: str
    filename: str
    content: bytes
    fields: dict[str, str]
    status: str = "running"
    error: tuple[str | None, str] = ("broken_file", "The file is broken.")  # code and message, if it fails


@dataclass
class FakeJobs(JobClient):
    """A recording's content is its transcript; one that begins with `broken` fails."""

    paused: bool = False  # jobs do not end
    language: str = "en"
    duration: float = 60.0
    jobs: dict[str, Job] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)  # the contents of all jobs there ever were
    deleted: list[str] = field(default_factory=list)  # the contents of deleted jobs
    detected: int = 0  # how often a language was
    before_job: Any = None  # called before a job is accepted
    error: Exception | None = None  # of the next submission
    failures: list[tuple[str | None, str]] = field(
        default_factory=list
    )  # codes and messages of the next jobs
    fault: Exception | None = None  # of the next look at a job
    runs_again: bool = True  # it has the recordings of jobs that failed
    ran_again: list[float] = field(default_factory=list)  # when jobs that failed were run again (monotonic)

    async def submit(
        self, recording: BinaryIO, filename: str, fields: dict[str, str], key: str
    ) -> dict[str, Any]:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        content = recording.read()
        if self.before_job is not None:
            self.before_job()
        for job in self.jobs.values():
            if job.key == key:
                if (job.content, job.filename, job.fields) != (content, filename, fields):
                    raise KeyTaken("another request")
                return self._public(job)
        if content.startswith(b"refused"):
            raise Refused("The file is refused.")
        if content.startswith(b"unreadable"):
            raise NotRead("it cannot be read: Input/output error")
        job = Job(f"job{len(self.submitted)}", key, filename, content, fields)
        self.submitted.append(content.decode("latin-1"))
        self.jobs[job.id] = job
        return self._public(job)

    async def detect_language(self, recording: BinaryIO, filename: str) -> str:
        self.detected += 1
        return self.language

    async def job(self, job_id: str) -> dict[str, Any] | None:
        await asyncio.sleep(0)
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        job = self.jobs.get(job_id)
        if job is None:
            return None
        if job.status != "running":
            pass
        elif not self.paused and self.failures:
            job.status, job.error = "failed", self.failures.pop(0)
        elif not self.paused:
            job.status = "failed" if job.content.startswith(b"broken") else "succeeded"
        return self._public(job)

    async def result(self, job_id: str, file_format: str) -> bytes | None:
        job = self.jobs.get(job_id)
        return None if job is None else b"transcript of " + job.content

    async def run_again(self, job_id: str) -> bool:
        job = self.jobs.get(job_id)
        if job is None or not self.runs_again:
            return False
        assert job.status == "failed"
        job.status = "running"
        self.ran_again.append(time.monotonic())
        return True

    async def delete(self, job_id: str) -> None:
        job = self.jobs.pop(job_id, None)
        if job is not None:
            self.deleted.append(job.content.decode("latin-1"))

    def _public(self, job: Job) -> dict[str, Any]:
        return {
            "id": job.id,
            "status": job.status,
            "language": self.language,
            "duration": self.duration,
            "error": dict(zip(("code", "message"), job.error, strict=True))
            if job.status == "failed"
            else None,
        }


class Lines(Report):
    """Keeps what is reported."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.notices: list[str] = []

    def _line(self, what: str, recording: Path, rest: str) -> None:
        self.lines.append(f"{what} {recording.name} {rest}")

    def say(self, notice: str) -> None:
        self.notices.append(notice)
