"""From settings to slots: which engine, which devices, how large a batch."""

import os
from dataclasses import dataclass

from app.errors import InvalidSetting
from app.fleet.devices import Devices, count_gpus, plan_devices, usable_cores
from app.fleet.inline import InlineSlot
from app.fleet.local import LocalSlot
from app.fleet.models import ModelFiles, model_name
from app.fleet.slot import Catalogue, WhisperSlot
from app.settings import Settings
from workers.messages import LoadOptions

_BATCH_SIZE = {"cuda": 8, "cpu": 4}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the settings come to on this machine."""

    models: tuple[str, ...]  # that requests may name, the default one first
    devices: Devices
    batch_size: int
    engine: str
    compute_type: str

    def load_options(self, files: ModelFiles) -> LoadOptions:
        """How a worker is to load a model."""
        return LoadOptions(
            model=files.name,
            path=str(files.path),
            device=self.devices.device,
            compute_type=self.compute_type,
            cpu_threads=self.devices.cpu_threads,
        )

    def slots(self, catalogue: Catalogue) -> list[WhisperSlot]:
        """The slots, none of them started."""
        if self.engine == "inline":
            return [InlineSlot(0, catalogue)]
        return [LocalSlot(index, catalogue, visible) for index, visible in enumerate(self.devices.visible)]


def make_plan(settings: Settings) -> Plan:
    """Look at the machine and the settings. Raises InvalidSetting where they do not fit."""
    devices = plan_devices(settings, os.environ, count_gpus(), usable_cores())
    default = model_name("WHISPER_MODEL", settings.model, devices.device)
    others = [model_name("WHISPER_MODELS", name, devices.device) for name in settings.models]
    return Plan(
        models=tuple(dict.fromkeys([default, *others])),
        devices=devices,
        batch_size=settings.batch_size or _BATCH_SIZE[devices.device],
        engine=settings.engine,
        compute_type=settings.compute_type,
    )


def check_compute_type(plan: Plan) -> None:
    """Raise InvalidSetting for a compute type that the device lacks.

    CTranslate2 is asked, in a process that ends with the question: this one must not touch CUDA.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from workers import runtime, whisper

    if plan.compute_type in ("auto", "default"):
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, runtime.initialise, (plan.devices.visible[0],)) as pool:
        supported = pool.submit(whisper.supported_compute_types, plan.devices.device).result()
    if plan.compute_type not in supported:
        raise InvalidSetting(
            f"WHISPER_COMPUTE_TYPE={plan.compute_type}: device {plan.devices.device} has "
            f"{', '.join(sorted(supported))}"
        )
