"""Which compute type a model is loaded with, and which types take less memory. Pure.

The names are CTranslate2's. Values that are not quantized have type x with `int8_x`, and the type of the
model's files with `int8`.
"""

import tomllib
from collections.abc import Collection
from pathlib import Path

# The meaning of `auto`, normally and in safe mode: the first type that the device supports. CTranslate2's own
# `auto` chooses the fastest type, which may cost accuracy on a GPU.
_PREFERRED = {"cuda": ("float16",), "cpu": ("int8",)}
# With which torch computes; the first is the meaning of `auto`.
TORCH_TYPES = {"cuda": ("float16", "float32"), "cpu": ("float32",)}
_SAFE = {"cuda": ("int8_float16", "int8"), "cpu": ("int8",)}

_SMALLER: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def choose(requested: str, device: str, supported: Collection[str], *, safe: bool = False) -> str:
    """The type to load a model with: the requested one, or the meaning of `auto` on a device.

    If the device supports none of `auto`'s types, CTranslate2 decides; in safe mode, it uses the type of the
    model's files.
    """
    if requested != "auto":
        return requested
    wanted = (_SAFE if safe else _PREFERRED)[device]
    return next((name for name in wanted if name in supported), "default" if safe else "auto")


def smaller(compute_type: str, device: str, supported: Collection[str]) -> str | None:
    """The next type that takes less memory and that the device supports; None if there is none."""
    chain = _SMALLER[device]
    candidate = chain.get(compute_type)
    while candidate is not None and candidate not in supported:
        candidate = chain.get(candidate)
    return candidate
