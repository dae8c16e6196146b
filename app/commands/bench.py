"""`whisperfleet bench`"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from app.commands.ending import command
from app.common.errors import InvalidSetting

SOURCE = Path(__file__).parents[2]


@command()
def run_bench(arguments: Sequence[str]) -> int:
    """Run the benchmarks on this machine. Returns the exit code: 2 if something that they need is missing.

    The benchmarks and their recordings are part of the source tree, not of the installed package.
    """
    if not (SOURCE / "bench" / "__main__.py").is_file():
        raise InvalidSetting(
            "the benchmarks are not part of the installed package; run `make bench` in the source tree"
        )
    sys.path.insert(0, str(SOURCE))
    try:
        return int(importlib.import_module("bench.__main__").main(arguments))
    except ModuleNotFoundError as error:  # of those that only benchmarks and tests need
        raise InvalidSetting(f'{error.name} is missing; run pip install -e ".[dev]" in {SOURCE}') from None
