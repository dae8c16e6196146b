"""Which worker gets which device."""

import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.common.errors import InvalidSetting
from app.engines.devices import Devices, plan_devices, visible_entries
from app.engines.nvml import NvidiaDriver, PresentGpu, query_nvml
from app.settings import Settings, load_settings
from tests.fake_nvml import FakeGpu, FakeNvml, mig_gpu, whole_gpu

DIVIDED = PresentGpu("GPU-a", ("MIG-1", "MIG-2"))
EMPTY = PresentGpu("GPU-b", ())
WHOLE = PresentGpu("GPU-c")


def settings(**given: object) -> Settings:
    return load_settings(**given)


def gpus(count: int) -> list[PresentGpu]:
    return [PresentGpu(f"GPU-{index}") for index in range(count)]


def visible(present: int, environ: dict[str, str] | None = None, **given: object) -> tuple[str, ...]:
    return plan_devices(settings(**given), environ or {}, gpus(present), 8).visible


def with_mig(present: Sequence[PresentGpu], given: str | None = None, **settings: object) -> Devices:
    environ = {} if given is None else {"CUDA_VISIBLE_DEVICES": given}
    return plan_devices(load_settings(**settings), environ, present, 8)


def test_every_gpu_gets_a_worker() -> None:
    devices = plan_devices(settings(), {}, gpus(4), 8)
    assert (devices.device, devices.visible) == ("cuda", ("0", "1", "2", "3"))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("all", ("0", "1", "2", "3")),
        ("1,3", ("1", "3")),
        ("0,0,2", ("0", "0", "2")),
        ("GPU-5f3a, MIG-77", ("GPU-5f3a", "MIG-77")),
    ],
)
def test_gpus_may_be_chosen(wanted: str, expected: tuple[str, ...]) -> None:
    assert visible(4, gpus=wanted) == expected


@pytest.mark.parametrize("wanted", ["all", "0", "0,1", "GPU-0"])
def test_the_inline_engine_uses_the_first_gpu(wanted: str) -> None:
    assert visible(2, gpus=wanted, engine="inline")[0] in ("0", "GPU-0")


@pytest.mark.parametrize("wanted", ["1", "1,0", "GPU-1"])
def test_the_inline_engine_can_use_no_other_gpu(wanted: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"CUDA_VISIBLE_DEVICES={wanted.partition(',')[0]} instead"):
        visible(2, gpus=wanted, engine="inline")
    assert visible(2, {"CUDA_VISIBLE_DEVICES": "1"}, engine="inline") == ("1",)


def test_the_inline_engine_uses_the_first_instance_of_a_divided_gpu() -> None:
    assert with_mig([DIVIDED, WHOLE], gpus="MIG-1", engine="inline").visible == ("MIG-1",)
    assert with_mig([EMPTY, WHOLE], gpus="1", engine="inline").visible == ("GPU-c",)
    with pytest.raises(InvalidSetting, match="MIG-2"):
        with_mig([DIVIDED, WHOLE], gpus="MIG-2", engine="inline")


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ("2,3", "all", ("2", "3")),
        ("2,3", "1", ("3",)),
        ("1, GPU-3", "all", ("1", "GPU-3")),
        ("1,-1,2", "all", ("1",)),
        ("0,,1", "all", ("0",)),
    ],
)
def test_cuda_visible_devices_is_honoured(given: str, wanted: str, expected: tuple[str, ...]) -> None:
    assert visible(4, {"CUDA_VISIBLE_DEVICES": given}, gpus=wanted) == expected


@pytest.mark.parametrize("given", ["", "-1", "NoDevFiles", "-1,0"])
def test_without_a_visible_gpu_workers_use_the_cpu(given: str) -> None:
    devices = plan_devices(settings(), {"CUDA_VISIBLE_DEVICES": given}, gpus(4), 8)
    assert (devices.device, devices.warnings) == ("cpu", ()), "as it was meant"
    assert plan_devices(settings(), {"CUDA_VISIBLE_DEVICES": given}, (), 8).device == "cpu"


