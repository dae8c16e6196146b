"""The digest of all that a clip's result and voices depend on: stored ones are valid only if it is equal."""

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path

from app.common.options import FILE_OPTIONS, SPEAKER_OPTIONS, Options
from workers.messages import LoadOptions

# Their new versions may change decoding, speech detection, the clip plan or the decoder's loop.
_PACKAGES = ("whisperfleet", "av", "silero-vad", "onnxruntime", "faster-whisper", "ctranslate2")
_RULES = 3  # counts the changes after which the same options, models and packages give other results
_MAX_HASHED_BYTES = 1 << 22  # of larger files, the digest covers the size and the time of change


def result_digest(options: Options, model: LoadOptions, speaker_model: str | None = None) -> str:
    """The digest, in hex. Reads the model's small files: call it in a thread.

    `speaker_model`: the identity of the model that embeds voices; None if nobody asks who speaks.
    """
    parts = {
        "rules": _RULES,
        "versions": {package: version(package) for package in _PACKAGES},
        "options": options.model_dump(mode="json", exclude={*FILE_OPTIONS, *SPEAKER_OPTIONS}),
        "model": [model.model, model.device, model.compute_type, model.safe, model.min_context_s],
        "files": _files(Path(model.path)) if model.path else [],
    }
    if model.backend == "torch":  # nothing is added for CTranslate2: what earlier versions stored stays valid
        parts["torch"] = version("torch")
    if speaker_model is not None:
        parts["speaker_model"] = speaker_model
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _files(folder: Path) -> list[tuple[str, str]]:
    """The name and the state of each file in a folder."""
    return [(path.name, _state(path)) for path in sorted(folder.iterdir()) if path.is_file()]


def _state(path: Path) -> str:
    status = path.stat()
    if status.st_size > _MAX_HASHED_BYTES:
        return f"{status.st_size} bytes of {status.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()
