"""The weights in `model.bin` of CTranslate2, as tensors."""

import math
import mmap
from pathlib import Path

import torch

from workers.whisper.model_check import read_layout

Tensor = torch.Tensor

# Types of values, by their number in the file.
_TYPES = {0: torch.float32, 1: torch.int8, 4: torch.float16}


def read_weights(path: Path, device: str, dtype: torch.dtype) -> tuple[dict[str, Tensor], dict[str, int]]:
    """The weights of a model by name, on `device` as values of `dtype`; and its scalars.

    8-bit values are scaled back. Raises RuntimeError for a file with other types of values, and OSError.
    """
    stored: dict[str, Tensor] = {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as content:
        layout, scalars, aliases = read_layout(file)
        for name, (shape, kind, start) in layout.items():
            if kind not in _TYPES:
                raise RuntimeError(
                    f"{name} has values of a type that torch does not read; set WHISPER_BACKEND=ctranslate2"
                )
            values = torch.frombuffer(content, dtype=_TYPES[kind], offset=start, count=math.prod(shape))
            # A copy of its own, since the file is closed.
            stored[name] = values.reshape(shape).to(device, copy=True)
    weights: dict[str, Tensor] = {}
    for name, values in stored.items():
        if name.endswith("_scale"):
            continue
        scale = stored.get(f"{name}_scale")
        if scale is not None:
            values = values.float() / scale.float().reshape(-1, *[1] * (values.dim() - 1))
        weights[name] = values.to(dtype)
    return weights | {name: weights[target] for name, target in aliases.items()}, scalars
