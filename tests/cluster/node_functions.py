"""Functions that tests run on nodes and in processes there."""

import os
import sys

from workers import calls


def surroundings() -> tuple[list[str], str | None, dict[str, object]]:
    """The modules of Ray in this process, its GPUs, and the ids of the work."""
    modules = [name for name in sys.modules if name.partition(".")[0] == "ray"]
    return modules, os.environ.get("CUDA_VISIBLE_DEVICES"), dict(calls.current().ids)


def secrets() -> list[str]:
    """Values of variables that could be a token."""
    return [value for name, value in os.environ.items() if "TOKEN" in name]


def divide(left: float, right: float) -> float:
    return left / right
