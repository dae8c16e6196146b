"""What requests that revise a transcript have in common: their condition, and their answer."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from app.api.errors import documented_errors
from app.api.job_responses import check_done
from app.api.receiving import check_json
from app.api.versions import ETAG, is_current, revision_etag
from app.errors import PreconditionFailed, PreconditionRequired
from app.jobs.job import Job
from app.jobs.revisions import transcript_changed
from app.jobs.serialization import PackedTranscript

if TYPE_CHECKING:
    from app.api.correction_steps import Outcome
    from app.jobs.service import JobService

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"headers": ETAG},
    **documented_errors(400, 401, 404, 409, 412, 413, 415, 428, 429, 503, 507),
}


def check_condition(request: Request, job: Job, if_match: str | None) -> str:
    """Check all but the body, before that is read. Returns the condition.

    Raises JobNotDone, PreconditionRequired, PreconditionFailed, InvalidInput and UnsupportedContentType.
    """
    check_done(job)
    if if_match is None:
        raise PreconditionRequired(
            "The request does not say which version of the transcript it corrects. Send the ETag of the "
            "segments as `If-Match`.",
            param="If-Match",
        )
    condition = ", ".join(request.headers.getlist("if-match"))  # a list may come in several lines
    _check_current(condition, job.revision)
    check_json(request)
    return condition


async def revise(
    jobs: "JobService",
    job: Job,
    condition: str,
    make: Callable[[PackedTranscript], Awaitable["Outcome"]],
) -> Response:
    """Store what `make` makes of the newest revision. Returns the document of the newest one after that.

    Raises as `make`, PreconditionFailed, UnknownRevision, and as `Store.correct` does.
    """
    while True:
        base = await jobs.store.transcript(job)
        _check_current(condition, base.revision)
        correction, document = await make(base)
        try:
            if correction is not None:
                job = await jobs.store.correct(job, correction)
        except PreconditionFailed:
            continue  # another correction came first: the condition may allow it, as `*` does
        headers = {"ETag": revision_etag(job.revision if correction else base.revision)}
        return Response(document, media_type="application/json", headers=headers)


def _check_current(condition: str, revision: int) -> None:
    if not is_current(condition, revision_etag(revision)):
        raise transcript_changed(revision)
