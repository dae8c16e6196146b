"""The peaks of jobs' recordings: stored when a recording is decoded, or computed when a client asks."""

from app.errors import JobNotDone
from app.jobs.job import Job
from app.jobs.shared_tasks import SharedTasks
from app.jobs.storage.store import Store
from app.media.uploads import Upload
from app.transcription.media_service import MediaService


class JobPeaks:
    """The peaks of jobs, packed as `app.media.peaks` says."""

    def __init__(self, media: MediaService, store: Store) -> None:
        self.tasks = SharedTasks[bytes]("peaks", media)
        self._media = media
        self._store = store

    async def stored(self, job: Job) -> bytes | None:
        """The stored peaks of a job; None if `compute` may compute them.

        Raises JobNotDone if the recording will be decoded for its transcript, which gives them.
        """
        packed = await self._store.packed_peaks(job)
        if packed is None and not job.status.is_terminal and job.pcm is None:
            raise JobNotDone(
                "The recording is not decoded yet; ask again when the job is in the stage `transcribing`.",
                code="audio_not_decoded",
            )
        return packed

    async def compute(self, job: Job) -> bytes:
        """Decode the recording of a job once more, and store its peaks.

        Raises as `SharedTasks.run`, the store, and `MediaService.peaks` do.
        """

        async def compute(upload: Upload) -> bytes:
            packed = await self._media.peaks(upload, job.submission.options.selection)
            await self._store.store_peaks(job.id, packed)
            return packed

        return await self.tasks.run(job, compute)
