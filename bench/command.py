"""The command line that all benchmarks have in common."""

import argparse
import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from bench.measuring import REPETITIONS, Figures, Table, machine, write_json
from bench.recordings import TALK


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    repetitions: int = REPETITIONS
    threads: int = 1  # of each worker and each peer
    minutes: tuple[float, ...] = ()  # of the recordings; empty: the benchmark's own default
    talk: Path = TALK  # the source of all recordings
    quick: bool = False  # one short round, only to check that it works

    def lengths(self, *usual: float) -> tuple[float, ...]:
        """The recordings' lengths, in minutes."""
        return (1.0,) if self.quick else self.minutes or usual


Measure = Callable[[Options, Path], tuple[Figures, list[Table]]]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="measured rounds")
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--minutes", type=float, nargs="*", default=(), help="lengths of the recordings")
    parser.add_argument(
        "--talk", type=Path, default=TALK, help="16 kHz FLAC, with its transcript as JSON beside it"
    )
    parser.add_argument("--quick", action="store_true", help="one short round, only to check that it works")
    parser.add_argument("--json", type=Path, help="file for the figures")


def options_of(parsed: argparse.Namespace) -> Options:
    return Options(
        repetitions=1 if parsed.quick else parsed.repetitions,
        threads=parsed.threads,
        minutes=tuple(parsed.minutes),
        talk=parsed.talk,
        quick=parsed.quick,
    )


def silence_logs() -> None:
    """Log only errors: other log lines take time and hide the tables."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def run_alone(name: str, measure: Measure, description: str | None) -> None:
    """Run one benchmark as a command of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    add_options(parser)
    parsed = parser.parse_args()
    silence_logs()
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        figures, tables = measure(options_of(parsed), Path(folder))
    print("\n\n".join(map(str, tables)))
    if parsed.json:
        write_json(parsed.json, {"machine": before, name: figures})
