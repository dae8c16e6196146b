"""The Whisper workers: their dispatcher, the models that they hold, and whether they are ready."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import cast

import structlog

from app.common.concurrency import end_tasks
from app.common.errors import InvalidSetting, ModelUnavailable, NotReady, UnknownNode
from app.common.options import Options
from app.engines.catalogue import ModelCatalogue
from app.engines.cluster.cluster_fleet import ClusterFleet
from app.engines.cluster.ray_slot import RaySlots
from app.engines.gpu_usage import GpuMonitor
from app.engines.ledger import BatchLedger, jobs_of
from app.engines.model_files import DEMO, ModelFiles, find
from app.engines.plan import Plan, make_plan
from app.engines.slot import WhisperSlot
from app.media.pool import MediaPool
from app.pool.cluster.bridge import Bridge
from app.pool.cluster.node_places import NO_CLUSTER
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import SlotStatus
from app.recording.cluster_media import ClusterMedia
from app.recording.recording_work import WindowDispatcher
from app.settings import Settings

_MIN_JOBS_AT_ONCE = 8  # so a short job rarely waits for a long one to end
_LOOKUP_S = 8.0  # a request waits so long for the model to be found, before it gets an error
_RETRY_S = 60.0  # between attempts to get a model that was not available

log = structlog.get_logger(__name__)


class WhisperFleet:
    """All slots with their dispatcher, as they are planned for this machine or follow the nodes of a cluster.

    The workers start, and load their models, in the background.
    """

    def __init__(self, settings: Settings, plan: Plan, media: MediaPool) -> None:
        """`media` gets workers on the nodes of a cluster, with the engine `ray`."""
        self.catalogue = ModelCatalogue(
            plan.models[0], settings.model_idle_s, others=plan.models[1:], aliases=plan.aliases
        )
        self.gpus = GpuMonitor(plan.gpus)
        self.ledger = BatchLedger()
        self._settings = settings
        self._plan = plan
        self._planned_default = plan.models[0]  # another one may take its place
        self.dispatcher: WindowDispatcher | None = None  # once the default model is found
        self.cluster: ClusterFleet | None = None  # with the engine `ray`
        if plan.cluster is not None:
            self.cluster = ClusterFleet(Bridge(settings.ray_address, insecure=settings.ray_insecure))
            self._cluster_media = ClusterMedia(
                media, self.cluster.bridge, settings.ray_media_workers, self.cluster.is_draining
            )
        self._located = asyncio.Event()  # the default model was found, or it is known to be unavailable
        self._not_ready: str | None = "the service is starting"
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the workers, which load in the background."""
        if self.cluster is not None:
            await self.cluster.start()
        self._starting = asyncio.create_task(self._start_workers())

    async def stop_changes(self) -> None:
        """Add and remove no more workers."""
        await end_tasks(self._starting)
        if self.cluster is not None:
            await self.cluster.stop_serving()
            await self._cluster_media.stop()

    async def stop_workers(self) -> None:
        """End the workers."""
        if self.dispatcher is not None:
            await self.dispatcher.stop()

    async def disconnect(self) -> None:
        """Leave the cluster, once the media workers on it have ended too."""
        if self.cluster is not None:
            await self.cluster.stop()

    async def drain(self, timeout_s: float) -> None:
        """Send the workers no more batches, and wait for those in flight, `timeout_s` at most."""
        if self.dispatcher is not None:
            await self.dispatcher.drain(timeout_s)

    async def ready(self, model: str, options: Options) -> tuple[WindowDispatcher, str]:
        """The dispatcher, and the model for a request that names `model`; its files are here then.

        Raises NotReady, ModelUnavailable, and InvalidInput if the model cannot do what is asked for.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOKUP_S):
                await self._located.wait()
        if self.cluster is not None and self.cluster.fault is not None:
            raise NotReady(self.cluster.fault)
        if self.dispatcher is None:
            raise NotReady(self._not_ready or "the service is starting")
        if model in (self._planned_default, self._plan.models[0]):
            model = self.catalogue.default  # the demo model may have taken its place meanwhile
        await self.catalogue.locate(model, self._plan.load_options)
        self.catalogue.check(model, options.task, options.language)
        return self.dispatcher, model

    @property
    def jobs_at_once(self) -> int:
        """How many jobs keep all workers busy."""
        return max(_MIN_JOBS_AT_ONCE, 2 * max(self._plan.worker_count, len(self._slots)))

    @property
    def is_asleep(self) -> bool:
        """Whether no worker runs, and the next request starts one."""
        statuses = [slot.status for slot in self._slots]
        may_wake = any(status.state == "asleep" or status.waking for status in statuses)
        return may_wake and not any(status.is_serving for status in statuses)

    def readiness(self) -> str | None:
        """None once a worker is loaded, or if the next request starts one; else the reason."""
        if self.is_asleep or any(slot.status.is_serving for slot in self._slots):
            return None
        if self.cluster is not None and self.cluster.fault is not None:
            return self.cluster.fault
        if self._not_ready is not None:
            return self._not_ready
        slots = self._slots
        if not slots or any(slot.status.state != "failed" for slot in slots):
            return f"the model {self.catalogue.default!r} is being loaded"
        return f"no worker could load the model {self.catalogue.default!r}: {slots[0].status.error}"

    @property
    def _slots(self) -> list[WhisperSlot]:
        """Those that there are now, by number."""
        return cast(list[WhisperSlot], self.dispatcher.slots) if self.dispatcher is not None else []

    def workers(self) -> list[dict[str, object]]:
        """One row for each slot, as `GET /v1/workers` shows it."""
        return [slot.row() | self._current(slot.index) for slot in self._slots]

    def slot_statuses(self) -> dict[int, SlotStatus]:
        """The status of each slot, by its number; empty until the model is found."""
        return {slot.index: slot.status for slot in self._slots}

    def workers_by_node(self) -> Counter[tuple[str, str]]:
        """How many workers each node of the cluster has in each state, by its name."""
        return Counter(
            (slot.node_name, slot.status.state) for slot in self._slots if slot.node_name is not None
        )

    def nodes(self) -> list[dict[str, object]]:
        """One row for each node of the cluster, as `GET /v1/nodes` shows it; none with other engines."""
        if self.cluster is None:
            return []
        return [self.cluster.row(node, self.slot_statuses()) for node in self.cluster.nodes]

    def drain_node(self, name: str, *, undo: bool = False) -> dict[str, object]:
        """Let the workers of a node finish their batches and end, and give it no others. Returns its row.

        `undo`: let it have workers again. Raises UnknownNode, AmbiguousNode, and NotReady until the nodes are
        known.
        """
        if self.cluster is None:
            raise UnknownNode(NO_CLUSTER)
        node = self.cluster.find(name)
        (self.cluster.undrain if undo else self.cluster.drain)(node.node.id)
        return self.cluster.row(node, self.slot_statuses())

    def backlog(self) -> tuple[int, float]:
        """How many clips wait for a worker, and for how long the oldest has (s; 0 if none waits)."""
        return self.dispatcher.backlog() if self.dispatcher is not None else (0, 0.0)

    def _current(self, slot: int) -> dict[str, object]:
        """What a slot does now, and the latest figures of its GPU."""
        usage = self.gpus.usage(slot - self._plan.first_slot)
        batch = self.dispatcher.running(slot) if self.dispatcher is not None else None
        working: list[dict[str, object]] = []
        if batch is not None:
            since = {"since": round(batch.start, 3)}
            working = [entry | since for entry in jobs_of(Counter(task.job for task in batch.tasks))]
        return {"gpu": asdict(usage) if usage else None, "working": working}

    async def _start_workers(self) -> None:
        """Find the default model, however long that takes, and start the workers."""
        if self.cluster is not None and self._plan.cluster is not None:
            device = await self.cluster.usable_device(self._plan.cluster.device)
            try:
                self._plan = make_plan(self._settings, device)
            except InvalidSetting as error:  # they fit the models of GPUs, but not those of CPUs
                self._not_ready = error.message
                self._located.set()
                log.error("the settings do not fit the cluster", reason=error.message)
                return
            self.catalogue.default = self._plan.models[0]
        while (files := await self._find_default()) is None:
            self._located.set()
            await asyncio.sleep(_RETRY_S)
        self.catalogue.default = files.name
        self.catalogue.add(files.name, self._plan.load_options(files))
        settings = self._settings
        self.dispatcher = Dispatcher(
            "worker",
            self._plan.slots(self.catalogue) if self.cluster is None else [],
            self._plan.cost,
            retries_errors=True,
            sleep_after_s=None if settings.keep_default_model else settings.model_idle_s,
            waits_for_slots=self.cluster is not None,
            kind_of=lambda window: window.decoding.model,
            on_batch=self.ledger.add,
        )
        self.catalogue.is_loaded = lambda model: any(slot.holds(model) for slot in self._slots)
        self.dispatcher.start()
        if self.cluster is not None:
            slots = RaySlots(self.cluster.bridge, self.catalogue, self._plan)
            self.cluster.serve(self.dispatcher, slots)
            self._cluster_media.start(slots.reserved_cpus)
        self._not_ready = None
        self._located.set()

    async def _find_default(self) -> ModelFiles | None:
        name = self.catalogue.default
        if self._plan.simulation is not None:
            log.warning("workers are simulated: their transcripts are made up")
            return ModelFiles(name, Path())
        self._not_ready = f"the model {name!r} is being looked up or downloaded"
        try:
            return await find(name)
        except ModelUnavailable as error:
            self._not_ready = error.message
            # A model that was named is never replaced by another.
            if self._settings.model == "auto" and self._settings.demo_fallback:
                log.warning(
                    "falling back to the demo model, which understands synthetic speech only",
                    reason=error.message,
                )
                return await find(DEMO)
            log.error("model unavailable", reason=error.message)
        except Exception as error:  # nobody awaits this task: the reason is shown by /ready
            self._not_ready = f"the model {name!r} cannot be had: {error!r}"
            log.exception("model unavailable")
        return None
