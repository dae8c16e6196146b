"""From settings to a plan."""

import sys
from concurrent.futures import Future
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.common.errors import InvalidSetting
from app.common.known_errors import diagnose
from app.engines.model_files import ModelFiles
from app.engines.nvml import PresentGpu
from app.engines.plan import Plan, check_compute_type, make_plan, media_workers
from app.settings import load_settings
from tests.engines.fake_slot import new_catalogue
from workers.messages import LoadOptions


def plan(
    monkeypatch: pytest.MonkeyPatch,
    *,
    gpus: int = 0,
    capability: tuple[int, int] = (9, 0),
    gpus_setting: str = "all",
    **given: object,
) -> Plan:
    monkeypatch.setattr("app.engines.plan.list_gpus", lambda: [PresentGpu(capability=capability)] * gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return make_plan(load_settings(model="demo", gpus=gpus_setting, **given))


def options(plan: Plan) -> LoadOptions:
    return plan.load_options(ModelFiles("demo", Path("/demo")))


def test_batches_are_larger_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(monkeypatch).limits.batch_size == 4
    assert plan(monkeypatch, gpus=1).limits.batch_size == 8
    assert plan(monkeypatch, batch_size=3).limits.batch_size == 3
    assert plan(monkeypatch, batch_timeout_s=9).limits.batch_timeout_s == 9


@pytest.mark.parametrize("gpus", [0, 1])
def test_safe_mode_has_batches_of_one_clip_and_a_compute_type_that_fits(
    monkeypatch: pytest.MonkeyPatch, gpus: int
) -> None:
    safe = plan(monkeypatch, gpus=gpus, safe_mode=True, batch_size=8)
    assert (safe.limits.batch_size, safe.limits.one_model) == (1, True)
    assert (options(safe).compute_type, options(safe).safe) == ("auto", True)
    named = plan(monkeypatch, gpus=gpus, safe_mode=True, compute_type="float32")
    assert options(named).compute_type == "float32"
    assert not options(plan(monkeypatch, gpus=gpus)).safe


def test_the_backend_is_resolved_once_and_models_are_loaded_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options(plan(monkeypatch, gpus=1)).backend == "ctranslate2"
    assert options(plan(monkeypatch, backend="ctranslate2", safe_mode=True)).backend == "ctranslate2"
    for compute_type in ("auto", "float32"):
        torch = plan(monkeypatch, backend="Torch", compute_type=compute_type)
        assert options(torch).backend == "torch"
        check_compute_type(torch)
    simulated = plan(monkeypatch, backend="torch", engine="simulated", safe_mode=True)
    assert options(simulated).backend == "simulated"


def with_torch(monkeypatch: pytest.MonkeyPatch, folder: Path, version_py: str) -> None:
    """An installed torch that fails if it is imported."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise AssertionError")
    (folder / "torch" / "version.py").write_text(version_py)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(str(folder))


def test_on_a_gpu_torch_must_be_built_for_cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_torch(monkeypatch, tmp_path, "cuda: Optional[str] = None\nhip = '6.4'\n")
    with pytest.raises(InvalidSetting, match=r"is built for CPUs alone; .*TORCH_INDEX="):
        plan(monkeypatch, gpus=1, backend="torch")
    assert plan(monkeypatch, gpus=0, backend="torch").backend == "torch"
    assert plan(monkeypatch, gpus=1, engine="ray", backend="torch").backend == "torch"  # nodes are asked
    (tmp_path / "torch" / "version.py").write_text("cuda: Optional[str] = '12.6'\n")
    assert plan(monkeypatch, gpus=1, backend="torch", compute_type="float16").backend == "torch"


def test_auto_is_torch_on_gpus_for_which_it_is_proven(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_torch(monkeypatch, tmp_path, "cuda: Optional[str] = '13.0'\n")
    assert plan(monkeypatch, gpus=1, capability=(10, 0)).backend == "ctranslate2", "nothing by analogy"
    proven = plan(monkeypatch, gpus=2)
    assert (proven.backend, proven.limits.batch_size) == ("torch", 16)
    assert media_workers(load_settings(), proven, 64) == 16
    for given in (
        {"safe_mode": True},
        {"compute_type": "int8_float16"},
        {"engine": "ray"},
        {"device": "cpu"},
    ):
        assert plan(monkeypatch, gpus=1, **given).backend == "ctranslate2"
    assert plan(monkeypatch, gpus=1, backend="ctranslate2").limits.batch_size == 8
    (tmp_path / "torch" / "version.py").write_text("cuda: Optional[str] = None\n")
    assert plan(monkeypatch, gpus=1).backend == "ctranslate2"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"safe_mode": True}, "WHISPER_SAFE_MODE=true: .* leave one of the two out"),
        ({"compute_type": "float16"}, "device cpu has auto, float32; choose one of them, or leave WHISPER_B"),
        ({"compute_type": "int8_float16", "gpus": 1}, "device cuda has auto, float16, float32; choose one"),
    ],
)
def test_torch_lacks_some_types(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        plan(monkeypatch, backend="torch", **given)


def test_torch_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match=r"torch is not installed; .*`make install`"):
        plan(monkeypatch, backend="torch")


@pytest.mark.parametrize("safe_mode", [False, True])
def test_windows_have_a_short_audio_context_only_if_the_settings_say_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, safe_mode: bool
) -> None:
    (tmp_path / "generation_config.json").write_text('{"min_audio_context_s": 7}')
    files = ModelFiles("demo", tmp_path)
    usual = plan(monkeypatch, safe_mode=safe_mode)
    full = plan(monkeypatch, safe_mode=safe_mode, audio_context="full")
    auto = plan(monkeypatch, safe_mode=safe_mode, audio_context="auto")
    assert [each.load_options(files).min_context_s for each in (usual, full, auto)] == [30, 30, 7]
    assert options(auto).min_context_s == 10  # no such folder


def test_a_plan_has_the_aliases_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = (
        *("gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize"),
        *("gpt-transcribe", "gpt-live-transcribe", "gpt-realtime-whisper"),
    )
    assert plan(monkeypatch).aliases == dict.fromkeys(usual, "")
    assert plan(monkeypatch, model_aliases="").aliases == {}
    assert plan(monkeypatch, models="tiny", model_aliases="a,b=tiny").aliases == {"a": "", "b": "tiny"}
    with pytest.raises(InvalidSetting, match="WHISPER_MODEL_ALIASES=b=tiny: the model 'tiny' is not offered"):
        plan(monkeypatch, model_aliases="b=tiny")
    simulated = plan(monkeypatch, engine="simulated", model_aliases="a,b=tiny")
    assert simulated.aliases == {"a": "", "b": ""}  # no other model is there


def test_simulated_models_have_no_audio_context(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = plan(monkeypatch, engine="simulated", audio_context="auto")
    assert options(simulated).min_context_s == 30


def test_workers_on_the_cpu_have_a_lower_priority_than_those_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr("app.engines.plan.ChildProcess", lambda *args: given.append(args) or Mock())
    plan(monkeypatch, gpus=0, cpu_workers=1).slots(new_catalogue())
    plan(monkeypatch, gpus=1).slots(new_catalogue())
    assert [args[2] for args in given] == [10, 0]


def test_compiled_kernels_lie_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr("app.engines.plan.ChildProcess", lambda *args: given.append(args) or Mock())
    plan(monkeypatch, gpus=1, data_dir=tmp_path).slots(new_catalogue())
    plan(monkeypatch, gpus=0, cpu_workers=1, data_dir=tmp_path).slots(new_catalogue())
    assert [args[3] for args in given] == [tmp_path / "cuda-cache", None]


@pytest.mark.parametrize(
    ("gpus", "cores", "count"),
    [
        (1, 64, 4),
        (2, 64, 4),
        (3, 64, 6),
        (8, 64, 16),
        (8, 20, 12),  # each Whisper worker keeps a core
        (8, 9, 1),
        (8, 4, 1),
        (0, 64, 4),
        (0, 3, 3),
        (0, 1, 1),
    ],
)
def test_media_workers_follow_gpus_and_cores(
    monkeypatch: pytest.MonkeyPatch, gpus: int, cores: int, count: int
) -> None:
    assert media_workers(load_settings(), plan(monkeypatch, gpus=gpus), cores) == count


def test_two_workers_on_a_gpu_have_twice_the_media_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = plan(monkeypatch, gpus=2, gpus_setting="0,0,1,1")
    assert media_workers(load_settings(), doubled, 64) == 8


def test_simulated_workers_count_as_gpus_and_take_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = plan(monkeypatch, engine="simulated", gpus_setting="0,1,2,3,4")
    assert [media_workers(load_settings(), simulated, cores) for cores in (64, 8, 2)] == [10, 8, 2]


@pytest.mark.parametrize("gpus", [0, 8])
def test_the_number_of_media_workers_can_be_set(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    assert media_workers(load_settings(media_workers=7), plan(monkeypatch, gpus=gpus), 1) == 7


TYPES = {"0": {"float32"}, "1": {"float16", "float32"}, "2": {"int8", "float32"}}


class FakePools:
    """`ProcessPoolExecutor` without processes: each device answers with its compute types, or fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, workers: int, context: object, initialise: object, given: tuple[str]) -> "FakePools":
        self.asked.append(given[0])
        return self

    def __enter__(self) -> "FakePools":
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, function: object, device: str) -> "Future[set[str]]":
        future: Future[set[str]] = Future()
        if self.asked[-1] in TYPES:
            future.set_result(TYPES[self.asked[-1]])
        else:
            future.set_exception(RuntimeError("CUDA failed with error unspecified launch failure"))
        return future


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> FakePools:
    pools = FakePools()
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", pools)
    return pools