TWINS = [PresentGpu("GPU-5f3a-1"), PresentGpu("GPU-5f3b-2"), DIVIDED]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0,9,1", ["0"]),
        ("0,GPU-9,1", ["0"]),
        ("0,abc", ["0"]),
        ("GPU-5f3a,1", ["GPU-5f3a", "1"]),
        ("0,GPU-5f3,1", ["0"]),  # two GPUs begin so
        ("1,0,1", []),
        ("0,GPU-5f3a", []),
        ("MIG-2,MIG-1", ["MIG-2", "MIG-1"]),
        ("MIG-GPU-a/1/0,MIG-GPU-a/2/0", ["MIG-GPU-a/1/0", "MIG-GPU-a/2/0"]),
        ("MIG-GPU-b/1/0", []),
        ("MIG-1,MIG-1", []),
    ],
)
def test_cuda_ends_its_list_at_the_first_invalid_entry(given: str, expected: list[str]) -> None:
    entries, ignored = visible_entries({"CUDA_VISIBLE_DEVICES": given}, TWINS)
    assert entries == expected
    assert len(ignored) == (len(entries) < given.count(",") + 1)


def test_entries_that_cuda_ignores_are_reported() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "0,9,1"}
    devices = plan_devices(settings(), environ, gpus(2), 8)
    assert devices.visible == ("0",)
    assert devices.warnings == (
        "CUDA_VISIBLE_DEVICES=0,9,1: CUDA finds no GPU 9, and ignores what follows it",
    )
    environ = {"CUDA_VISIBLE_DEVICES": "0,0"}
    assert plan_devices(settings(), environ, gpus(2), 8).device == "cpu"
    with pytest.raises(InvalidSetting, match=r"WHISPER_DEVICE=cuda, but .*0,0: 0 names a GPU again"):
        plan_devices(settings(device="cuda"), environ, gpus(2), 8)


def test_a_gpu_that_nvml_does_not_know_may_have_any_name() -> None:
    """It has failed, perhaps, and its worker shows the reason."""
    environ = {"CUDA_VISIBLE_DEVICES": "GPU-0,GPU-7"}
    assert plan_devices(settings(), environ, [PresentGpu("GPU-0"), PresentGpu()], 8).visible == (
        "GPU-0",
        "GPU-7",
    )


def test_cpu_workers_share_the_cores() -> None:
    devices = plan_devices(settings(device="cpu"), {}, gpus(4), 8)
    assert (devices.visible, devices.cpu_threads) == (("0", "1"), 4)
    for cores, threads in ((2, 1), (4, 2), (7, 3)):  # at least two workers
        devices = plan_devices(settings(device="cpu"), {}, (), cores)
        assert (devices.visible, devices.cpu_threads) == (("0", "1"), threads)
    devices = plan_devices(settings(device="cpu", cpu_workers=3, cpu_threads=1), {}, (), 2)
    assert (devices.visible, devices.cpu_threads) == (("0", "1", "2"), 1)
    devices = plan_devices(settings(device="cpu"), {}, (), 1)
    assert (devices.visible, devices.cpu_threads) == (("0",), 1)


@pytest.mark.parametrize(("present", "cores", "threads"), [(1, 16, 8), (2, 12, 6), (8, 16, 4), (1, 2, 4)])
def test_workers_on_gpus_share_the_cores_up_to_what_helps(present: int, cores: int, threads: int) -> None:
    assert plan_devices(settings(), {}, gpus(present), cores).cpu_threads == threads
    assert plan_devices(settings(gpus="0"), {}, gpus(present), cores).cpu_threads == min(8, max(4, cores))
    assert plan_devices(settings(cpu_threads=3), {}, gpus(present), cores).cpu_threads == 3


def test_on_a_cpu_each_entry_of_gpus_is_a_worker_pinned_as_on_a_gpu() -> None:
    assert visible(0, device="cpu", gpus="0,0,GPU-x", cpu_workers=9) == ("0", "0", "GPU-x")


