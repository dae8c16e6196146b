"""What the benches have in common as commands: their options, and where their figures go."""

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
    """How much is to be measured."""

    repetitions: int = REPETITIONS
    threads: int = 1  # of each worker, and of what it is measured against
    minutes: tuple[float, ...] = ()  # of the recordings; none: what the bench does by itself
    talk: Path = TALK  # that the recordings are made of
    quick: bool = False  # only see that all works

    def lengths(self, *usual: float) -> tuple[float, ...]:
        """The recordings' lengths, in minutes."""
        return (1.0,) if self.quick else self.minutes or usual


Measure = Callable[[Options, Path], tuple[Figures, list[Table]]]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="rounds that count")
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--minutes", type=float, nargs="*", default=(), help="lengths of the recordings")
    parser.add_argument(
        "--talk", type=Path, default=TALK, help="16 kHz FLAC, with its truth as JSON beside it"
    )
    parser.add_argument("--quick", action="store_true", help="one short round, only to see that all works")
    parser.add_argument("--json", type=Path, help="write the figures there")


def options_of(asked: argparse.Namespace) -> Options:
    return Options(
        repetitions=1 if asked.quick else asked.repetitions,
        threads=asked.threads,
        minutes=tuple(asked.minutes),
        talk=asked.talk,
        quick=asked.quick,
    )


def keep_quiet() -> None:
    """Have the service's rooms log nothing from within a bench: that takes time, and hides the tables."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def run_alone(name: str, measure: Measure, description: str | None) -> None:
    """One bench as a command of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    add_options(parser)
    asked = parser.parse_args()
    keep_quiet()
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        figures, tables = measure(options_of(asked), Path(folder))
    print("\n\n".join(map(str, tables)))
    if asked.json:
        write_json(asked.json, {"machine": before, name: figures})
