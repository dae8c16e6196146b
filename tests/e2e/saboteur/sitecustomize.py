"""Injects faults into a server's workers. Python imports this module itself if its folder is on PYTHONPATH.

`SABOTAGE` names a folder with a `plan.json`, which is read for each batch:
`batch_limits`: for each requested compute type, how many windows fit into memory together;
`too_large`: compute types for which a model does not fit into memory;
`rows`: how many beams of all windows together fit into memory;
`poisoned`: slots whose device fails in each batch (their `CUDA_VISIBLE_DEVICES`);
`poison_signal`: the signal by which `POISON` ends its worker, instead of SIGSEGV;
`unkillable`: if true, no process can be killed.
Read when the server starts:
`resume_s`: how long a broken live stream waits for its client, instead of a minute;
`memory_wait_s`: the time after which a limit is raised again, instead of a minute;
`two_batches`: if true, workers on the CPU have a batch ready while they decode another, as on a GPU.
The `window_name` of each decoded window is appended to the file `decoded` in that folder.
`failing`: if true, a window that contains `FAILING` cannot be decoded.
A window that contains `POISON` crashes its worker. The first one with `HANGING` blocks it for an hour.
"""

import hashlib
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time
from array import array
from pathlib import Path

# int16 samples that no recording contains by chance.
POISON = array("h", [12345, -12345] * 32).tobytes()
HANGING = array("h", [23456, -23456] * 32).tobytes()
FAILING = array("h", [21212, -21212] * 32).tobytes()


class Saboteur(importlib.abc.MetaPathFinder):
    """Patches a module as soon as it is imported."""

    def __init__(self, name, patch) -> None:
        self.name, self.patch = name, patch

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.patch(module)

        spec.loader.exec_module = exec_module
        return spec


def sabotage_limits(module) -> None:
    module._FIRST_WAIT_S = plan().get("memory_wait_s", module._FIRST_WAIT_S)


def sabotage_streams(module) -> None:
    module.RESUME_S = plan().get("resume_s", module.RESUME_S)


def sabotage_plan(module) -> None:
    if plan().get("two_batches"):
        limits = module._limits
        module._limits = lambda settings, batch_size, on_gpus: limits(settings, batch_size, on_gpus=True)


def sabotage_slot(module) -> None:
    run = module.WhisperSlot.run

    async def run_and_note(self, *batch):
        self.batches = getattr(self, "batches", 0) + 1
        if self.batches > 1:
            (folder() / "had_two_batches").touch()
        try:
            return await run(self, *batch)
        finally:
            self.batches -= 1

    module.WhisperSlot.run = run_and_note


def sabotage_kill() -> None:
    kill = os.kill

    def kill_or_not(pid, number):
        if number != signal.SIGKILL or not plan().get("unkillable"):
            kill(pid, number)

    os.kill = kill_or_not


def sabotage_model(module) -> None:
    model_class = module.LoadedModel
    load, decode = model_class.__init__, model_class.decode

    def load_or_fail(self, options, compute_type):
        self.requested = options.compute_type
        if self.requested in plan().get("too_large", []):
            raise out_of_memory()
        load(self, options, compute_type)

    def decode_or_fail(self, windows):
        if any(POISON in window.pcm for window in windows):
            signal.raise_signal(plan().get("poison_signal", signal.SIGSEGV))
        if any(HANGING in window.pcm for window in windows) and first_time():
            time.sleep(3600)
        if plan().get("failing") and any(FAILING in window.pcm for window in windows):
            raise RuntimeError("no text")
        if os.environ["CUDA_VISIBLE_DEVICES"] in plan().get("poisoned", []):
            raise RuntimeError("CUDA failed with error an illegal memory access was encountered")
        rows = sum(window.decoding.beam_size for window in windows)
        if rows > plan().get("rows", rows):
            raise out_of_memory()
        if len(windows) > plan().get("batch_limits", {}).get(self.requested, len(windows)):
            raise out_of_memory()
        results = decode(self, windows)
        with (folder() / "decoded").open("a") as log:
            for window, result in zip(windows, results, strict=True):
                name = window_name(window.pcm, result.language, window.decoding.no_repeat_ngram_size)
                log.write(f"{name}\n")
        return results

    model_class.__init__, model_class.decode = load_or_fail, decode_or_fail


def window_name(pcm: bytes, language: str, no_repeat_ngram_size: int = 0) -> str:
    """The name of a window. That of a clip's first window follows from the clip, since it spans all of it."""
    return f"{hashlib.sha256(pcm).hexdigest()} {language} {no_repeat_ngram_size}"


def plan():
    return json.loads((folder() / "plan.json").read_text())


def first_time() -> bool:
    try:
        (folder() / "hung").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def out_of_memory() -> RuntimeError:
    return RuntimeError("CUDA failed with error out of memory")


def folder() -> Path:
    return Path(os.environ["SABOTAGE"])


if "SABOTAGE" in os.environ:
    sys.meta_path.insert(0, Saboteur("workers.whisper.model", sabotage_model))
    sys.meta_path.insert(0, Saboteur("app.engines.oom_fallback", sabotage_limits))
    sys.meta_path.insert(0, Saboteur("app.engines.plan", sabotage_plan))
    sys.meta_path.insert(0, Saboteur("app.engines.slot", sabotage_slot))
    sys.meta_path.insert(0, Saboteur("app.api.audio.realtime_sessions", sabotage_streams))
    sabotage_kill()
