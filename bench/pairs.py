"""Whether this checkout is as fast as another one, in pairs that take turns.

    python -m bench.pairs FOLDER [--pairs 10] [--quick] [--json FILE]

*Talk*: the talk of the tests, upload to SRT, by a service of each checkout with one worker of one thread and
the demo model. Measured are the time until the answer, and the CPU time of all processes of the service.
*Start*: the time from the command until that service is ready, and the CPU time of its processes by then.
*Dispatcher*: its CPU time for each window: ten hours of lecture on 64 simulated slots, on a virtual clock, by
a new process of each checkout.

A ratio is the median of those of all pairs: time here over time there. On a busy machine, compare CPU times.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import httpx
import psutil

from bench.command import parser_of
from bench.measuring import Figures, Table, interleaved, machine, ratio, write_json
from bench.recordings import TALK
from bench.service import COMMAND, ROOT, started_service
from bench.throughput import one_worker, request_srt

HERE, THERE = "here", "there"
SLOTS = 64
MINUTES = 600
# Each checkout runs its own bench: the interfaces inside may differ.
_OWN_MS = """
import sys
from app.engines.simulated import Simulation
from bench.command import silence_logs
from bench.simulated_fleet import run_job
from bench.speech_samples import drawn_clips

silence_logs()
clips = drawn_clips("lecture", int(sys.argv[1]))
print(run_job(clips, int(sys.argv[2]), Simulation()).own_ms)
"""


def talk(checkouts: dict[str, Path], pairs: int) -> Figures:
    """Wall and CPU times of a talk (s) by checkout."""
    with ExitStack() as stack:
        cpu_s: dict[str, list[float]] = {name: [] for name in checkouts}
        texts: dict[str, str] = {}

        def way(name: str, root: Path) -> Callable[[], float]:
            client, process = stack.enter_context(_service(root))
            return lambda: transcribe(name, client, process.pid)

        def transcribe(name: str, client: httpx.Client, pid: int) -> float:
            before_s, began = _cpu_s(pid), time.perf_counter()
            texts[name] = request_srt(client, TALK)
            took_s = time.perf_counter() - began
            cpu_s[name].append(_cpu_s(pid) - before_s)
            return took_s

        wall_s = interleaved({name: way(name, root) for name, root in checkouts.items()}, pairs)
    return {
        "wall_s": wall_s,
        "cpu_s": _measured(cpu_s),
        "same_text": texts[HERE] == texts[THERE],
    }


def start(checkouts: dict[str, Path], pairs: int) -> Figures:
    """Wall and CPU times of starts (s) by checkout."""
    cpu_s: dict[str, list[float]] = {name: [] for name in checkouts}

    def started(name: str, root: Path) -> float:
        began = time.perf_counter()
        with _service(root) as (_, process):
            took_s = time.perf_counter() - began
            cpu_s[name].append(_cpu_s(process.pid))
        return took_s

    ways = {name: partial(started, name, root) for name, root in checkouts.items()}
    wall_s = interleaved(ways, pairs)
    return {"wall_s": wall_s, "cpu_s": _measured(cpu_s)}


def dispatcher(checkouts: dict[str, Path], pairs: int, minutes: int) -> Figures:
    """CPU time of the dispatcher for each window (ms), by checkout."""

    def own_ms(root: Path) -> float:
        command = [sys.executable, "-c", _OWN_MS, str(minutes), str(SLOTS)]
        return float(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)

    ways = {name: lambda root=root: own_ms(root) for name, root in checkouts.items()}
    return {"own_ms": interleaved(ways, pairs)}


@contextmanager
def _service(root: Path) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """A service of a checkout, when it is ready."""
    with (
        tempfile.TemporaryDirectory() as folder,
        started_service(COMMAND, root, **one_worker(1), WHISPER_DATA_DIR=folder) as service,
    ):
        yield service


def _measured(cpu_s: dict[str, list[float]]) -> dict[str, list[float]]:
    """Without the first run of each checkout, which `interleaved` does not measure either."""
    return {name: times[1:] for name, times in cpu_s.items()}


def _cpu_s(pid: int) -> float:
    server = psutil.Process(pid)
    return float(sum(sum(each.cpu_times()[:2]) for each in (server, *server.children(recursive=True))))


def _row(name: str, found: dict[str, list[float]]) -> list[object]:
    ratios = [here / there for here, there in zip(found[HERE], found[THERE], strict=True)]
    return [
        name,
        len(ratios),
        f"{median(found[THERE]):.3f}",
        f"{median(found[HERE]):.3f}",
        f"{ratio(found[HERE], found[THERE]):.3f}",
        f"{min(ratios):.3f} to {max(ratios):.3f}",
    ]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("there", type=Path, metavar="FOLDER", help="another checkout")
    parser.add_argument("--pairs", type=int, default=10)
    parsed = parser.parse_args()
    checkouts = {THERE: parsed.there.resolve(), HERE: ROOT}
    pairs = 1 if parsed.quick else parsed.pairs
    figures = {
        "machine": machine(),
        "dispatcher": dispatcher(checkouts, pairs, 60 if parsed.quick else MINUTES),
        "talk": talk(checkouts, pairs),
        "start": start(checkouts, pairs),
    }
    rows = [
        _row("dispatcher, CPU, ms a window", figures["dispatcher"]["own_ms"]),
        _row("talk, s", figures["talk"]["wall_s"]),
        _row("talk, CPU, s", figures["talk"]["cpu_s"]),
        _row("start, s", figures["start"]["wall_s"]),
        _row("start, CPU, s", figures["start"]["cpu_s"]),
    ]
    print(Table("Two checkouts", ["", "pairs", THERE, HERE, "ratio, median of pairs", "of all pairs"], rows))
    print(f"\nThe same text: {'yes' if figures['talk']['same_text'] else 'no'}")
    if parsed.json:
        write_json(parsed.json, figures)


if __name__ == "__main__":
    main()
