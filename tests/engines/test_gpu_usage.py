"""The figures of the GPUs: which slot gets which, and what an NVML that fails or hangs does."""

import asyncio
import sys
import threading
import time
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from app.engines.gpu_usage import GpuMonitor, GpuSample, GpuSamples, read_usage
from app.engines.plan import make_plan
from app.settings import load_settings
from app.telemetry import sampler
from tests.event_loop import until
from tests.fake_nvml import FakeGpu, FakeNvml, mig_gpu, whole_gpu

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

A = GpuSample(1_000, 80_000, 0.25)
B = GpuSample(2_000, 80_000, 1.0)
INSTANCE = GpuSample(300, 10_000, None)
FIGURES = {
    "GPU-aa11": (1_000, 80_000, 25),
    "GPU-ab22": (2_000, 80_000, 100),
    "MIG-1": (300, 10_000, None),
    "MIG-2": (400, 10_000, None),
}


def nvml(monkeypatch: pytest.MonkeyPatch, *gpus: FakeGpu, error: str = "") -> FakeNvml:
    fake = FakeNvml(*gpus, error=error, figures=FIGURES)
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["0", "1"], [A, B]),
        (["1", "1", "0"], [B, B, A]),
        (["GPU-ab22", "GPU-aa"], [B, A]),  # CUDA takes the beginning of a UUID
        (["GPU-a"], [None]),  # two begin with that
        (["2", "GPU-cc", "MIG-7"], [None, None, None]),
    ],
)
def test_each_slot_gets_the_figures_of_the_gpu_that_it_is_pinned_to(
    monkeypatch: pytest.MonkeyPatch, names: Sequence[str], expected: Sequence[GpuSample | None]
) -> None:
    fake = nvml(monkeypatch, whole_gpu("GPU-aa11"), whole_gpu("GPU-ab22"))
    assert read_usage(names) == expected
    assert fake.open == 0


def test_mig_instances_have_figures_of_their_own_but_no_utilisation(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml(monkeypatch, mig_gpu("GPU-aa11", "MIG-1", "MIG-2"), whole_gpu("GPU-ab22"))
    assert read_usage(["MIG-1", "GPU-ab22"]) == [INSTANCE, B]


def test_a_gpu_without_figures_or_one_that_is_lost_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = nvml(monkeypatch, FakeGpu("GPU-x", lost=True), whole_gpu("GPU-y"), whole_gpu("GPU-ab22"))
    assert read_usage(["0", "1", "2"]) == [None, None, B]
    assert fake.open == 0


def test_slots_are_mapped_as_they_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    nvml(monkeypatch, mig_gpu("GPU-aa11", "MIG-1", "MIG-2"), whole_gpu("GPU-ab22"))
    plan = make_plan(load_settings(model="demo", device="cuda"))
    assert plan.gpus == ("MIG-1", "MIG-2", "GPU-ab22")
    assert make_plan(load_settings(model="demo", device="cuda", engine="inline")).gpus == ("MIG-1",)
    assert make_plan(load_settings(model="demo", device="cpu")).gpus == ()
    assert make_plan(load_settings(engine="simulated", gpus="0,1")).gpus == ()


class Reader:
    """Stands for NVML."""

    def __init__(self) -> None:
        self.calls = 0
        self.threads: set[int] = set()
        self.error: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()

    def __call__(self, names: Sequence[str]) -> GpuSamples:
        self.calls += 1
        self.threads.add(threading.get_ident())
        assert self.answers.wait(10)
        if self.error is not None:
            raise self.error
        return [A for _ in names]


async def test_figures_are_sampled_in_a_thread_and_not_too_often() -> None:
    reader = Reader()
    monitor = GpuMonitor(["0"], reader)
    assert monitor.usage(0) is None
    for _ in range(3):
        await monitor.sample()
    assert (monitor.usage(0), reader.calls) == (A, 1)
    assert threading.get_ident() not in reader.threads


async def test_figures_get_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = GpuMonitor(["0"], Reader())
    await monitor.sample()
    monkeypatch.setattr(sampler, "_STALE_S", 0.0)
    assert monitor.usage(0) is None


async def test_without_gpus_nothing_is_asked() -> None:
    reader = Reader()
    monitor = GpuMonitor([], reader)
    await monitor.sample()
    assert (monitor.usage(0), reader.calls) == (None, 0)


async def test_a_failing_nvml_gives_no_figures_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_INTERVAL_S", 0.0)
    reader = Reader()
    monitor = GpuMonitor(["0"], reader)
    with capture_logs() as logs:
        for error in (None, RuntimeError("lost"), RuntimeError("lost"), None, RuntimeError("again")):
            reader.error = error
            await monitor.sample()
            assert monitor.usage(0) == (A if error is None else None)
    assert [entry["reason"] for entry in logs] == ["NVML: lost", "NVML: again"]


async def test_a_hanging_nvml_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_INTERVAL_S", 0.0)
    reader = Reader()
    monitor = GpuMonitor(["0"], reader)
    await monitor.sample()
    monkeypatch.setattr(sampler, "_PATIENCE_S", 0.05)
    reader.answers.clear()
    try:
        await monitor.sample()
        await until(lambda: reader.calls >= 2)
        monkeypatch.setattr(sampler, "_STALE_S", 0.0)
        with capture_logs() as logs:
            for _ in range(5):
                monitor.refresh()
                await asyncio.wait_for(monitor.sample(), 8)
        assert (monitor.usage(0), reader.calls) == (None, 2), "one thread waits, not five"
        assert [entry["reason"] for entry in logs] == ["NVML does not answer"]
    finally:
        reader.answers.set()
    monkeypatch.setattr(sampler, "_STALE_S", 10.0)
    deadline = time.monotonic() + 5
    while monitor.usage(0) is None and time.monotonic() < deadline:
        await monitor.sample()
    assert monitor.usage(0) == A


def test_a_hanging_nvml_does_not_keep_the_process_from_ending() -> None:
    async def ask() -> None:
        hanging = threading.Event()
        monitor = GpuMonitor(["0"], lambda names: [None] if hanging.wait() else [])
        monitor.refresh()

    before = set(threading.enumerate())
    asyncio.run(ask())
    [thread] = [thread for thread in threading.enumerate() if thread.name == "NVML" and thread not in before]
    assert thread.daemon
