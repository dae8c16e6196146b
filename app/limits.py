"""How many requests, jobs and uploads there may be at the same time, in all and of one API key."""

from dataclasses import dataclass

from app.errors import QueueFull
from app.settings import Settings

KEY_DIVISOR = 10  # one API key may have a tenth of the uploads, and of the event streams
PATIENT = "patient"  # in the state of a request whose client may stop reading for long, as players do
PARTIAL_UPLOADS = 10  # incomplete or unused uploads, for each that may be received at the same time


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `total` of something, and `per_key` of one API key. Further ones get a 429."""

    total: int
    setting: str  # what decides, for errors
    what: str  # the things that are limited, and their state: `uploads are under way`
    per_key: int | None = None
    setting_per_key: str = ""
    what_per_key: str = ""  # `what` if it is the same
    remedy: str = "try again when one has ended"  # for the holder of a key
    verb: str = "takes"  # what the service does with them
    code: str | None = None  # of the error

    def check(self, held: int, held_by_key: int = 0) -> None:
        """Raise QueueFull if there can be no further one."""
        if held >= self.total:
            raise QueueFull(
                f"{self.total} {self.what}, as many as this service {self.verb} ({self.setting}); try again "
                "later.",
                code=self.code,
            )
        if self.per_key is not None and held_by_key >= self.per_key:
            raise QueueFull(
                f"{self.per_key} of your {self.what_per_key or self.what}, as many as one API key may have "
                f"({self.setting_per_key}); {self.remedy}.",
                code=self.code,
            )


class Limits:
    """The limits that the settings give."""

    def __init__(self, settings: Settings) -> None:
        def shared(total: int, setting: str, what: str, code: str, **texts: str) -> Limit:
            """A limit of which one API key may have the part that `KEY_DIVISOR` says."""
            per_key = max(1, total // KEY_DIVISOR)
            return Limit(total, setting, what, per_key, f"1/{KEY_DIVISOR} of {setting}", code=code, **texts)

        # Requests and jobs that can run at once do not count as waiting.
        self.requests = Limit(settings.max_queued_jobs, "WHISPER_MAX_QUEUED_JOBS", "requests are under way")
        self.jobs = Limit(
            settings.max_queued_jobs,
            "WHISPER_MAX_QUEUED_JOBS",
            "jobs are waiting already",
            settings.max_jobs_per_key,
            "WHISPER_MAX_JOBS_PER_KEY",
            "jobs are not done yet",
            remedy="try again when one is",
        )
        self.uploads = shared(
            settings.max_uploads, "WHISPER_MAX_UPLOADS", "uploads are under way", "too_many_uploads"
        )
        self.partial_uploads = shared(
            PARTIAL_UPLOADS * settings.max_uploads,
            f"{PARTIAL_UPLOADS} times WHISPER_MAX_UPLOADS",
            "resumable uploads are incomplete or have no job yet",
            "too_many_uploads",
            verb="keeps",
            remedy="submit or delete some, then retry",
        )
        # Their bodies are in memory.
        self.corrections = Limit(
            max(1, settings.max_uploads // KEY_DIVISOR),
            f"1/{KEY_DIVISOR} of WHISPER_MAX_UPLOADS",
            "corrections are under way",
            code="too_many_corrections",
        )
        self.streams = shared(
            settings.max_event_streams,
            "WHISPER_MAX_EVENT_STREAMS",
            "event streams are under way",
            "too_many_event_streams",
        )
        # They hold memory or temporary files until the client has them.
        self.sending = shared(
            settings.max_uploads,
            "WHISPER_MAX_UPLOADS",
            "spans, archives and long transcripts are being sent",
            "too_many_downloads",
        )
        self.recordings = shared(
            settings.max_event_streams,
            "WHISPER_MAX_EVENT_STREAMS",
            "recordings are being sent",
            "too_many_downloads",
        )
