"""All benchmarks in one run: prints tables and writes all figures as JSON.

    whisperfleet bench [PART ...] [--quick]      or      make bench

Without a PART, all of those listed below run.
"""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench.command import Measure, Options, chosen, parser_of, silence_logs
from bench.measuring import REPETITIONS, Figures, Table, machine, write_json
from bench.recordings import TALK

# Each part with its function. Imported when it runs: `--help` needs no more than the service does.
PARTS = {
    "throughput": "throughput.measure",
    "scaling": "scaling.measure",
    "scheduling": "scheduling.measure",
    "memory": "memory.measure",
    "idle": "memory.measure_idle",
    "media": "media.measure",
    "stages": "stages.measure",
    "voices": "voices.measure",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the given parts and print their tables. Returns the exit code."""
    parser = parser_of(__doc__, PARTS, prog="whisperfleet bench")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="measured rounds")
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--minutes", type=float, nargs="*", default=(), help="lengths of the recordings")
    parser.add_argument(
        "--talk", type=Path, default=TALK, help="16 kHz FLAC, with its transcript as JSON beside it"
    )
    parsed = parser.parse_args(arguments)
    options = Options(
        repetitions=1 if parsed.quick else parsed.repetitions,
        threads=parsed.threads,
        minutes=tuple(parsed.minutes),
        talk=parsed.talk,
        quick=parsed.quick,
    )
    parts = {name: _function(place) for name, place in chosen(parser, parsed.parts, PARTS).items()}
    silence_logs()
    figures: Figures = {"machine": machine()}
    print(_describe(figures["machine"]), flush=True)
    for part, measure in parts.items():
        figures[part], tables = _measure(measure, options)
        print("", *tables, sep="\n\n", flush=True)
    figures["load_average_after"] = machine()["load_average"]
    path = parsed.json or Path("bench-results.json")
    write_json(path, figures)
    print(f"\n\nAll figures: {path}")
    return 0


def _function(place: str) -> Measure:
    module, function = place.split(".")
    measure: Measure = getattr(import_module(f"bench.{module}"), function)
    return measure


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
