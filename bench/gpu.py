"""Compares batch sizes, beams, compute types and workers per device: start time, memory, windows per second.

    .venv/bin/python bench/sized_model.py large-v3-turbo FOLDER      # without a real model
    .venv/bin/python bench/gpu.py FOLDER [--json OUT]

For each compute type and each number of workers on one device, this starts the service's own workers. They
decode full batches of windows as fast as they can: one after the other ("alone"), and with the features of
each computed while the one before is decoded ("ahead"). A window is a second of silence shorter than its
audio context. Each figure is the median of `--repeat` batches of each worker.

To check on a CPU that this works, use `--device cpu --compute int8 --batches 1,2`.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import cycle, islice, product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.common.errors import RequeueBatch
from app.engines.catalogue import ModelCatalogue
from app.engines.slot import SlotLimits, WhisperSlot
from app.engines.window_request import WindowRequest
from app.pool.process import ChildProcess
from bench.command import silence_logs
from bench.measuring import machine, markdown, write_json
from bench.recordings import TALK, read
from workers import runtime
from workers.causes import is_out_of_memory
from workers.messages import FULL_CONTEXT_S, SAMPLE_RATE, DecodingOptions, LoadOptions, Window, WindowResult

MODEL = "model"


@dataclass(frozen=True)
class Run:
    """The figures of one configuration. Times in s, memory in MB of 10^6 bytes."""

    device: str
    compute_type: str
    workers: int
    batch: int
    beam: int
    context_s: int  # of audio, that the encoder sees
    tokens: int  # of the batch's longest text
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
    ways: Sequence[DecodingOptions],
    threads: int,
    backend: str = "ctranslate2",
    talk: np.ndarray | None = None,
) -> list[Run]:
    """Run `workers` workers on one device with each batch size and each way in turn, the smallest first.

    `talk`: the samples that they decode; else they are read.
    """
    talk = read(TALK) if talk is None else talk
    most = max(batches)
    options = LoadOptions(MODEL, str(folder), device, compute_type, threads, backend=backend, batch_size=most)
    catalogue = ModelCatalogue(MODEL, idle_s=600, options={MODEL: options})
    limits = SlotLimits(most, batches_at_once=2)
    slots = [
        WhisperSlot(index, catalogue, limits, ChildProcess(runtime.initialise, visible))
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
        for batch, decoding, ahead in product(sorted(batches), ways, (False, True)):
            batch_s, tokens = None, 0
            try:
                windows = list(islice(cycle(speech(talk, decoding)), batch))
                batch_s, tokens = await _batch_s(slots, windows, repeat, ahead=ahead)
            except RequeueBatch:  # memory was short
                pass
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            used = _used_mb(device, visible, pids) - before
            # The type that the worker uses: a CPU may not support plain int8.
            found = str(slots[0].row()["compute_type"])
            way = (batch, decoding.beams, decoding.context_s, tokens, ahead)
            runs.append(Run(device, found, workers, *way, start_s, loaded, used, batch_s))
    finally:
        await asyncio.gather(*(slot.close() for slot in slots))
    return runs


async def _batch_s(
    slots: Sequence[WhisperSlot], batch: Sequence[Window], repeat: int, *, ahead: bool
) -> tuple[float, int]:
    """The median time of a batch (s) while all workers run, and the number of tokens of its longest text."""
    windows = [
        WindowRequest(window.pcm, 0, window.samples, window.speech, window.decoding) for window in batch
    ]
    times: list[float] = []

    async def work(slot: WhisperSlot) -> None:
        runs = [asyncio.create_task(slot.run(windows)) for _ in range(min(repeat, 1 + ahead))]
        for number in range(repeat):
            began = time.perf_counter()
            await runs[number]
            times.append(time.perf_counter() - began)
            if len(runs) < repeat:
                runs.append(asyncio.create_task(slot.run(windows)))

    # One unmeasured batch: the first use allocates memory and selects kernels.
    [answers, *_] = await asyncio.gather(*(slot.run(windows) for slot in slots))
    await asyncio.gather(*(work(slot) for slot in slots))
    return statistics.median(times), max(
        answer.token_count for answer in answers if isinstance(answer, WindowResult)
    )


def speech(pcm: np.ndarray, decoding: DecodingOptions) -> list[Window]:
    """Windows of a talk, with a second less than the audio context; they count as speech from end to end."""
    samples = (decoding.context_s - 1) * SAMPLE_RATE
    parts = [pcm[start : start + samples] for start in range(0, len(pcm) - samples, samples)]
    return [Window(part.astype("<i2").tobytes(), ((0, samples),), decoding) for part in parts]


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
    columns = ["compute type", "workers", "batch", "beam", "context", "features", "start"]
    columns += ["memory, loaded", "after", "batch takes", "windows/s", "times real time"]
    rows = []
    for run in runs:
        took = f"{run.batch_s * 1000:.0f} ms" if run.batch_s else "out of memory"
        cells: list[object] = [run.compute_type, run.workers, run.batch, run.beam, f"{run.context_s} s"]
        cells += ["ahead" if run.ahead else "alone", f"{run.start_s:.1f} s"]
        cells += [f"{run.loaded_mb:.0f} MB", f"{run.used_mb:.0f} MB", took]
        rows.append([*cells, f"{run.windows_per_s:.2f}", f"{run.windows_per_s * (run.context_s - 1):.0f}"])
    return "\n".join(markdown(columns, rows))


def cost_of_batches(runs: Sequence[Run]) -> str:
    """The fixed cost of a batch, of each window, and with several contexts of each token, by least squares.

    A window costs in proportion to its audio context. Planning uses the ratio of the first two.
    """
    lines = []
    for compute_type, beam, ahead in dict.fromkeys((run.compute_type, run.beam, run.ahead) for run in runs):
        known = [
            run
            for run in runs
            if (run.compute_type, run.beam, run.ahead) == (compute_type, beam, ahead)
            and run.workers == 1
            and run.batch_s
        ]
        terms = [[1, run.batch * run.context_s / FULL_CONTEXT_S, run.tokens] for run in known]
        count = 3 if len({run.context_s for run in known}) > 1 else 2
        if len(known) > count - 1:
            costs = (
                np.linalg.lstsq(np.array(terms)[:, :count], np.array([run.batch_s or 0 for run in known]))[0]
                * 1000
            )
            units = ["ms", "ms x windows", "ms x tokens of the longest text"]
            cost = " + ".join(f"{cost:.3g} {unit}" for cost, unit in zip(costs, units, strict=False))
            lines.append(f"{compute_type}, beam {beam}, {'ahead' if ahead else 'alone'}: {cost}")
    return "\n".join(lines)


def main() -> None:
    """Run all configurations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="a model in CTranslate2 format")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--gpu", default="0", help="index or UUID of the GPU")
    parser.add_argument("--backend", choices=("ctranslate2", "torch"), default="ctranslate2")
    parser.add_argument("--compute", default="float16,int8_float16")
    parser.add_argument("--workers", default="1,2", help="on the one device")
    parser.add_argument("--batches", default="1,4,8,16,32")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--beams", default="1,5")
    parser.add_argument("--contexts", default="30", help="audio contexts (s)")
    parser.add_argument("--words", action="store_true", help="with word times")
    parser.add_argument("--threads", type=int, default=8, help="of each worker")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    silence_logs()
    visible = arguments.gpu if arguments.device == "cuda" else ""
    runs: list[Run] = []
    ways = [
        DecodingOptions(
            MODEL, language="en", beam_size=beam, word_timestamps=arguments.words, context_s=context
        )
        for beam, context in product(_numbers(arguments.beams), _numbers(arguments.contexts))
    ]
    for compute_type, workers in product(arguments.compute.split(","), _numbers(arguments.workers)):
        runs += asyncio.run(
            measure(
                arguments.folder,
                arguments.device,
                visible,
                compute_type,
                workers,
                _numbers(arguments.batches),
                arguments.repeat,
                ways=ways,
                threads=arguments.threads,
                backend=arguments.backend,
            )
        )
    print(table(runs))
    print(f"\nA batch, with one worker:\n{cost_of_batches(runs)}")
    if arguments.json:
        rows = [asdict(run) | {"windows_per_s": run.windows_per_s} for run in runs]
        write_json(arguments.json, {"machine": machine(), "runs": rows})


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
