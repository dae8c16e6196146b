"""Checks whether the models of words and voices are available, without downloading them."""

import asyncio
from pathlib import Path

from app.commands.doctor.finding import Finding, Severity, fail_setting, fail_with, ok, warn
from app.commands.doctor.machine import gigabytes
from app.common.errors import InvalidSetting, ModelUnavailable, SpeakerModelUnavailable, WhisperfleetError
from app.engines import speaker_model
from app.engines.model_download import CONNECT_TIMEOUT_S, WEIGHTS
from app.engines.model_files import DEMO, ModelFiles, local_folder, locate, repository_of
from app.intake.disk import DiskSpace
from app.media.pool import MediaPool

_VOICES = "speaker model"
_WITHOUT_VOICES = "Without it, requests with `diarize` get 400; all others are served."


def check_model(name: str, *, falls_back: bool) -> tuple[Finding, ModelFiles | None]:
    """The finding about a model, and its files if they are on this machine.

    Takes at most `CONNECT_TIMEOUT_S` without a connection. `falls_back`: whether the service would use the
    demo model instead.
    """
    title = f"model {name}"
    if name == DEMO:
        remedy = "It understands only synthetic speech. Set WHISPER_MODEL to a real model."
        return warn(title, "bundled", remedy, "wrong-transcripts"), locate(DEMO)
    if (folder := local_folder(name)) is not None:
        found = f"{folder}, {gigabytes((folder / WEIGHTS).stat().st_size)}"
        return ok(title, found), ModelFiles(name, folder)
    try:
        size = _size_to_download(name)
    except ModelUnavailable as error:
        finding = fail_with(title, error)
        if falls_back:
            found = f"{finding.found}; the demo model will be used instead (WHISPER_DEMO_FALLBACK)"
            finding = Finding(title, found, Severity.WARN, finding.remedy)
        return finding, None
    return ok(
        title, f"not on this machine yet: {gigabytes(size)} will be downloaded on the first start"
    ), None


def _size_to_download(name: str) -> int:
    """Returns bytes. Raises ModelUnavailable."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    url = hf_hub_url(repository_of(name), WEIGHTS)
    try:
        return get_hf_file_metadata(url, timeout=CONNECT_TIMEOUT_S).size or 0
    except HfHubHTTPError as error:
        reason = f"Hugging Face has no {url}, or it needs a login ({error.response.status_code})"
        raise ModelUnavailable(f"not on this machine, and cannot be downloaded: {reason}") from None
    except Exception as error:  # a dozen types from three libraries
        reason = (str(error).splitlines() or [repr(error)])[0]
        raise ModelUnavailable(f"not on this machine, and cannot be downloaded: {reason}") from None


async def check_speaker_model(setting: str, folder: Path) -> Finding:
    """Whether the bundled model is here, or a media worker embeds a second of noise with another."""
    try:
        speaker_model.check_speaker_model(setting)
        model = await asyncio.to_thread(speaker_model.local_speaker_model, setting)
    except InvalidSetting as error:
        return fail_setting(_VOICES, error)
    except SpeakerModelUnavailable as error:
        return warn(_VOICES, error.message, _WITHOUT_VOICES)
    if model is None:
        return ok(_VOICES, f"{setting} is not on this machine yet: it will be downloaded on the first start")
    if not setting:
        return ok(_VOICES, model.identity)
    media = MediaPool(1, DiskSpace(folder))
    media.start()
    try:
        fault = await media.fault_of_speaker_model(model)
    except WhisperfleetError as error:
        fault = error.message
    finally:
        await media.stop()
    if fault is not None:
        return warn(_VOICES, f"{setting} cannot embed voices: {fault}", _WITHOUT_VOICES)
    return ok(_VOICES, f"{setting} embeds voices")
