"""The weights in `model.bin` of CTranslate2, as tensors."""

import math
import mmap
from pathlib import Path
from typing import Any

from workers.whisper.model_check import read_number, read_string

# Types of values, by their number in the file.
_TYPES = {0: "float32", 1: "int8", 4: "float16"}
_QUANTIZED = "int8"
_MAX_SCALAR_BYTES = 8


def read_weights(path: Path, device: str, dtype: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """The weights of a model by name, on `device` as values of `dtype`; and its scalars.

    8-bit values are scaled back. The layout is that of `ctranslate2.specs.model_spec.ModelSpec.save`. Raises
    RuntimeError for a file with other types of values, and OSError.
    """
    import torch

    stored: dict[str, Any] = {}
    scalars: dict[str, int] = {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as content:
        read_number(file, "I"), read_string(file), read_number(file, "I")
        for _ in range(read_number(file, "I")):
            name = read_string(file)
            shape = [read_number(file, "I") for _ in range(read_number(file, "B"))]
            kind, size = read_number(file, "B"), read_number(file, "I")
            start = file.tell()
            file.seek(size, 1)
            if size <= _MAX_SCALAR_BYTES and not shape:
                scalars[name] = int.from_bytes(content[start : start + size], "little")
                continue
            if kind not in _TYPES:
                raise RuntimeError(
                    f"{name} has values of a type that torch does not read; set WHISPER_BACKEND=ctranslate2"
                )
            values = torch.frombuffer(
                content, dtype=getattr(torch, _TYPES[kind]), offset=start, count=math.prod(shape)
            )
            # A copy of its own, since the file is closed.
            stored[name] = values.reshape(shape).to(device, copy=True)
        aliases = {read_string(file): read_string(file) for _ in range(read_number(file, "I"))}
    weights: dict[str, Any] = {}
    for name, values in stored.items():
        if name.endswith("_scale"):
            continue
        scale = stored.get(f"{name}_scale")
        if scale is not None:
            values = values.float() / scale.float().reshape(-1, *[1] * (values.dim() - 1))
        weights[name] = values.to(dtype)
    return weights | {name: weights[target] for name, target in aliases.items()}, scalars
