"""What the command lines of all benchmarks have in common."""

import argparse
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog

from bench.measuring import REPETITIONS, Figures, Table
from bench.recordings import TALK

T = TypeVar("T")


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


def parser_of(
    description: str | None, parts: Iterable[str] = (), prog: str | None = None
) -> argparse.ArgumentParser:
    """A parser with `--quick` and `--json`, and with names of parts if there are any."""
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    if parts:
        # Without `choices`: some versions of argparse check the empty list against them.
        parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("--quick", action="store_true", help="one short round, only to check that it works")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser


def chosen(parser: argparse.ArgumentParser, names: Sequence[str], parts: Mapping[str, T]) -> Mapping[str, T]:
    """The parts with these names; without names, all of them. Exits if there is none of a name."""
    unknown = [name for name in names if name not in parts]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; choose from {', '.join(parts)}")
    return {name: parts[name] for name in names or parts}


def silence_logs() -> None:
    """Log only errors: other log lines take time and hide the tables."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
