"""All benchmarks in one run: prints tables and writes all figures as JSON.

    whisperfleet bench [PART ...] [--quick]      or      make bench

Without a PART, all of those listed below run. Each is also a command of its own with the same options:
python -m bench.PART
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import (
    audio_context,
    clients,
    first_cue,
    idle,
    media,
    memory,
    scaling,
    scheduling,
    stages,
    throughput,
)
from bench.command import Measure, Options, add_options, options_of, silence_logs
from bench.measuring import Figures, Table, machine, write_json

PARTS: dict[str, Measure] = {
    "throughput": throughput.measure,
    "scaling": scaling.measure,
    "scheduling": scheduling.measure,
    "clients": clients.measure,
    "first_cue": first_cue.measure,
    "memory": memory.measure,
    "idle": idle.measure,
    "audio_context": audio_context.measure,
    "media": media.measure,
    "stages": stages.measure,
}
RESULTS = Path("bench-results")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the given parts and print their tables. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="whisperfleet bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    add_options(parser)
    parsed = parser.parse_args(arguments)
    unknown = [part for part in parsed.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    silence_logs()
    figures: Figures = {"machine": machine()}
    print(_describe(figures["machine"]), flush=True)
    for part in parsed.parts or PARTS:
        figures[part], tables = _measure(PARTS[part], options_of(parsed))
        print("", *tables, sep="\n\n", flush=True)
    figures["load_average_after"] = machine()["load_average"]
    path = parsed.json or RESULTS.with_suffix(".json")
    write_json(path, figures)
    print(f"\n\nAll figures: {path}")
    return 0


def _measure(measure: Measure, options: Options) -> tuple[Figures, list[Table]]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        figures, tables = measure(options, Path(folder))
    return {**figures, "took_s": round(time.monotonic() - began, 1)}, tables


def _describe(found: Figures) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        f"{found['cpu']}, {found['cores']} cores, {found['memory_gib']} GiB; {found['system']}; "
        f"Python {found['python']}; {versions}; load average {json.dumps(found['load_average'])}. "
        "Medians; one run."
    )


if __name__ == "__main__":
    sys.exit(main())
