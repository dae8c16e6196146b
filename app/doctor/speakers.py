"""Checks whether the service can say who speaks, without downloading a model."""

import asyncio
from pathlib import Path

from app.doctor.finding import Finding, fail_setting, ok, warn
from app.engines import speaker_model
from app.errors import InvalidSetting, SpeakerModelUnavailable, WhisperfleetError
from app.media.disk import DiskSpace
from app.media.pool import MediaPool

_TITLE = "speaker model"
_REMEDY = "Without it, requests with `diarize` get 400; all others are served."


async def check_speaker_model(setting: str, folder: Path) -> Finding:
    """Whether the bundled model is here, or a media worker embeds a second of noise with another."""
    try:
        speaker_model.check_speaker_model(setting)
        model = await asyncio.to_thread(speaker_model.local_speaker_model, setting)
    except InvalidSetting as error:
        return fail_setting(_TITLE, error)
    except SpeakerModelUnavailable as error:
        return warn(_TITLE, error.message, _REMEDY)
    if model is None:
        return ok(_TITLE, f"{setting} is not on this machine yet: it will be downloaded on the first start")
    if not setting:
        return ok(_TITLE, model.identity)
    media = MediaPool(1, DiskSpace(folder))
    media.start()
    try:
        fault = await media.fault_of_speaker_model(model)
    except WhisperfleetError as error:
        fault = error.message
    finally:
        await media.stop()
    if fault is not None:
        return warn(_TITLE, f"{setting} cannot embed voices: {fault}", _REMEDY)
    return ok(_TITLE, f"{setting} embeds voices")
