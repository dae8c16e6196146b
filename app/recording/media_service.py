"""The media side of the service: the data folder, the media workers, and what needs these alone."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager

from app.intake.data_folder import DataFolder
from app.intake.uploads import Upload
from app.media.peaks import PeakCollector
from app.media.pool import MediaPool
from app.media.sound_copies import SoundCopies
from app.media.sound_encoder import SoundEncoder
from app.recording.clip_search import FoundSpeech, RecordingWork, find_speech
from app.recording.known_speakers import find_known_speakers
from app.recording.speaker_models import SpeakerModels
from app.recording.speech import VadParameters
from app.settings import Settings
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.speakers.voices import Voices, pack_voices
from workers.messages import EVERYTHING, Selection, Span


class MediaService:
    """Decodes recordings, and finds speech and voices in them. One for each data folder."""

    def __init__(self, settings: Settings, workers: int) -> None:
        """`workers`: how many media workers this machine has."""
        self.folder = DataFolder(settings.data_dir)
        self.speaker_models = SpeakerModels(settings.speaker_model)
        self.pool = MediaPool(workers, self.folder.disk, self.speaker_models.get)
        self.copies = SoundCopies(
            self.folder.uploads,
            self.folder.copies,
            settings.audio_cache_bytes,
            SoundEncoder(self.pool, self.folder.disk, settings.max_duration_s),
        )
        self._max_duration_s = settings.max_duration_s

    async def start(self) -> None:
        """Lock the data folder and start the first media worker, in the background.

        Raises InvalidSetting if the data folder cannot be used.
        """
        await asyncio.to_thread(self.folder.lock)
        self.pool.start()
        self.speaker_models.start(self.pool.fault_of_speaker_model)

    async def stop(self) -> None:
        """End all media workers. The data folder stays locked."""
        await self.speaker_models.stop()
        await asyncio.gather(self.copies.stop(), self.pool.stop())

    async def find_speech(self, upload: Upload, parameters: VadParameters) -> FoundSpeech:
        """Where somebody speaks in a recording. Needs no model but that of the media workers.

        Does not remove the upload's file. Cancelling the caller cancels the work. Raises as
        `recording.clip_search.find_speech` does.
        """
        async with self._work(upload) as work:
            return await find_speech(work, parameters)

    async def peaks(self, upload: Upload, selection: Selection = EVERYTHING) -> bytes:
        """The packed peaks of a recording up to the end of what is selected: see `media.peaks`.

        Does not remove the upload's file. Cancelling the caller cancels the work. Raises InvalidInput if the
        file cannot be decoded, TooLarge if the recording is too long, FileNotFoundError if the file is gone,
        and DiskFull or OutgrowsDisk.
        """
        peaks = PeakCollector()
        async with self._work(upload, selection) as work:
            await _decode(work, peaks)
            return await asyncio.to_thread(peaks.pack)

    async def voices(
        self, upload: Upload, windows: Mapping[Span, Sequence[Span]], selection: Selection = EVERYTHING
    ) -> dict[Span, bytes]:
        """The packed voices of a recording: see `speakers.voices`. `windows`: of speech, by the clip's span.

        Raises as `peaks` and `MediaPool.embed_voices` do.
        """
        await self.speaker_models.get()  # before the recording is decoded in vain
        async with self._work(upload, selection) as work:
            await _decode(work)
            embedded = await asyncio.gather(
                *(self.pool.embed_voices(work.job, work.pcm_path, in_clip) for in_clip in windows.values())
            )
        return {
            span: pack_voices(Voices(tuple(in_clip), embeddings))
            for (span, in_clip), embeddings in zip(windows.items(), embedded, strict=True)
        }

    @asynccontextmanager
    async def _work(self, upload: Upload, selection: Selection = EVERYTHING) -> AsyncGenerator[RecordingWork]:
        """Work on a recording. At the end, what is queued is cancelled and the decoded audio removed."""
        job = uuid.uuid4().hex
        work = RecordingWork(
            job=job,
            upload=upload,
            media_pool=self.pool,
            pcm_path=self.folder.pcm / job,
            max_duration_s=self._max_duration_s,
            selection=selection,
        )
        try:
            yield work
        finally:
            self.pool.cancel(job)
            await asyncio.to_thread(work.pcm_path.unlink, missing_ok=True)

    async def known_speakers(
        self, names: Sequence[str], references: Sequence[str]
    ) -> tuple[KnownSpeaker, ...]:
        """The voices of the speakers in data URLs. Raises as `known_speakers.find_known_speakers` does."""
        return await find_known_speakers(self.pool, self.folder, names, references)


async def _decode(work: RecordingWork, peaks: PeakCollector | None = None) -> None:
    """Decode a recording to its end."""
    async with aclosing(work.decode(peaks)) as steps:
        async for _ in steps:
            pass
