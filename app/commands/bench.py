"""`whisperfleet bench`"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parents[2]
NEEDED = ("psutil", "jiwer")  # beyond what the service itself needs


def run_bench(arguments: Sequence[str]) -> int:
    """Measure on this machine; the exit code: 2 where something is missing for that.

    The benches and their recordings come with the source, not with the installed package.
    """
    if not (SOURCE / "bench" / "__main__.py").is_file():
        return _missing(
            "the benches and their recordings are in the source tree alone; run `make bench` there"
        )
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        return _missing(f'{", ".join(lacking)} is needed; pip install -e ".[dev]" in {SOURCE}')
    sys.path.insert(0, str(SOURCE))
    return int(importlib.import_module("bench.__main__").main(arguments))


def _missing(what: str) -> int:
    print(f"whisperfleet: {what}", file=sys.stderr)
    return 2
