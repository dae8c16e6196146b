"""Budgets: what is left of them, and who gets it."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from app.common.errors import InsufficientQuota, InvalidSetting
from app.intake import budgets as module
from app.intake.budgets import Allowance, Budgets, Used, budgets_of
from app.settings import Settings

MONTH_S = 31 * 86_400.0
NOW = 1_800_000_000.0  # 2027-01-15


@pytest.fixture
def budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Budgets]:
    monkeypatch.setattr(module.time, "time", lambda: NOW)

    def make(*lines: str, **options: bool) -> Budgets:
        (tmp_path / "budgets").write_text("\n".join(lines))
        return Budgets(tmp_path / "budgets", **options)

    return make


def test_two_cannot_take_the_last_minutes(budgets: Callable[..., Budgets]) -> None:
    shared = budgets("alice:10")
    first, second, other = (Allowance(shared, owner) for owner in ("alice", "alice", "bob"))
    for allowance in (first, second):
        shared.check("alice")
        allowance.reserve(1)
    first.reserve(400)
    with pytest.raises(InsufficientQuota, match=r"3\.3 of your 10 minutes .* on 2027-02-01\."):
        second.reserve(300)
    second.reserve(200)
    with pytest.raises(InsufficientQuota):
        shared.check("alice")
    other.reserve(10**9)
    first.charge("tiny", 400)
    assert shared.left("alice") == 0
    first.reserve(0)
    assert shared.left("alice") == 0, "what is charged is not there again"
    second.reserve(0)  # it failed
    assert shared.left("alice") == 200


def test_what_fits_exactly_is_taken(budgets: Callable[..., Budgets]) -> None:
    shared = budgets("*:1")
    for _ in range(600):
        one = Allowance(shared, "")
        one.reserve(0.1)
        one.charge("tiny", 0.1)
    with pytest.raises(InsufficientQuota):
        Allowance(shared, "").reserve(0.1)


def test_all_of_it_is_there_again_in_the_next_month(
    budgets: Callable[..., Budgets], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = budgets("alice:1")
    Allowance(shared, "alice").charge("tiny", 60)
    with pytest.raises(InsufficientQuota):
        shared.check("alice")
    monkeypatch.setattr(module.time, "time", lambda: NOW + MONTH_S)
    shared.check("alice")
    assert shared.left("alice") == 60


def test_a_job_keeps_what_it_has_until_it_ends(budgets: Callable[..., Budgets]) -> None:
    shared = budgets("alice:1")
    shared.of_job("a", "alice").reserve(59.5)
    with pytest.raises(InsufficientQuota):
        shared.check("alice")
    assert shared.of_job("a", "alice").reserved == 59.5
    shared.end_job("a")
    shared.end_job("a")
    assert shared.left("alice") == 60


def test_a_charge_counts_a_job_once_and_stores_what_is_used(budgets: Callable[..., Budgets]) -> None:
    shared, stored = budgets(), list[Used]()
    shared.on_charge = stored.append
    stream = Allowance(shared, "alice")
    stream.reserve(100)
    for seconds in (0, 2, 3):
        stream.charge("tiny", seconds)
    assert stored == [Used("2027-01-15", "alice", "tiny", 1, 2), Used("2027-01-15", "alice", "tiny", 0, 3)]
    assert stream.reserved == 95


def test_the_file_names_owners_as_they_are(budgets: Callable[..., Budgets]) -> None:
    shared = budgets("# minutes", "", "team: a@b:2", "ops:unlimited", "*:0.5")
    assert [shared.left(owner) for owner in ("team: a@b", "ops", "carol", "")] == [120, float("inf"), 30, 30]
    assert Budgets().left("carol") == float("inf")


@pytest.mark.parametrize("line", ["alice", "alice:", ":5", "alice:-1", "alice:nan", "alice:5 min"])
def test_a_wrong_line_is_named_and_changes_nothing(budgets: Callable[..., Budgets], line: str) -> None:
    shared = budgets("alice:1")
    path = shared._file
    assert path is not None
    path.write_text(f"bob:1\n{line}")
    with pytest.raises(ValueError, match=r"is no budget\. Write OWNER:MINUTES"):
        shared.load()
    assert (shared.left("alice"), shared.left("bob")) == (60, float("inf"))
    with pytest.raises(InvalidSetting, match=f"WHISPER_BUDGETS_FILE={path}: {line!r} is no budget"):
        budgets_of(Settings(budgets_file=path, _env_file=None))
    path.unlink()
    with pytest.raises(InvalidSetting, match="No such file"):
        budgets_of(Settings(budgets_file=path, _env_file=None))


def test_metrics_name_twenty_owners_who_stay_the_same(budgets: Callable[..., Budgets]) -> None:
    shared = budgets(shows_owners=True)
    for number in range(25):
        Allowance(shared, f"owner{number}").charge("tiny", 30 - number)
    before = dict(shared.used_by_owner())
    assert len(before) == 21
    assert before[("other",)] == sum(30 - number for number in range(20, 25))
    Allowance(shared, "owner24").charge("tiny", 1000)
    after = dict(shared.used_by_owner())
    assert after == before | {("other",): before[("other",)] + 1000}
    assert list(budgets().used_by_owner()) == []


def test_the_error_survives_processes() -> None:
    error = InsufficientQuota("used up", code="insufficient_quota")
    assert pickle.loads(pickle.dumps(error)).code == "insufficient_quota"