def test_every_device_must_have_the_compute_type(monkeypatch: pytest.MonkeyPatch, pools: FakePools) -> None:
    mixed = plan(monkeypatch, gpus=3, gpus_setting="1,0,1,2", compute_type="float16")
    with pytest.raises(InvalidSetting) as refused:
        check_compute_type(mixed)
    assert refused.value.message.startswith(
        "WHISPER_COMPUTE_TYPE=float16: device cuda 0 has float32; device cuda 2 has float32, int8: "
    )
    assert "WHISPER_GPUS" in refused.value.message
    assert diagnose(refused.value.message) is not None
    assert pools.asked == ["1", "0", "2"], "each device is asked once"
    check_compute_type(plan(monkeypatch, gpus=3, compute_type="float32"))


def test_a_broken_gpu_does_not_hinder_the_others(monkeypatch: pytest.MonkeyPatch, pools: FakePools) -> None:
    check_compute_type(plan(monkeypatch, gpus=4, gpus_setting="3,1", compute_type="float16"))
    assert pools.asked == ["3", "1"]


def test_workers_on_the_cpu_are_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSetting, match=r"WHISPER_COMPUTE_TYPE=float16: device cpu has .*float32"):
        check_compute_type(plan(monkeypatch, cpu_workers=2, compute_type="float16"))


def test_settings_that_do_not_fit_the_machine_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="WHISPER_MODEL=/no/such/folder"):
        make_plan(load_settings(model="/no/such/folder", _env_file=None))


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_processes_divide_the_workers(monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    whole = plan(monkeypatch, gpus=5)
    parts = [whole.of_process(index, processes) for index in range(processes)]
    assert [gpu for part in parts for gpu in part.gpus] == list(whole.gpus)
    assert all(part.worker_count in (5 // processes, 5 // processes + 1) for part in parts)
    slots = [slot.index for part in parts for slot in part.slots(new_catalogue())]
    assert slots == list(range(5))
    assert {part.devices.cpu_threads for part in parts} == {whole.devices.cpu_threads}


def test_more_processes_than_workers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidSetting, match=r"WHISPER_PROCESSES=3: there are 2 workers"):
        plan(monkeypatch, gpus=2).of_process(0, 3)
    with pytest.raises(InvalidSetting, match="1 workers"):
        plan(monkeypatch, gpus=2, engine="inline").of_process(0, 2)
