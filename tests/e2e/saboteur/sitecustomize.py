"""Injects faults into a server's workers. Python imports this module itself if its folder is on PYTHONPATH.

`SABOTAGE` names a folder with a `plan.json`, which is read for each batch:
`batch_limits`: for each requested compute type, how many clips fit into memory together;
`too_large`: compute types for which a model does not fit into memory;
`rows`: how many beams of all clips together fit into memory;
`poisoned`: slots whose device fails in each batch (their `CUDA_VISIBLE_DEVICES`);
`unkillable`: if true, no process can be killed.
Read when the server starts:
`memory_wait_s`: the time after which a limit is raised again, instead of a minute.
The `clip_name` of each transcribed clip is appended to the file `transcribed` in that folder.
A clip that contains `POISON` kills its worker. The first one that contains `HANGING` blocks it for an hour.
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


def sabotage_kill() -> None:
    kill = os.kill

    def kill_or_not(pid, number):
        if number != signal.SIGKILL or not plan().get("unkillable"):
            kill(pid, number)

    os.kill = kill_or_not


def sabotage_model(module) -> None:
    model_class = module.LoadedModel
    load, transcribe = model_class.__init__, model_class.transcribe

    def load_or_fail(self, options):
        self.requested = options.compute_type
        if self.requested in plan().get("too_large", []):
            raise out_of_memory()
        load(self, options)

    def transcribe_or_fail(self, clips):
        if any(POISON in clip.pcm for clip in clips):
            os.kill(os.getpid(), signal.SIGKILL)
        if any(HANGING in clip.pcm for clip in clips) and first_time():
            time.sleep(3600)
        if os.environ["CUDA_VISIBLE_DEVICES"] in plan().get("poisoned", []):
            raise RuntimeError("CUDA failed with error an illegal memory access was encountered")
        rows = sum(clip.decoding.beam_size for clip in clips)
        if rows > plan().get("rows", rows):
            raise out_of_memory()
        if len(clips) > plan().get("batch_limits", {}).get(self.requested, len(clips)):
            raise out_of_memory()
        results = transcribe(self, clips)
        with (folder() / "transcribed").open("a") as log:
            for clip, result in zip(clips, results, strict=True):
                log.write(f"{clip_name(clip.pcm, result.language)}\n")
        return results

    model_class.__init__, model_class.transcribe = load_or_fail, transcribe_or_fail


def clip_name(pcm: bytes, language: str) -> str:
    return f"{hashlib.sha256(pcm).hexdigest()} {language}"


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
    sabotage_kill()
