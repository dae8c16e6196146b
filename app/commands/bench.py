"""`whisperfleet bench`"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from app.commands.ending import command
from app.errors import InvalidSetting

SOURCE = Path(__file__).parents[2]
NEEDED = ("psutil", "jiwer")  # in addition to the service's dependencies


@command()
def run_bench(arguments: Sequence[str]) -> int:
    """Run the benchmarks on this machine. Returns the exit code: 2 if something that they need is missing.

    The benchmarks and their recordings are part of the source tree, not of the installed package.
    """
    if not (SOURCE / "bench" / "__main__.py").is_file():
        raise InvalidSetting(
            "the benchmarks are not part of the installed package; run `make bench` in the source tree"
        )
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSetting(f'{", ".join(missing)} is missing; run pip install -e ".[dev]" in {SOURCE}')
    sys.path.insert(0, str(SOURCE))
    return int(importlib.import_module("bench.__main__").main(arguments))
