"""Everything that can be measured on this machine, in one run: tables, and all figures as JSON.

    whisperfleet bench [PART ...] [--quick]      or      make bench

Parts are those listed below; all of them, where none is named. Each has a command of its own, too, with the
same options: python -m bench.PART
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import clients, first_cue, media, memory, scaling, scheduling, stages, throughput
from bench.command import Measure, Options, add_options, keep_quiet, options_of
from bench.measuring import Figures, Table, machine, write_json

PARTS: dict[str, Measure] = {
    "throughput": throughput.measure,
    "scaling": scaling.measure,
    "scheduling": scheduling.measure,
    "clients": clients.measure,
    "first_cue": first_cue.measure,
    "memory": memory.measure,
    "media": media.measure,
    "stages": stages.measure,
}
RESULTS = Path("bench-results")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for, and print it. The exit code."""
    parser = argparse.ArgumentParser(
        prog="whisperfleet bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    add_options(parser)
    asked = parser.parse_args(arguments)
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    keep_quiet()
    figures: Figures = {"machine": machine()}
    print(_describe(figures["machine"]), flush=True)
    for part in asked.parts or PARTS:
        figures[part], tables = _measure(PARTS[part], options_of(asked))
        print("", *tables, sep="\n\n", flush=True)
    figures["load_average_after"] = machine()["load_average"]
    path = asked.json or RESULTS.with_suffix(".json")
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
