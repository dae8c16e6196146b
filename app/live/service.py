"""The live streams of the service, from their opening to its end."""

import asyncio

from app.common.options import Options
from app.intake.budgets import Allowance
from app.intake.disk import disk_full
from app.live.decoder import StreamModel
from app.live.detection import SpeechDetection
from app.live.events import StreamOptions
from app.live.metrics import LiveMetrics
from app.live.stream import LiveStream
from app.recording.service import TranscriptionService, max_silence_of
from app.telemetry.work import current_work
from workers.messages import FULL_CONTEXT_S


class LiveService:
    """Live streams on the workers of a service."""

    def __init__(self, service: TranscriptionService) -> None:
        self.metrics = LiveMetrics()
        self._service = service
        self._detection = SpeechDetection()
        self._streams: set[LiveStream] = set()

    async def open(self, model: str, options: StreamOptions) -> LiveStream:
        """A new stream for the caller, see `telemetry.work`. `model`: its name, of `ModelCatalogue.resolve`.

        Raises NotReady, ModelUnavailable, DiskFull, InsufficientQuota, and InvalidInput if the model does not
        know the language.
        """
        fleet, folder = self._service.fleet, self._service.media.folder
        owner = current_work().owner
        self._service.budgets.check(owner)
        languages = options.languages or (options.language,)
        for language in languages:
            dispatcher, name = await fleet.ready(model, Options(language=language))

        def has_space() -> bool:
            return folder.disk.free() > 0

        if not await asyncio.to_thread(has_space):
            raise disk_full()
        stream = LiveStream(
            StreamModel(
                name,
                dispatcher,
                max_silence_of(name),
                fleet.catalogue.options[name].min_context_s,
                fleet.catalogue.abilities(name).min_context_s or FULL_CONTEXT_S,
            ),
            options,
            folder.pcm,
            self._detection,
            self.metrics,
            Allowance(self._service.budgets, owner),
            on_close=self._closed,
            has_space=has_space,
        )
        self._streams.add(stream)
        self.metrics.open += 1
        return stream

    async def stop(self) -> None:
        """End all streams."""
        await asyncio.gather(*(stream.close() for stream in [*self._streams]))
        await self._detection.stop()

    def _closed(self, stream: LiveStream) -> None:
        self._streams.discard(stream)
        self.metrics.open -= 1
