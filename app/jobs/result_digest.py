"""What the result of a clip depends on, in one digest: stored clips count only where it is the same."""

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path

from app.options import Options
from workers.messages import LoadOptions

# Decoding, speech detection, the clip plan and the decoder's loop: a new version may differ in any.
_PACKAGES = ("whisperfleet", "av", "silero-vad", "onnxruntime", "faster-whisper", "ctranslate2")
_WHOLE_BYTES = 1 << 22  # of larger files size and time have to do


def result_digest(options: Options, model: LoadOptions) -> str:
    """The digest, in hex. Reads the model's small files: call it in a thread."""
    parts = {
        "versions": {package: version(package) for package in _PACKAGES},
        "options": options.model_dump(mode="json"),
        "model": [model.model, model.device, model.compute_type, model.safe],
        "files": _files(Path(model.path)) if model.path else [],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def _files(folder: Path) -> list[tuple[str, str]]:
    return [(path.name, _state(path)) for path in sorted(folder.iterdir()) if path.is_file()]


def _state(path: Path) -> str:
    status = path.stat()
    if status.st_size > _WHOLE_BYTES:
        return f"{status.st_size} bytes of {status.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()
