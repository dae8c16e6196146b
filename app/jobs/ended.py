"""What became of the jobs since the start of the service, in numbers and in the log."""

from collections import Counter

import structlog

from app.jobs.job import Job, Status
from app.telemetry.histogram import Histogram

log = structlog.get_logger()


class EndedJobs:
    """How many jobs have ended, by their status, and how long those took that succeeded."""

    def __init__(self) -> None:
        self.outcomes = Counter({status: 0 for status in Status if status.is_terminal})
        self.seconds = Histogram(1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)  # from their submission

    def add(self, job: Job) -> None:
        """Enter a job that has just ended, with a line in the log."""
        self.outcomes[job.status] += 1
        end = job.created_at if job.finished_at is None else job.finished_at
        facts = {
            "job": job.id,
            "model": job.submission.model,
            "audio_s": job.duration,
            "speed": job.realtime_factor(end),  # seconds of audio per second since it began to run
            "took_s": round(end - job.created_at, 3),
            "owner": job.submission.owner or None,
        }
        log_line = log.warning if job.status is Status.FAILED else log.info
        if job.error is not None:
            facts["error"] = job.error.message
        log_line(f"job {job.status}", **{name: fact for name, fact in facts.items() if fact is not None})
        if job.status is Status.SUCCEEDED:
            self.seconds.add(end - job.created_at)
