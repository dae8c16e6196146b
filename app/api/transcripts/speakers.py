"""The endpoint that finds the speakers of a transcript again, without transcribing, or renames them."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.http.admission import Admission
from app.api.http.connections import run_unless_disconnected
from app.api.http.receiving import MAX_DOCUMENT_BYTES, receive_document
from app.api.jobs.lookup import find_job
from app.api.schemas import Segments
from app.api.transcripts.correction_steps import Outcome, relabelled
from app.api.transcripts.corrections import RESPONSES, check_condition, revise
from app.api.transcripts.speaker_bodies import parse_speakers, speakers_body
from app.api.transcripts.versions import IfMatch
from app.errors import NoVoices
from app.jobs.serialization import PackedTranscript
from app.transcription.helper import LONG_S, work_s

if TYPE_CHECKING:
    from app.jobs.service import JobService
    from app.transcription.service import TranscriptionService

MAX_SPEAKERS_BYTES = 1 << 20


def speaker_routes(service: "TranscriptionService", jobs: "JobService", admission: Admission) -> APIRouter:
    router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

    @router.post(
        "/{job_id}/speakers",
        summary="Find the speakers again, or rename them",
        response_model=Segments,
        responses=RESPONSES,
        openapi_extra=speakers_body(),
    )
    async def find_speakers(request: Request, job_id: str, if_match: IfMatch = None) -> Response:
        """Compares the voices of a job anew, without transcribing. Texts and times stay.

        So do speakers that someone chose. The voices of a job without `diarize` are embedded now, while its
        recording is kept. `names` alone only renames, for any job. The answer is the document
        of the new revision. If nothing differs from the newest revision, none is stored.
        """
        job = await find_job(jobs, request, job_id)
        condition = check_condition(request, job, if_match)
        with admission.corrections.hold(request):
            body = await receive_document(service, request, MAX_SPEAKERS_BYTES)
            parsing_s = LONG_S if len(body) > MAX_DOCUMENT_BYTES else 0.0
            wanted = await service.helper.run(parsing_s, parse_speakers, body)
            voices = await jobs.store.voices(job) if wanted.needs_voices else []
            if wanted.needs_voices and not voices and job.submission.file is not None:
                with admission.requests.hold(request):
                    voices = await run_unless_disconnected(request, jobs.recordings.voices(job))
            if wanted.needs_voices and not voices:
                raise NoVoices(
                    "The job has no voices to compare: nobody speaks, each channel is a speaker, or they "
                    "were deleted with the recording. "
                    "Submit the recording with diarize=true. `names` alone renames its speakers."
                )

            async def make(base: PackedTranscript) -> Outcome:
                length_s = work_s(job.duration, base.content)
                return await service.helper.run(length_s, relabelled, base, voices, wanted)

            return await revise(jobs, job, condition, make, request)

    return router
