"""From settings to slots: which engine, which devices, how large a batch."""

import importlib.util
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from app.common.errors import InvalidSetting
from app.engines.backend_choice import CTRANSLATE2, TORCH, resolve_backend
from app.engines.catalogue import ModelCatalogue, check_aliases, parse_aliases
from app.engines.devices import Devices, plan_cluster_devices, plan_devices, usable_cores
from app.engines.inline import InlineProcess
from app.engines.model_files import ModelFiles, abilities_of, model_name
from app.engines.nvml import list_gpus
from app.engines.simulated import SIMULATED, SimulatedWorker, Simulation, parse_simulation
from app.engines.slot import SlotLimits, WhisperSlot
from app.pool.batching import BatchCost
from app.pool.process import ChildProcess
from app.pool.tasks import WorkerProcess
from app.settings import Settings
from workers import runtime
from workers.messages import FULL_CONTEXT_S, LoadOptions

KERNEL_CACHE = "cuda-cache"  # in the data folder
_USUAL_MIN_CONTEXT_S = 10.0  # real models repeat themselves, or lose words, with less
_BATCH_SIZE = {"cuda": 8, "cpu": 4}
_TORCH_BATCH_SIZE = 16  # on a GPU
# On a CPU the encoder takes most of the time, for each clip anew. The beams of one clip keep a single thread
# busy, so batches save it nothing (measured with the demo model and with `small`).
_CPU_COST = BatchCost(fixed_ms=10, task_ms=350, size_ms=2)
_ONE_THREAD_COST = BatchCost(fixed_ms=5, task_ms=450, size_ms=0.1)
# A worker that computes on the CPU must not slow the server's answers. One that feeds a GPU takes a single
# core, and the GPU would wait for it.
_NICENESS = {"cuda": 0, "cpu": 10}
_FEWEST_MEDIA_WORKERS = 4
# One decodes and finds speech at 420 times real time, and a GPU transcribes at up to 400 times. The second
# one is for slower codecs and busy cores. It starts only if there is work for it.
_MEDIA_WORKERS_PER_GPU = {CTRANSLATE2: 2, TORCH: 8, SIMULATED: 2}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The settings applied to a Ray cluster, whatever nodes it has."""

    device: str  # "auto": GPUs if any node has some when the service starts, else CPUs
    gpus_per_worker: float
    workers_per_cpu_node: int | None  # None: as many as it has CPUs


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings applied to this machine, or to the cluster."""

    models: tuple[str, ...]  # those that requests may name, the default one first
    devices: Devices
    limits: SlotLimits
    engine: str
    compute_type: str
    safe_mode: bool
    backend: str = CTRANSLATE2  # that of all workers; SIMULATED if they have none
    aliases: Mapping[str, str] = field(default_factory=dict)  # what each means; "": the default model
    cost: BatchCost = BatchCost()  # noqa: RUF009 - frozen
    simulation: Simulation | None = None
    cluster: ClusterPlan | None = None
    short_context: bool = False  # whether the encoder sees less than 30 s with short windows
    kernel_cache: Path | None = None  # where the driver keeps code that it has compiled for a GPU
    first_slot: int = 0  # its number: several server processes number their slots together

    def load_options(self, files: ModelFiles) -> LoadOptions:
        """How a worker loads a model."""
        min_context_s: float = FULL_CONTEXT_S
        if self.short_context:
            min_context_s = abilities_of(files.name, files.path).min_context_s or _USUAL_MIN_CONTEXT_S
        return LoadOptions(
            model=files.name,
            path="" if self.simulation is not None else str(files.path),
            device=self.devices.device,
            compute_type=self.compute_type,
            cpu_threads=self.devices.cpu_threads,
            safe=self.safe_mode,
            min_context_s=min_context_s,
            backend=self.backend,
        )

    @property
    def worker_count(self) -> int:
        """How many slots the plan has; none on a cluster, whose nodes come and go."""
        return 1 if self.engine == "inline" else len(self.devices.visible)

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPU of each slot, as `CUDA_VISIBLE_DEVICES` names it; empty if they use none."""
        return self.devices.visible[: self.worker_count] if self.devices.device == "cuda" else ()

    @property
    def niceness(self) -> int:
        """That of each worker's process."""
        return _NICENESS.get(self.devices.device, 0)

    def slots(self, catalogue: ModelCatalogue) -> list[WhisperSlot]:
        """New slots on this machine, not started. Logs which GPUs have none."""
        for warning in self.devices.warnings:
            log.warning("a GPU is not used", reason=warning)
        if self.engine == "inline":
            limits = replace(self.limits, batch_timeout_s=math.inf)  # a thread cannot be ended
            return [WhisperSlot(0, catalogue, limits, InlineProcess(catalogue.options))]
        return [
            WhisperSlot(index, catalogue, self.limits, self._process(index, name))
            for index, name in enumerate(self.devices.visible, self.first_slot)
        ]

    def of_process(self, index: int, count: int) -> "Plan":
        """The slots that one of `count` server processes has. Raises InvalidSetting if some would have none.

        Their threads stay as many as they are: those of all slots together fill the cores.
        """
        if self.cluster is not None or count > self.worker_count:
            there = f"there are {self.worker_count} workers, and each process needs one"
            reason = "WHISPER_ENGINE=ray has one process" if self.cluster is not None else there
            raise InvalidSetting(f"WHISPER_PROCESSES={count}: {reason}; set a smaller number")
        slots = divided(self.worker_count, index, count)
        devices = replace(self.devices, visible=self.devices.visible[slots.start : slots.stop])
        return replace(self, devices=devices, first_slot=slots.start)

    def _process(self, index: int, visible: str) -> WorkerProcess:
        if self.simulation is not None:
            return SimulatedWorker(index, visible, self.simulation)
        cache = self.kernel_cache if self.devices.device == "cuda" else None
        return ChildProcess(runtime.initialise, visible, self.niceness, cache)


