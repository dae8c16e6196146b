"""The model that embeds voices, while the service looks for it and once it is here."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from app.common.concurrency import end_tasks, in_daemon_thread
from app.common.errors import SpeakerModelUnavailable, WhisperfleetError
from app.engines.speaker_model import VARIABLE, check_speaker_model, find_speaker_model
from workers.messages import SpeakerModel

_RETRY_S = 60.0  # between attempts to get a model that was not available

log = structlog.get_logger(__name__)

# What is wrong with a model's file, in one line; None if it can be used.
FindFault = Callable[[SpeakerModel], Awaitable[str | None]]


class SpeakerModels:
    """Finds the model that WHISPER_SPEAKER_MODEL names. The bundled one is there at once, or never."""

    def __init__(self, setting: str) -> None:
        """Raises InvalidSetting if the setting names no model."""
        check_speaker_model(setting)
        self._setting = setting
        self._model: SpeakerModel | None = None
        self._reason: str | None = None  # why there is none
        self._looked = asyncio.Event()  # the first attempt has ended
        self._finding: asyncio.Task[None] | None = None
        if not setting:
            self._look()

    def start(self, find_fault: FindFault) -> None:
        """Look for a model that is not bundled, in the background: a download takes a while."""
        if self._setting:
            self._finding = asyncio.create_task(self._keep_looking(find_fault))

    async def stop(self) -> None:
        """End the search. A download goes on until the process ends."""
        await end_tasks(self._finding)

    def check(self) -> None:
        """Raise SpeakerModelUnavailable if the model could not be had. Passes while it is looked for."""
        if self._reason is not None:
            raise SpeakerModelUnavailable(self._reason)

    async def get(self) -> SpeakerModel:
        """The model. Waits while it is looked for the first time; raises SpeakerModelUnavailable."""
        await self._looked.wait()
        self.check()
        assert self._model is not None
        return self._model

    async def _keep_looking(self, find_fault: FindFault) -> None:
        while True:
            try:
                await self._look_and_check(find_fault)
            except Exception as error:  # nobody awaits this task, and jobs wait for its outcome
                self._reason = f"{VARIABLE}={self._setting} cannot be had: {error!r}."
                log.exception("the search for the model of voices failed")
            self._looked.set()
            if self._model is not None:
                log.info("found the model of voices", model=self._setting)
                return
            log.error("the model of voices is not available", reason=self._reason)
            await asyncio.sleep(_RETRY_S)

    async def _look_and_check(self, find_fault: FindFault) -> None:
        try:
            model = await in_daemon_thread("find model of voices", lambda: find_speaker_model(self._setting))
        except SpeakerModelUnavailable as error:
            self._reason = error.message
            return
        try:
            fault = await find_fault(model)
        except WhisperfleetError as error:  # a file may crash the library that reads it
            fault = f"it cannot be loaded ({error.message})"
        if fault is None:
            self._model, self._reason = model, None
        else:
            self._reason = f"{VARIABLE}={self._setting} is no model that can embed voices: {fault}."

    def _look(self) -> None:
        try:
            self._model = find_speaker_model(self._setting)
        except SpeakerModelUnavailable as error:
            self._reason = error.message
        self._looked.set()
