"""Checks whether the models are available, without downloading them."""

from app.doctor.finding import Finding, Severity, fail_with, ok, warn
from app.doctor.machine import gigabytes
from app.engines.model_download import CONNECT_TIMEOUT_S, WEIGHTS
from app.engines.model_files import DEMO, ModelFiles, local_folder, locate, repository_of
from app.errors import ModelUnavailable


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
        return _missing(title, error, falls_back), None
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


def _missing(title: str, error: ModelUnavailable, falls_back: bool) -> Finding:
    finding = fail_with(title, error)
    if not falls_back:
        return finding
    found = f"{finding.found}; the demo model will be used instead (WHISPER_DEMO_FALLBACK)"
    return Finding(title, found, Severity.WARN, finding.remedy)
