"""Faults on demand in a server's workers: Python imports this by itself where the folder is on PYTHONPATH.

`SABOTAGE` names a folder with a `plan.json`, which is read anew for each batch:
`rooms`: by compute type as it was asked for, how many clips there is memory for at once;
`too_large`: compute types for which there is no memory to load a model.
Each clip that was heard is noted in the file `heard`, by its `clip_name`.
A clip that holds `DEADLY` kills its worker; one that holds `HANGING` keeps it for an hour, the first time.
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

# int16 samples that no recording has by chance.
DEADLY = array("h", [12345, -12345] * 32).tobytes()
HANGING = array("h", [23456, -23456] * 32).tobytes()


class Saboteur(importlib.abc.MetaPathFinder):
    """Waits for the worker's module, and changes it as soon as it has been imported."""

    def find_spec(self, name, path, target=None):
        if name != "workers.whisper.model":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            sabotage(module.LoadedModel)

        spec.loader.exec_module = exec_module
        return spec


def sabotage(listener) -> None:
    load, transcribe = listener.__init__, listener.transcribe

    def load_or_not(self, options):
        self.asked = options.compute_type
        if self.asked in plan().get("too_large", []):
            raise out_of_memory()
        load(self, options)

    def transcribe_or_not(self, clips):
        if any(DEADLY in clip.pcm for clip in clips):
            os.kill(os.getpid(), signal.SIGKILL)
        if any(HANGING in clip.pcm for clip in clips) and first_time():
            time.sleep(3600)
        if len(clips) > plan().get("rooms", {}).get(self.asked, len(clips)):
            raise out_of_memory()
        results = transcribe(self, clips)
        with (folder() / "heard").open("a") as log:
            for clip, result in zip(clips, results, strict=True):
                log.write(f"{clip_name(clip.pcm, result.language)}\n")
        return results

    listener.__init__, listener.transcribe = load_or_not, transcribe_or_not


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
    sys.meta_path.insert(0, Saboteur())
