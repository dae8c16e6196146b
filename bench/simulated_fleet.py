"""A fleet of simulated workers on a virtual clock, and one job on it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.engines.catalogue import ModelCatalogue
from app.engines.ledger import BatchLedger
from app.engines.simulated import SIMULATED, SimulatedWorker, Simulation, simulated_result
from app.engines.slot import SlotLimits, WhisperSlot
from app.engines.window_request import WindowRequest, expected_tokens
from app.pool.dispatcher import Dispatcher
from app.pool.tasks import Batch, Outcome, Slot
from app.recording.clip_decoding import ClipRequest, decode_clip
from app.recording.clip_planner import PlannedClip
from app.recording.recording_work import WindowDispatcher
from app.transcript.timeline import ClipResult
from bench import virtual_clock
from workers.messages import BYTES_PER_SAMPLE, SAMPLE_RATE, DecodingOptions, LoadOptions, WindowResult

DECODING = DecodingOptions(SIMULATED, language="en")


@dataclass(frozen=True)
class Run:
    """One job on a fleet. Times in s."""

    slots: int
    batch: int  # most windows in one
    makespan: float  # from the submission of all clips to the last result
    cpu_s: float  # of this process, including the simulated workers
    device_s: float  # in which devices decoded, all slots together
    windows: int
    batches: int

    @property
    def busy(self) -> float:
        """The part of the time in which devices decode, 0 to 1."""
        return self.device_s / (self.slots * self.makespan)

    @property
    def rows_in_use(self) -> float:
        """Windows in a batch, as a part of those that it may have, 0 to 1."""
        return self.windows / (self.batches * self.batch)

    @property
    def own_ms(self) -> float:
        """CPU time for each window."""
        return self.cpu_s * 1000 / self.windows


class SimulatedSlot(WhisperSlot):
    """A slot whose worker is known to be simulated."""

    def __init__(
        self, index: int, catalogue: ModelCatalogue, limits: SlotLimits, worker: SimulatedWorker
    ) -> None:
        super().__init__(index, catalogue, limits, worker)
        self.worker = worker


OnBatch = Callable[[Slot[WindowRequest, WindowResult], Batch[WindowRequest, WindowResult], Outcome], None]


def make_fleet(
    slots: int,
    simulation: Simulation,
    worker: type[SimulatedWorker] = SimulatedWorker,
    on_batch: OnBatch | None = None,
) -> WindowDispatcher:
    """A dispatcher with simulated workers, not started. Call this in the event loop that runs it."""
    workers = _make_slots(slots, simulation, worker)
    on_batch = on_batch or BatchLedger().add
    return Dispatcher[WindowRequest, WindowResult]("worker", workers, simulation.cost, on_batch=on_batch)


def _make_slots(
    slots: int, simulation: Simulation, worker: type[SimulatedWorker] = SimulatedWorker
) -> list[SimulatedSlot]:
    options = LoadOptions(SIMULATED, "", SIMULATED, SIMULATED, 1)
    catalogue = ModelCatalogue(SIMULATED, idle_s=600, options={SIMULATED: options})
    limits = SlotLimits(simulation.batch, batches_at_once=2 if simulation.host_ms > 0 else 1)
    return [
        SimulatedSlot(index, catalogue, limits, worker(index, str(index), simulation))
        for index in range(slots)
    ]


def numbered(window: WindowRequest) -> WindowRequest:
    """A window with a second of audio that says where it begins: simulated workers need no more."""
    number = window.start.to_bytes(2 * BYTES_PER_SAMPLE, "little")  # of two samples
    return replace(window, pcm=number * (min(window.samples, SAMPLE_RATE) // 2))


async def transcribe(fleet: WindowDispatcher, job: str, clip: PlannedClip) -> ClipResult:
    """Transcribe a clip as the pipeline does."""
    windows = decode_clip(_request(clip))
    window = next(windows)
    while True:
        done = await fleet.submit(
            job,
            numbered(window),
            key=window.batch_key,
            size=expected_tokens(window.speech),
            continues=window.continues,
        )
        try:
            window = windows.send(done.result)
        except StopIteration as ended:
            return ended.value


def tokens_of(clip: PlannedClip, simulation: Simulation) -> list[float]:
    """The tokens of the windows that a clip turns out to need, in order. They depend on nothing else."""
    windows = decode_clip(_request(clip))
    window = next(windows)
    tokens = []
    while True:
        tokens.append(expected_tokens(window.speech))
        try:
            window = windows.send(simulated_result(numbered(window).for_worker(), simulation))
        except StopIteration:
            return tokens


def run_job(clips: Sequence[PlannedClip], slots: int, simulation: Simulation) -> Run:
    """Submit all clips of a job at once to an idle fleet, and wait for the last result."""

    async def work() -> Run:
        workers = _make_slots(slots, simulation)
        fleet = Dispatcher[WindowRequest, WindowResult]("worker", workers, simulation.cost)
        fleet.start()
        await asyncio.sleep(1)
        start, began = asyncio.get_running_loop().time(), time.process_time()
        await asyncio.gather(*(transcribe(fleet, "job", clip) for clip in clips))
        makespan, cpu_s = asyncio.get_running_loop().time() - start, time.process_time() - began
        await fleet.stop()
        return Run(
            slots,
            simulation.batch,
            makespan,
            cpu_s,
            sum(slot.worker.device_s for slot in workers),
            sum(slot.worker.windows for slot in workers),
            sum(worker.status.batches for worker in workers),
        )

    return virtual_clock.run(work())


def _request(clip: PlannedClip) -> ClipRequest:
    return ClipRequest(Path(), clip.start, clip.end, clip.speech, DECODING)
