"""The responses about one job: its result and its recording."""

import asyncio
import hashlib
import json
import mimetypes
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from app.api.audio.openai_responses import brief_response, verbose_response
from app.api.http.forms import ELSEWHERE
from app.api.jobs.lookup import check_done
from app.api.operation.system import VERSION
from app.api.transcripts.correction_bodies import RevisionNumber
from app.api.transcripts.versions import WHICH_REVISION, is_known, not_modified
from app.common.errors import NOT_KEPT, UnknownJob, WhisperfleetError
from app.common.options import FILE_OPTIONS, FileChanges, Options
from app.engines.text_tokens import with_tokens
from app.jobs.job import Job
from app.jobs.serialization import unpack_transcript
from app.pool.helper import LONG_S, work_s
from app.server.errors import error_response, json_error
from app.server.listening import PATIENT
from app.server.sending import AdmittedResponse, compressed
from app.telemetry import traces
from app.transcript.formats import FORMATS
from app.transcript.rendering import render_transcript, rendering_s

if TYPE_CHECKING:
    from app.jobs.service import JobService
    from app.recording.service import TranscriptionService

if TYPE_CHECKING:
    ResultFormat = str
else:
    ResultFormat = Literal[*FORMATS, "verbose_json"]


# What Starlette reads as ranges, without what Python alone takes for a number, and no header at all.
_RANGES = re.compile(rb"(\s*bytes\s*=[0-9\s,-]*)?", re.IGNORECASE)


class FileQuery(FileChanges):
    """The parameters that say which file is made of a transcript."""

    format: Annotated[ResultFormat, ELSEWHERE] = "srt"

    @property
    def changes(self) -> Mapping[str, Any]:
        """The options of the file that are not those of the job."""
        return self.model_dump(include=self.model_fields_set & FILE_OPTIONS)


class ResultQuery(FileQuery):
    revision: RevisionNumber | None = Field(None, description=WHICH_REVISION)
    allow_partial: bool = Field(False, description="Also of a job that failed: what could be transcribed.")


async def result_response(
    service: "TranscriptionService",
    jobs: "JobService",
    job: Job,
    wanted: FileQuery,
    revision: int | None = None,
    if_none_match: str = "",
    *,
    for_link: bool = False,
) -> Response:
    """A revision of the transcript as a file, by default the newest; a 304 if the client has it.

    `for_link`: without what terms have replaced.

    Raises JobNotDone if there is no transcript, UnknownRevision, and UnsuitableFormat.
    """
    check_done(job, isinstance(wanted, ResultQuery) and wanted.allow_partial)
    async with service.helper.turn(job.duration):
        packed = await jobs.store.transcript(job, revision)
        etag = file_etag(packed.revision, job, wanted)
        if is_known(if_none_match, etag):
            return not_modified({"etag": etag})
        # In the child process, loading a tokenizer does not hold the GIL.
        needs_tokens = wanted.format == "verbose_json" and packed.revision > 0
        length_s = (
            LONG_S if needs_tokens else rendering_s(wanted.format, work_s(job.duration, packed.content))
        )
        options = job.submission.options.model_copy(update=wanted.changes)
        described = (packed.content, options, wanted.format, _title(job), for_link)
        with traces.span("render", {"whisperfleet.format": wanted.format}):
            response = await service.helper.run(length_s, compressed, _render, *described)
    response.headers["etag"] = etag
    if wanted.format not in ("json", "verbose_json"):
        name = quote(f"{job.file_stem}.{wanted.format}")
        response.headers["content-disposition"] = f"inline; filename*=utf-8''{name}"
    return response


def _title(job: Job) -> str:
    return job.submission.title or PurePath(job.submission.filename).stem


def file_etag(revision: int, job: Job, wanted: FileQuery, *more: object) -> str:
    """Of a file, or of what depends on the same and on `more`. Another version may make other files."""
    shown = [_title(job), dict(sorted(wanted.changes.items())), job.finished_at, *more]  # it may run again
    digest = hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:8]
    return f'"{revision}-{wanted.format}-{digest}-{VERSION}"'


def _render(packed: bytes, options: Options, form: ResultFormat, title: str, for_link: bool) -> Response:
    """The response in a format. Uses CPU time on long recordings: let `Helper` call it."""
    transcript = unpack_transcript(packed)
    if form == "json":
        return brief_response(transcript)
    if form == "verbose_json":
        segments = tuple(with_tokens(transcript.segments, transcript.model))
        complete = replace(transcript, segments=segments)
        return verbose_response(complete, segments=True, words=options.word_timestamps, terms=not for_link)
    file = render_transcript(transcript, options, form, title=title)
    return Response(file, headers={"content-type": FORMATS[form].content_type})


async def audio_response(
    service: "TranscriptionService", job: Job, admitted: AbstractContextManager[object]
) -> Response:
    """The recording, or the requested ranges of it. Holds `admitted` until it is sent.

    Raises UnknownJob if it is not kept.
    """
    submission = job.submission
    path = service.media.folder.uploads / (submission.file or "")
    if not await asyncio.to_thread(path.is_file):
        raise UnknownJob(NOT_KEPT, code="audio_not_kept")
    guessed = mimetypes.guess_type(submission.filename)[0] or ""
    # Never a type that a browser would execute: clients can send any file.
    media_type = guessed if guessed.startswith(("audio/", "video/")) else "application/octet-stream"
    name = f"{job.file_stem}{PurePath(submission.filename).suffix}"
    response = AudioFileResponse(path, media_type, name)
    response.admitted = admitted
    return response


class AudioFileResponse(AdmittedResponse, FileResponse):
    """A file response whose errors have the same format as all others."""

    is_kept = True  # whether the file is there anyway: players may pause for long then
    not_kept: WhisperfleetError = UnknownJob(NOT_KEPT, code="audio_not_kept")  # if the file is gone

    def __init__(self, path: Path, media_type: str, name: str) -> None:
        """`name`: under which clients store the file."""
        super().__init__(path, media_type=media_type, filename=name, content_disposition_type="inline")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused: Response | None = None
        start: Any = None  # of the response
        has_begun = False  # once the file is open: it may be deleted before
        requested = dict(scope["headers"]).get(b"range", b"")
        message = f"The range {requested.decode('latin-1')!r} is not one of this file."
        if not _RANGES.fullmatch(requested):
            await self.release()
            await json_error(400, message)(scope, receive, send)
            return
        if self.is_kept:
            scope.setdefault("state", {})[PATIENT] = True

        async def send_unless_refused(event: Any) -> None:
            nonlocal refused, start, has_begun
            if event["type"] == "http.response.start":
                start = event
                if event["status"] in (400, 416):
                    headers = {
                        name.decode(): value.decode()
                        for name, value in event["headers"]
                        if name == b"content-range"
                    }
                    refused = json_error(event["status"], message, headers=headers)
            elif refused is None:
                if not has_begun:
                    has_begun = True
                    await send(start)
                await send(event)

        try:
            await super().__call__(scope, receive, send_unless_refused)
        except (RuntimeError, FileNotFoundError):
            if has_begun or await asyncio.to_thread(Path(self.path).exists):
                raise
            refused = error_response(self.not_kept)  # deleted meanwhile
        if refused is not None:
            await refused(scope, receive, send)
