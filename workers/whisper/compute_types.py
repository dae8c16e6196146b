"""Which kinds of numbers a model computes with, and which take less memory. Pure.

The names are CTranslate2's. With `int8_x`, what is not quantized is kept in x; with `int8`, in the type of
the model's files.
"""

from collections.abc import Collection

# What `auto` means, and what it means in safe mode: the first one that the device has. CTranslate2's own
# `auto` would take the fastest type, which on a GPU may cost accuracy.
_PREFERRED = {"cuda": ("float16",), "cpu": ("int8",)}
_SAFE = {"cuda": ("int8_float16", "int8"), "cpu": ("int8",)}

# What takes less memory than each type.
_SMALLER = {
    "cuda": {
        "float32": "float16",
        "float16": "int8_float16",
        "bfloat16": "int8_bfloat16",
        "int8_float32": "int8_float16",
        "int8_float16": "int8",
        "int8_bfloat16": "int8",
    },
    "cpu": {
        "float32": "int8_float32",
        "float16": "int8_float32",
        "bfloat16": "int8_float32",
        "int16": "int8_float32",
        "int8_float32": "int8",
        "int8_float16": "int8",
        "int8_bfloat16": "int8",
    },
}


def choose(asked: str, device: str, supported: Collection[str], *, safe: bool = False) -> str:
    """The type to load a model with: what is asked for, or what `auto` means on a device.

    Where the device has nothing that `auto` means, CTranslate2 is to decide: in safe mode, to take the type
    of the model's files.
    """
    if asked != "auto":
        return asked
    wanted = (_SAFE if safe else _PREFERRED)[device]
    return next((name for name in wanted if name in supported), "default" if safe else "auto")


def smaller(compute_type: str, device: str, supported: Collection[str]) -> str | None:
    """The next type that takes less memory and that the device has; None below the smallest."""
    chain = _SMALLER[device]
    found = chain.get(compute_type)
    while found is not None and found not in supported:
        found = chain.get(found)
    return found
