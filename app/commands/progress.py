"""The progress of recordings on standard error: a bar for each, the speed of all, and the time left."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from workers.messages import clock

_MIN_S = 1e-3


class Meter:
    """How fast recordings are transcribed, and how long the rest takes. Times in s, sizes in bytes."""

    def __init__(self, sizes: dict[Path, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._sizes = {path: max(size, 1) for path, size in sizes.items()}
        self._fractions: dict[Path, float] = {}
        self._done_s: dict[Path, float] = {}
        self._clock = clock
        self._start = clock()

    def advance(self, path: Path, done_s: float, total_s: float | None) -> None:
        """So much of a recording is transcribed."""
        self._done_s[path] = done_s
        if total_s:
            self._fractions[path] = min(done_s / total_s, 1.0)

    def finish(self, path: Path) -> None:
        """A recording is done, or has failed."""
        self._fractions[path] = 1.0

    @property
    def elapsed_s(self) -> float:
        return max(self._clock() - self._start, _MIN_S)

    @property
    def audio_s(self) -> float:
        """How much was transcribed so far."""
        return sum(self._done_s.values())

    @property
    def fraction(self) -> float:
        """The part of all recordings that is done. Only their sizes are known beforehand, so these count."""
        done = sum(self._sizes[path] * fraction for path, fraction in self._fractions.items())
        return done / sum(self._sizes.values())

    @property
    def left_s(self) -> float | None:
        """How long the rest takes at the speed so far; None while there is none."""
        fraction = self.fraction
        return self.elapsed_s * (1 - fraction) / fraction if fraction else None


class Board:
    """The bars on a terminal; elsewhere, only lines about what has ended."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.meter = Meter({path: _size(path) for path in paths})
        self.failed: list[Path] = []
        self._count = len(paths)
        self._ended = 0
        self._console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
        )
        self._bars = Progress(*columns, console=self._console, disable=not self._console.is_terminal)
        self._whole = self._bars.add_task(f"0 of {self._count}", total=1.0, state="", visible=self._count > 1)

    def __enter__(self) -> "Board":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.remove_task(self._whole)
        self._bars.stop()
        if kind is not None or self._count == 1:
            return
        meter, done = self.meter, self._count - len(self.failed)
        self.note(
            f"{done} of {self._count} recordings, {clock_time(meter.audio_s)} of audio in "
            f"{clock_time(meter.elapsed_s)}: {speed(meter.audio_s, meter.elapsed_s)}"
        )
        if self.failed:
            self.note(f"failed: {', '.join(map(str, self.failed))}")

    def begin(self, path: Path) -> "FileBar":
        """A bar for a recording."""
        return FileBar(self, path, self._bars.add_task(printable(path.name), total=None, state=""))

    def note(self, line: str) -> None:
        """Print a line above the bars."""
        # Not wrapped: scripts may search for a phrase.
        self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    def show(self, bar: TaskID, state: str, fraction: float | None) -> None:
        self._bars.update(
            bar, total=None if fraction is None else 1.0, completed=fraction or 0.0, state=state
        )
        meter = self.meter
        left = "" if meter.left_s is None else f", {clock_time(meter.left_s)} left"
        self._bars.update(
            self._whole,
            completed=meter.fraction,
            description=f"{self._ended} of {self._count}",
            state=f"{speed(meter.audio_s, meter.elapsed_s)}{left}",
        )

    def end(self, bar: TaskID, path: Path, line: str, *, failed: bool) -> None:
        self._ended += 1
        self.meter.finish(path)
        self._bars.remove_task(bar)
        if failed:
            self.failed.append(path)
        style = "red" if failed else None
        self._console.print(printable(line), style=style, markup=False, highlight=False, soft_wrap=True)


class FileBar:
    """The progress of one recording."""

    def __init__(self, board: Board, path: Path, bar: TaskID) -> None:
        self._board = board
        self._path = path
        self._bar = bar
        self._start = time.monotonic()
        self._audio_s = 0.0

    def upload(self, sent: int, size: int) -> None:
        """So many bytes of the recording are sent."""
        self._board.show(self._bar, f"uploading {sent / max(size, 1):.0%}", None)

    def advance(self, done_s: float, total_s: float | None) -> None:
        """So many seconds of the recording are transcribed; the total is None until it is known."""
        self._audio_s = max(done_s, total_s or 0.0)
        self._board.meter.advance(self._path, done_s, total_s)
        rate = speed(done_s, time.monotonic() - self._start) if done_s else ""
        if not total_s:
            self._board.show(self._bar, rate, None)
            return
        self._board.show(self._bar, f"{done_s / total_s:.0%} {rate}", min(done_s / total_s, 1.0))

    def note(self, text: str) -> None:
        """Print something about the recording."""
        self._board.note(f"{self._path}: {text}")

    def done(self, output: Path | None) -> None:
        elapsed_s = time.monotonic() - self._start
        self._board.meter.advance(self._path, self._audio_s, self._audio_s)
        place = f" → {output}" if output else ""
        self._board.end(
            self._bar,
            self._path,
            f"{self._path}{place}: {clock_time(self._audio_s)} in {clock_time(elapsed_s)}, "
            f"{speed(self._audio_s, elapsed_s)}",
            failed=False,
        )

    def fail(self, reason: object) -> None:
        self._board.end(self._bar, self._path, f"{self._path}: {reason}", failed=True)


def printable(text: str) -> str:
    """The text without what a terminal would obey, or could not show: names of files may have it."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def say(line: str) -> None:
    """Print a line on standard error, without what a terminal would obey."""
    print(printable(line), file=sys.stderr, flush=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # whoever opens it says why
        return 0


def speed(audio_s: float, elapsed_s: float) -> str:
    """How many seconds of audio are transcribed in a second."""
    rate = audio_s / max(elapsed_s, _MIN_S)
    return f"{rate:.0f} × real time" if rate >= 10 else f"{rate:.1f} × real time"


def clock_time(seconds: float) -> str:
    """A time as `h:mm:ss`, as `m:ss` below an hour, or in seconds below a minute."""
    return f"{int(seconds * 10) / 10:.1f} s" if seconds < 60 else clock(seconds)