def test_a_missing_gpu_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"WHISPER_GPUS=0,7: there is no GPU 7; found 4"):
        visible(4, gpus="0,7")
    with pytest.raises(InvalidSetting, match="WHISPER_DEVICE=cuda"):
        visible(0, device="cuda")
    with pytest.raises(InvalidSetting, match="CUDA_VISIBLE_DEVICES leaves visible"):
        visible(4, {"CUDA_VISIBLE_DEVICES": ""}, device="cuda")


def test_each_mig_instance_gets_a_worker() -> None:
    devices = with_mig([DIVIDED, WHOLE])
    assert (devices.device, devices.visible) == ("cuda", ("MIG-1", "MIG-2", "GPU-c"))
    assert devices.warnings == ()


def test_a_gpu_with_mig_and_no_instances_is_left_out_with_a_warning() -> None:
    devices = with_mig([EMPTY, DIVIDED])
    assert devices.visible == ("MIG-1", "MIG-2")
    [warning] = devices.warnings
    assert warning.startswith("GPU 0 has MIG enabled but no instances: create some")


def test_without_any_usable_gpu_the_cpu_is_used_or_the_start_refused() -> None:
    devices = with_mig([EMPTY])
    assert devices.device == "cpu"
    assert "no instances" in devices.warnings[0]
    assert with_mig([EMPTY], device="cpu").warnings == ()
    with pytest.raises(
        InvalidSetting, match=r"WHISPER_DEVICE=cuda, but GPU 0 has MIG enabled .* create some"
    ):
        with_mig([EMPTY], device="cuda")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("0", ("MIG-1", "MIG-2")),
        ("1", ("GPU-c",)),  # the GPU that nvidia-smi numbers so, not the second entry of the list
        ("1,0", ("GPU-c", "MIG-1", "MIG-2")),
        ("1,1", ("GPU-c", "GPU-c")),
        ("GPU-a", ("MIG-1", "MIG-2")),
        ("MIG-2", ("MIG-2",)),
        ("MIG-2,MIG-2,GPU-c", ("MIG-2", "MIG-2", "GPU-c")),
    ],
)
def test_an_index_counts_gpus_and_not_instances(wanted: str, expected: tuple[str, ...]) -> None:
    assert with_mig([DIVIDED, WHOLE], gpus=wanted).visible == expected


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ("1", "all", ("GPU-c",)),
        ("1,0", "all", ("GPU-c", "MIG-1", "MIG-2")),
        ("1,0", "0", ("GPU-c",)),
        ("1,0", "1", ("MIG-1", "MIG-2")),
        ("MIG-2", "all", ("MIG-2",)),
        ("MIG-2,GPU-c", "1", ("GPU-c",)),
    ],
)
def test_cuda_visible_devices_limits_the_gpus_with_mig_too(
    given: str, wanted: str, expected: tuple[str, ...]
) -> None:
    assert with_mig([DIVIDED, WHOLE], given, gpus=wanted).visible == expected


def test_a_gpu_without_instances_that_is_named_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="WHISPER_GPUS=1: GPU 1 has MIG enabled but no instances"):
        with_mig([DIVIDED, EMPTY], gpus="1", device="cuda")
    assert with_mig([DIVIDED, EMPTY], gpus="0").warnings == ()


def test_nvml_lists_gpus_and_their_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(
        mig_gpu("GPU-a", "MIG-1", "MIG-2"), mig_gpu("GPU-b"), whole_gpu("GPU-c"), FakeGpu("", lost=True)
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    known = [replace(gpu, capability=(8, 0), name="NVIDIA A100") for gpu in (DIVIDED, EMPTY, WHOLE)]
    assert query_nvml() == NvidiaDriver("570.124.06", (*known, PresentGpu()), "GPU is lost")
    nvml.error = "Unknown Error"
    assert query_nvml() == NvidiaDriver(error="Unknown Error")
    assert nvml.open == 0
