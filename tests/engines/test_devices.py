"""Which worker gets which device."""

import pytest

from app.engines.devices import plan_devices
from app.errors import InvalidSetting
from app.settings import Settings, load_settings


def settings(**given: object) -> Settings:
    return load_settings(**given)


def visible(present: int, environ: dict[str, str] | None = None, **given: object) -> tuple[str, ...]:
    return plan_devices(settings(**given), environ or {}, present, 8).visible


def test_every_gpu_gets_a_worker() -> None:
    devices = plan_devices(settings(), {}, 4, 8)
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


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ("2,3", "all", ("2", "3")),
        ("2,3", "1", ("3",)),
        ("GPU-5f3a,MIG-77", "all", ("GPU-5f3a", "MIG-77")),
        ("1,-1,2", "all", ("1",)),
    ],
)
def test_cuda_visible_devices_is_honoured(given: str, wanted: str, expected: tuple[str, ...]) -> None:
    assert visible(4, {"CUDA_VISIBLE_DEVICES": given}, gpus=wanted) == expected


@pytest.mark.parametrize("given", ["", "-1", "NoDevFiles"])
def test_without_a_visible_gpu_workers_use_the_cpu(given: str) -> None:
    gpus = 0 if given == "NoDevFiles" else 4
    assert plan_devices(settings(), {"CUDA_VISIBLE_DEVICES": given}, gpus, 8).device == "cpu"


def test_cpu_workers_share_the_cores() -> None:
    devices = plan_devices(settings(device="cpu"), {}, 4, 8)
    assert (devices.visible, devices.cpu_threads) == (("0", "1"), 4)
    for cores, threads in ((2, 1), (4, 2), (7, 3)):  # at least two workers
        devices = plan_devices(settings(device="cpu"), {}, 0, cores)
        assert (devices.visible, devices.cpu_threads) == (("0", "1"), threads)
    devices = plan_devices(settings(device="cpu", cpu_workers=3, cpu_threads=1), {}, 0, 2)
    assert (devices.visible, devices.cpu_threads) == (("0", "1", "2"), 1)
    devices = plan_devices(settings(device="cpu"), {}, 0, 1)
    assert (devices.visible, devices.cpu_threads) == (("0",), 1)


def test_on_a_cpu_each_entry_of_gpus_is_a_worker_pinned_as_on_a_gpu() -> None:
    assert visible(0, device="cpu", gpus="0,0,GPU-x", cpu_workers=9) == ("0", "0", "GPU-x")


def test_a_missing_gpu_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"WHISPER_GPUS=0,7: there is no GPU 7; found 4"):
        visible(4, gpus="0,7")
    with pytest.raises(InvalidSetting, match="WHISPER_DEVICE=cuda"):
        visible(0, device="cuda")
    with pytest.raises(InvalidSetting, match="CUDA_VISIBLE_DEVICES leaves visible"):
        visible(4, {"CUDA_VISIBLE_DEVICES": ""}, device="cuda")
