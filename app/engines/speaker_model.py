"""The model that embeds voices, as WHISPER_SPEAKER_MODEL names it: where its file is. Downloads it once."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from app.common.errors import InvalidSetting, ModelUnavailable, SpeakerModelUnavailable
from app.engines.model_download import cached_snapshot, connection
from app.engines.model_files import is_hub_id
from workers.messages import SpeakerModel

VARIABLE = "WHISPER_SPEAKER_MODEL"
_PACKAGE = "resemblyzer"
_WEIGHTS = "pretrained.pt"
INSTALL = f"pip install --no-deps {_PACKAGE}"
_SUFFIX = ".onnx"
_NETWORK = f"Connect to the network, or copy the model here and set {VARIABLE} to its file."
_MOST_NAMES = 5  # of files, in an error


def check_speaker_model(setting: str) -> None:
    """Raise InvalidSetting unless the setting is empty, a file, or may be a name on Hugging Face."""
    if not setting or (_is_file(setting) and setting.endswith(_SUFFIX)):
        return
    if _is_file(setting):
        raise InvalidSetting(f"{VARIABLE}={setting}: name an ONNX file, which ends in {_SUFFIX}")
    repository, file = _on_hub(setting)
    if not is_hub_id(repository) or repository.endswith(_SUFFIX) or (file and not file.endswith(_SUFFIX)):
        raise InvalidSetting(
            f"{VARIABLE}={setting}: there is no such file; name an ONNX file, or one on Hugging Face as "
            f"OWNER/REPOSITORY or OWNER/REPOSITORY/FILE{_SUFFIX}"
        )


def find_speaker_model(setting: str) -> SpeakerModel:
    """The model that the setting names; the bundled one if it is empty.

    Blocks while it is downloaded. Raises SpeakerModelUnavailable.
    """
    return local_speaker_model(setting) or _model_in(setting, _download(setting))


def local_speaker_model(setting: str) -> SpeakerModel | None:
    """As `find_speaker_model`, but None if the model is to be downloaded."""
    if not setting:
        return _bundled_model()
    path = Path(setting).expanduser() if _is_file(setting) else _cached(*_on_hub(setting))
    return None if path is None else _model_in(setting, path)


def _model_in(setting: str, path: Path) -> SpeakerModel:
    try:
        status = path.stat()
    except OSError as error:
        raise SpeakerModelUnavailable(f"{VARIABLE}={setting} cannot be read: {error.strerror}.") from None
    return SpeakerModel(setting, str(path), f"{setting}, {status.st_size} bytes of {status.st_mtime_ns}")


def _bundled_model() -> SpeakerModel:
    """The weights of the package resemblyzer, which is not imported."""
    spec = find_spec(_PACKAGE)
    path = Path(spec.origin).parent / _WEIGHTS if spec is not None and spec.origin else None
    if path is None or not path.is_file():
        raise SpeakerModelUnavailable(
            f"The package {_PACKAGE}, whose weights embed voices, is not installed here. Install it beside "
            f"whisperfleet with `{INSTALL}` and start the service again, or leave diarize out."
        )
    try:
        release = version(_PACKAGE)
    except PackageNotFoundError:  # a copy of the folder
        release = "?"
    return SpeakerModel(_PACKAGE, str(path), f"{_PACKAGE} {release}, {path.stat().st_size} bytes")


def _download(setting: str) -> Path:
    """Download the file into Hugging Face's cache."""
    from huggingface_hub import hf_hub_download

    repository, file = _on_hub(setting)
    try:
        with connection(setting, repository, _NETWORK):
            return Path(hf_hub_download(repository, file or _only_file(repository)))
    except ModelUnavailable as error:
        raise SpeakerModelUnavailable(error.message) from None


def _cached(repository: str, file: str) -> Path | None:
    if (folder := cached_snapshot(repository)) is None:
        return None
    found = [folder / file] if file else list(folder.rglob(f"*{_SUFFIX}"))
    return found[0] if len(found) == 1 and found[0].is_file() else None


def _only_file(repository: str) -> str:
    """The only ONNX file of a repository. Raises ModelUnavailable if there are others, or none."""
    from huggingface_hub import HfApi

    files = [name for name in HfApi().list_repo_files(repository) if name.endswith(_SUFFIX)]
    if len(files) == 1:
        return files[0]
    if not files:
        raise ModelUnavailable(f"{repository} on Hugging Face has no ONNX file. Name another model.")
    listed = ", ".join(files[:_MOST_NAMES]) + (", …" if len(files) > _MOST_NAMES else "")
    raise ModelUnavailable(
        f"{repository} on Hugging Face has several ONNX files ({listed}). Name one, as {VARIABLE}="
        f"{repository}/{files[0]}."
    )


def _is_file(setting: str) -> bool:
    return Path(setting).expanduser().is_file()


def _on_hub(setting: str) -> tuple[str, str]:
    """The repository that a setting names, and the file in it; no file if it names none."""
    owner, _, rest = setting.partition("/")
    name, _, file = rest.partition("/")
    return f"{owner}/{name}", file
