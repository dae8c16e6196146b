"""The voices of jobs: stored by jobs that say who speaks, or embedded when a client asks."""

from app.jobs.corrections import windows_by_clip
from app.jobs.job import Job
from app.jobs.shared_tasks import SharedTasks
from app.jobs.storage.store import Store
from app.media.uploads import Upload
from app.transcription.helper import Helper, work_s
from app.transcription.media_service import MediaService


class JobVoices:
    """The voices in the clips of jobs, packed as `app.speakers.voices` says."""

    def __init__(self, media: MediaService, store: Store, helper: Helper) -> None:
        self.tasks = SharedTasks[list[bytes]]("voices", media)
        self._media = media
        self._store = store
        self._helper = helper

    async def embed(self, job: Job) -> list[bytes]:
        """Embed the voices in the recording of a job that has succeeded, and store them.

        Empty if nobody speaks, or if each channel is a speaker. Raises as `SharedTasks.run`, the store, and
        `MediaService.voices` do.
        """
        if job.submission.options.channels == "separate":
            return []
        return await self.tasks.run(job, lambda upload: self._embed(job, upload))

    async def _embed(self, job: Job, upload: Upload) -> list[bytes]:
        base = await self._store.transcript(job)
        windows = await self._helper.run(work_s(job.duration, base.content), windows_by_clip, base)
        voices = await self._media.voices(upload, windows, job.submission.options.selection)
        await self._store.store_voices(job, voices)
        return list(voices.values())
