"""From settings to a plan."""

from pathlib import Path

import pytest

from app.engines.model_files import ModelFiles
from app.engines.plan import Plan, make_plan
from app.errors import InvalidSetting
from app.settings import load_settings
from tests.engines.catalogues import new_catalogue
from workers.messages import LoadOptions


def plan(monkeypatch: pytest.MonkeyPatch, *, gpus: int = 0, **given: object) -> Plan:
    monkeypatch.setattr("app.engines.plan.count_gpus", lambda: gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return make_plan(load_settings(model="demo", **given))


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


def test_workers_on_the_cpu_have_a_lower_priority_than_those_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr("app.engines.plan.LocalSlot", lambda *args: given.append(args))
    plan(monkeypatch, gpus=0, cpu_workers=1).slots(new_catalogue())
    plan(monkeypatch, gpus=1).slots(new_catalogue())
    assert [args[-1] for args in given] == [10, 0]


def test_settings_that_do_not_fit_the_machine_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="WHISPER_MODEL=/no/such/folder"):
        make_plan(load_settings(model="/no/such/folder", _env_file=None))
