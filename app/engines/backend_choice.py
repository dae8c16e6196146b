"""Which backend decodes: CTranslate2, or torch, whose installed build is known here without importing it."""

import importlib.util
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from app.common.errors import InvalidSetting
from workers.whisper.compute_types import TORCH_TYPES

if TYPE_CHECKING:  # nodes of a cluster import this module, and need no settings
    from app.engines.nvml import PresentGpu
    from app.settings import Settings

Backend = Literal["torch", "ctranslate2"]

TORCH: Backend = "torch"
CTRANSLATE2: Backend = "ctranslate2"
_TORCH_TYPES = {device: ("auto", *types) for device, types in TORCH_TYPES.items()}
# Compute capabilities of GPUs on which torch was measured (bench/gpu_session.py), and found the right texts
# faster: there `auto` is torch. 9.0: an H100.
PROVEN_CAPABILITIES = frozenset({(9, 0)})
_CUDA = re.compile(r"^cuda\b.*= *['\"](.+)['\"]", re.MULTILINE)  # in torch's version.py


def resolve_backend(
    settings: "Settings", device: str, gpus: "Sequence[PresentGpu]", *, here: bool
) -> Backend:
    """The backend of all workers. Raises InvalidSetting if they cannot have it.

    `here`: the workers run on this machine with the GPUs `gpus`, so its build of torch must fit the device.
    `auto` means torch where it can compute as the settings say, on GPUs for which it is proven.
    """
    if settings.backend == "auto":
        proven = bool(gpus) and all(gpu.capability in PROVEN_CAPABILITIES for gpu in gpus)
        suits = not settings.safe_mode and settings.compute_type in _TORCH_TYPES[device]
        return TORCH if here and device == "cuda" and proven and suits and torch_cuda() else CTRANSLATE2
    if settings.backend == CTRANSLATE2:
        return CTRANSLATE2
    if settings.safe_mode:
        raise InvalidSetting(
            "WHISPER_SAFE_MODE=true: safe mode computes in 8 bits, and WHISPER_BACKEND=torch cannot; leave "
            "one of the two out"
        )
    if settings.compute_type not in _TORCH_TYPES[device]:
        raise InvalidSetting(
            f"WHISPER_COMPUTE_TYPE={settings.compute_type}: with WHISPER_BACKEND=torch, device {device} has "
            f"{', '.join(_TORCH_TYPES[device])}; choose one of them, or leave WHISPER_BACKEND out"
        )
    if importlib.util.find_spec(TORCH) is None:
        raise InvalidSetting(
            "WHISPER_BACKEND=torch: torch is not installed; install whisperfleet again (`make clean`, then "
            "`make install`), or leave WHISPER_BACKEND out"
        )
    if here and device == "cuda" and torch_cuda() is None:
        raise InvalidSetting(
            f"WHISPER_BACKEND=torch: torch {version(TORCH)} is built for CPUs alone; install a build for "
            "CUDA (`make clean`, then `make install TORCH_INDEX=`), or leave WHISPER_BACKEND out"
        )
    return TORCH


def torch_cuda() -> str | None:
    """The version of CUDA for which the installed torch is built; None if it computes on CPUs alone."""
    spec = importlib.util.find_spec(TORCH)
    if spec is None or spec.origin is None:
        return None
    found = _CUDA.search(Path(spec.origin).with_name("version.py").read_text(encoding="utf-8"))
    return found and found[1]