def divided(total: int, index: int, count: int) -> range:
    """Those of `total` that the process `index` of `count` gets: as many as the others, or one more."""
    return range(total * index // count, total * (index + 1) // count)


def make_plan(settings: Settings, cluster_device: str = "cuda") -> Plan:
    """Apply the settings to this machine. Raises InvalidSetting if they do not fit.

    `cluster_device`: that of workers on a cluster unless the settings name one; "cuda" until the nodes are
    known.

    Safe mode overrides WHISPER_BATCH_SIZE, and WHISPER_COMPUTE_TYPE overrides safe mode: the type that is
    named may be the only one that works on a device.
    """
    cluster, gpus = None, () if settings.engine == "ray" else list_gpus()
    if settings.engine == "ray":
        cluster, devices = _cluster_plan(settings), plan_cluster_devices(settings, cluster_device)
    else:
        devices = plan_devices(settings, os.environ, gpus, usable_cores())
    if devices.device == SIMULATED:
        return _simulated_plan(settings, devices, cluster)
    default = model_name("WHISPER_MODEL", settings.model, devices.device)
    others = [model_name("WHISPER_MODELS", name, devices.device) for name in settings.models]
    models = tuple(dict.fromkeys([default, *others]))
    aliases = parse_aliases(settings.model_aliases)
    check_aliases(aliases, models)
    on_gpus = devices.device == "cuda"
    backend = resolve_backend(settings, devices.device, gpus, here=cluster is None)
    batch_size = _TORCH_BATCH_SIZE if on_gpus and backend == TORCH else _BATCH_SIZE[devices.device]
    return Plan(
        models=models,
        aliases=aliases,
        devices=devices,
        limits=_limits(settings, batch_size, on_gpus=on_gpus),
        engine=settings.engine,
        compute_type=settings.compute_type,
        safe_mode=settings.safe_mode,
        backend=backend,
        cost=_cost(devices),
        cluster=cluster,
        short_context=settings.audio_context == "auto",
        kernel_cache=settings.data_dir / KERNEL_CACHE,
    )


def _cluster_plan(settings: Settings) -> ClusterPlan:
    if importlib.util.find_spec("ray") is None:
        raise InvalidSetting(
            "WHISPER_ENGINE=ray: Ray is not installed; run `make install EXTRAS=ray`, or "
            "`.venv/bin/python -m pip install --constraint constraints.txt ray`"
        )
    if settings.gpus not in ((), ("all",)):
        raise InvalidSetting(
            f"WHISPER_GPUS={','.join(settings.gpus)}: WHISPER_ENGINE=ray uses all GPUs of Ray; leave it "
            "out, and name those of a node in CUDA_VISIBLE_DEVICES when you run `ray start` there"
        )
    return ClusterPlan(
        device=SIMULATED if settings.simulated else settings.device,
        gpus_per_worker=settings.ray_gpus_per_worker,
        workers_per_cpu_node=settings.cpu_workers,
    )


def _cost(devices: Devices) -> BatchCost:
    if devices.device == "cuda":
        return BatchCost()
    return _ONE_THREAD_COST if devices.cpu_threads == 1 else _CPU_COST


def _simulated_plan(settings: Settings, devices: Devices, cluster: ClusterPlan | None) -> Plan:
    """A plan without model files: none is looked for, whatever the settings name."""
    simulation = parse_simulation(settings.simulated)
    return Plan(
        models=(SIMULATED,),
        aliases=dict.fromkeys(parse_aliases(settings.model_aliases), ""),
        devices=devices,
        limits=_limits(settings, simulation.batch, on_gpus=simulation.host_ms > 0),
        engine=settings.engine,
        compute_type=SIMULATED,
        safe_mode=settings.safe_mode,
        backend=SIMULATED,
        cost=simulation.cost,
        simulation=simulation,
        cluster=cluster,
    )


def _limits(settings: Settings, batch_size: int, *, on_gpus: bool) -> SlotLimits:
    """`batch_size` applies unless the settings say otherwise.

    A GPU does not wait for the way of an answer and of the next batch: the worker holds another one ready. On
    a CPU, that way is short beside a batch.
    """
    return SlotLimits(
        batch_size=1 if settings.safe_mode else settings.batch_size or batch_size,
        batch_timeout_s=settings.batch_timeout_s,
        one_model=settings.safe_mode,
        batches_at_once=2 if on_gpus and not settings.safe_mode and settings.engine != "inline" else 1,
    )


def media_workers(settings: Settings, plan: Plan, cores: int) -> int:
    """How many media workers there are, on so many cores. Pure.

    By default two for each Whisper worker on a GPU, four at least, but only as many as there are cores beside
    one for each of these Whisper workers. Those on the CPU have no cores of their own. Workers on a cluster
    leave all cores of this machine to media workers.
    """
    if settings.media_workers is not None:
        return settings.media_workers
    if plan.cluster is not None:
        return max(1, cores)
    device, workers = plan.devices.device, plan.worker_count
    wanted = 0 if device == "cpu" else _MEDIA_WORKERS_PER_GPU[plan.backend] * workers
    taken = workers if device == "cuda" else 0  # simulated workers have no processes
    return max(1, min(max(wanted, _FEWEST_MEDIA_WORKERS), cores - taken))


def check_compute_type(plan: Plan) -> None:
    """Raise InvalidSetting if one of the chosen devices lacks the compute type.

    Torch has its types on all devices. CTranslate2 is asked on each one in a short-lived process, as this
    process must not touch CUDA. A device that does not answer passes: its worker shows the reason, and the
    other workers start.
    """
    asks = plan.backend == CTRANSLATE2 and plan.cluster is None
    if not asks or plan.compute_type in ("auto", "default"):
        return
    device = plan.devices.device
    distinct = tuple(dict.fromkeys(plan.devices.visible)) if device == "cuda" else ("",)
    lacking = [
        f"device {f'{device} {name}' if name else device} has {', '.join(sorted(types))}"
        for name, types in _compute_types(device, distinct)
        if plan.compute_type not in types
    ]
    if lacking:
        remedy = "choose one of these types" if len(distinct) == 1 else "choose a type that all devices have"
        others = ", or name the other devices in WHISPER_GPUS" if len(lacking) < len(distinct) else ""
        raise InvalidSetting(
            f"WHISPER_COMPUTE_TYPE={plan.compute_type}: {'; '.join(lacking)}: {remedy}{others}"
        )


def _compute_types(device: str, visible: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """Each entry of `visible` with the compute types of that device; all are asked at the same time."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from contextlib import ExitStack, suppress

    from workers.whisper import worker as whisper

    spawn = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        answers = []
        for name in visible:
            pool = stack.enter_context(ProcessPoolExecutor(1, spawn, runtime.initialise, (name,)))
            answers.append(pool.submit(whisper.supported_compute_types, device))
        for name, answer in zip(visible, answers, strict=True):
            with suppress(Exception):
                yield name, answer.result()
