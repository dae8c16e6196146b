"""The decoder of clips on the workers, for recordings and live streams."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

from app.engines.window_request import expected_tokens
from app.recording.clip_decoding import ClipRequest, decode_clip
from app.recording.recording_work import WindowDispatcher
from app.recording.result_cache import ClipResults
from app.transcript.timeline import ClipResult


@dataclass(slots=True)
class ClipDecoder:
    """Decodes the clips of one job, any number at the same time."""

    dispatcher: WindowDispatcher
    job: Hashable
    results: ClipResults  # they know which clips have crashed workers
    urgent: bool = False  # one clip at a time is urgent; the others wait like those of a recording
    has_ended: bool = False  # no further window is decoded
    _has_urgent: bool = False  # such a clip is being decoded

    async def decode(self, request: ClipRequest) -> ClipResult:
        """The result of a clip. Raises as `Dispatcher.submit` does."""
        is_urgent = self.urgent and not self._has_urgent
        self._has_urgent = self._has_urgent or is_urgent
        windows = decode_clip(request)
        window = next(windows)
        try:
            while not self.has_ended:
                answer = await self.dispatcher.submit(
                    self.job,
                    window,
                    key=window.batch_key,
                    crash_count=self.results.crash_count(request.key),
                    on_crash=partial(self.results.record_crash, request.key),
                    isolated=self.results.is_suspect(request.key),
                    size=expected_tokens(window.speech),
                    weight=window.decoding.beams,
                    continues=window.continues or request.outvoted,
                    urgent=is_urgent,
                )
                window = windows.send(answer.result)
        except StopIteration as done:
            result: ClipResult = done.value
            return result
        finally:
            if is_urgent:
                self._has_urgent = False
        raise asyncio.CancelledError  # the rest of the clip would be for nobody
