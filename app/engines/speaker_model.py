"""The model that embeds voices, as WHISPER_SPEAKER_MODEL names it: where its file is."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from app.errors import SpeakerModelUnavailable
from workers.messages import SpeakerModel

_PACKAGE = "resemblyzer"
_WEIGHTS = "pretrained.pt"
INSTALL = f"pip install --no-deps {_PACKAGE}"


def find_speaker_model(setting: str) -> SpeakerModel:
    """The model that the setting names; the bundled one if it is empty.

    Raises SpeakerModelUnavailable.
    """
    return _bundled_model()


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
