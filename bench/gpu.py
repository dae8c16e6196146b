"""Compares batch sizes, beams, compute types and workers per device: start time, memory, windows per second.

    .venv/bin/python bench/random_model.py large-v3-turbo FOLDER      # without a real model
    .venv/bin/python bench/gpu.py FOLDER [--json OUT]

For each compute type and each number of workers on one device, this starts the service's own workers. They
decode full batches of windows of 30 s as fast as they can: one after the other ("alone"), and with the
features of each computed while the one before is decoded ("ahead"). Each figure is the median of `--repeat`
batches of each worker. With a model of random weights, all windows decode to the same number of tokens.

No GPU was available so far: this repository contains no figures from a GPU. To check on a CPU that this
works, use `--device cpu --compute int8 --batches 1,2`.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.engines.catalogue import ModelCatalogue
from app.engines.local import ProcessSlot
from app.engines.slot import Limits
from app.engines.window_request import WindowInMemory
from app.errors import RequeueBatch
from app.scheduling.process import ChildProcess
from bench.measuring import machine, markdown, write_json
from workers import runtime
from workers.causes import is_out_of_memory
from workers.messages import MAX_CLIP_SAMPLES, SAMPLE_RATE, DecodingOptions, LoadOptions, Window

MODEL = "model"
WINDOW_S = MAX_CLIP_SAMPLES / SAMPLE_RATE


@dataclass(frozen=True)
class Run:
    """The figures of one configuration. Times in s, memory in MB of 10^6 bytes."""

    device: str
    compute_type: str
    workers: int
    batch: int
    beam: int
    ahead: bool  # features of a batch are computed while the one before is decoded
    start_s: float  # until the last worker has loaded its model
    loaded_mb: float  # memory of the models: on the GPU, or resident in the workers
    used_mb: float  # the same after the batches
    batch_s: float | None  # median time of a batch; None: out of memory

    @property
    def windows_per_s(self) -> float:
        """Of all workers together."""
        return self.workers * self.batch / self.batch_s if self.batch_s else 0.0


async def measure(
    folder: Path,
    device: str,
    visible: str,
    compute_type: str,
    workers: int,
    batches: Sequence[int],
    repeat: int,
    *,
    decoding: DecodingOptions,
    threads: int,
) -> list[Run]:
    """Run `workers` workers on one device with each batch size in turn, the smallest first."""
    options = LoadOptions(MODEL, str(folder), device, compute_type, threads)
    catalogue = ModelCatalogue(MODEL, idle_s=600, options={MODEL: options})
    limits = Limits(max(batches), overlap=True)
    slots = [
        ProcessSlot(index, catalogue, limits, ChildProcess(runtime.initialise, visible))
        for index in range(workers)
    ]
    before = _used_mb(device, visible, [])
    runs: list[Run] = []
    try:
        began = time.perf_counter()
        await asyncio.gather(*(slot.start() for slot in slots))
        start_s = time.perf_counter() - began
        pids = [int(str(slot.row()["pid"])) for slot in slots]
        loaded = _used_mb(device, visible, pids) - before
        for batch, ahead in product(sorted(batches), (False, True)):
            try:
                batch_s = await _batch_s(slots, batch, repeat, decoding, ahead=ahead)
            except RequeueBatch:  # memory was short
                batch_s = None
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                batch_s = None
            used = _used_mb(device, visible, pids) - before
            # The type that the worker uses: a CPU may not support plain int8.
            found = str(slots[0].row()["compute_type"])
            runs.append(
                Run(device, found, workers, batch, decoding.beams, ahead, start_s, loaded, used, batch_s)
            )
    finally:
        await asyncio.gather(*(slot.close() for slot in slots))
    return runs


async def _batch_s(
    slots: Sequence[ProcessSlot], batch: int, repeat: int, decoding: DecodingOptions, *, ahead: bool
) -> float:
    """The median time of a batch (s) while all workers run at the same time."""
    windows = [WindowInMemory(noise(decoding))] * batch
    times: list[float] = []

    async def work(slot: ProcessSlot) -> None:
        if ahead:
            await slot.hand_over(windows)
        for number in range(repeat):
            began = time.perf_counter()
            if ahead:
                await slot.exchange(windows if number < repeat - 1 else None)
            else:
                await slot.run(windows)
            times.append(time.perf_counter() - began)

    # One unmeasured batch: the first use allocates memory and selects kernels.
    await asyncio.gather(*(slot.run(windows) for slot in slots))
    await asyncio.gather(*(work(slot) for slot in slots))
    return statistics.median(times)


def noise(decoding: DecodingOptions) -> Window:
    """A window of 30 s that counts as speech from end to end."""
    samples = np.random.default_rng(0).standard_normal(MAX_CLIP_SAMPLES) * 3000
    return Window(samples.astype("<i2").tobytes(), ((0, MAX_CLIP_SAMPLES),), decoding)


def _used_mb(device: str, visible: str, pids: Sequence[int]) -> float:
    """Memory in use (MB): on the GPU by all processes, or resident in `pids`."""
    if device != "cuda":
        import psutil

        return sum(psutil.Process(pid).memory_info().rss for pid in pids) / 1e6
    import pynvml

    pynvml.nvmlInit()
    try:
        if visible.isdecimal():
            handle = pynvml.nvmlDeviceGetHandleByIndex(int(visible))
        else:
            handle = pynvml.nvmlDeviceGetHandleByUUID(visible)
        return float(pynvml.nvmlDeviceGetMemoryInfo(handle).used) / 1e6
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def table(runs: Sequence[Run]) -> str:
    """A Markdown table with one row for each run."""
    columns = ["compute type", "workers", "batch", "beam", "features", "start", "memory, loaded", "after"]
    rows = []
    for run in runs:
        took = f"{run.batch_s * 1000:.0f} ms" if run.batch_s else "out of memory"
        cells = [run.compute_type, run.workers, run.batch, run.beam, "ahead" if run.ahead else "alone"]
        cells += [f"{run.start_s:.1f} s", f"{run.loaded_mb:.0f} MB", f"{run.used_mb:.0f} MB", took]
        rows.append([*cells, f"{run.windows_per_s:.2f}", f"{run.windows_per_s * WINDOW_S:.0f}"])
    return "\n".join(markdown([*columns, "batch takes", "windows/s", "times real time"], rows))


def cost_of_batches(runs: Sequence[Run]) -> str:
    """The fixed cost of a batch and the cost of each window, by least squares. Planning uses their ratio."""
    lines = []
    for compute_type, beam in dict.fromkeys((run.compute_type, run.beam) for run in runs):
        known = [
            (run.batch, run.batch_s)
            for run in runs
            if (run.compute_type, run.beam, run.workers) == (compute_type, beam, 1)
            and run.batch_s
            and not run.ahead
        ]
        if len(known) > 1:
            window_s, fixed_s = np.polyfit(*zip(*known, strict=True), 1)
            cost = f"{fixed_s * 1000:.0f} ms + {window_s * 1000:.0f} ms x windows"
            lines.append(f"{compute_type}, beam {beam}: {cost}")
    return "\n".join(lines)


def main() -> None:
    """Run all configurations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="a model in CTranslate2 format")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--gpu", default="0", help="index or UUID of the GPU")
    parser.add_argument("--compute", default="float16,int8_float16")
    parser.add_argument("--workers", default="1,2", help="on the one device")
    parser.add_argument("--batches", default="1,4,8,16,32")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--beams", default="1,5")
    parser.add_argument("--words", action="store_true", help="with word times")
    parser.add_argument("--threads", type=int, default=4, help="of each worker")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    visible = arguments.gpu if arguments.device == "cuda" else ""
    runs: list[Run] = []
    configurations = product(
        arguments.compute.split(","),
        map(int, arguments.workers.split(",")),
        map(int, arguments.beams.split(",")),
    )
    for compute_type, workers, beam in configurations:
        runs += asyncio.run(
            measure(
                arguments.folder,
                arguments.device,
                visible,
                compute_type,
                workers,
                [int(batch) for batch in arguments.batches.split(",")],
                arguments.repeat,
                decoding=DecodingOptions(
                    MODEL, language="en", beam_size=beam, word_timestamps=arguments.words
                ),
                threads=arguments.threads,
            )
        )
    print(table(runs))
    print(f"\nA batch, with one worker:\n{cost_of_batches(runs)}")
    if arguments.json:
        rows = [asdict(run) | {"windows_per_s": run.windows_per_s} for run in runs]
        write_json(arguments.json, {"machine": machine(), "runs": rows})


if __name__ == "__main__":
    main()
