"""`whisperfleet bench`, as short as possible."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.fixtures import Commands, Outcome

pytestmark = pytest.mark.timeout(170)


@pytest.mark.soak
def test_a_quick_bench_fills_every_table(commands: Commands, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    run = commands.run("bench", "--quick", "--json", figures)
    assert run.process.returncode == 0, run.stderr
    found = json.loads(figures.read_text())
    assert found["machine"]["versions"]["ctranslate2"]
    [length] = found["throughput"]["lengths"].values()
    assert set(length["median_s"]) == {"whisperfleet", "batched", "sequential", "engine alone"}
    assert all(rate < 0.5 for rate in length["word_error_rate"].values())
    assert found["scaling"]["1 min"]["ratio"] > 0
    assert found["memory"]["grown_mib"]["1 min"]["server"] >= 0
    assert set(found["idle"]["after_work_mib"]) >= {"server", "Whisper worker 1", "media worker 0"}
    assert found["voices"]["windows"] > 10
    assert found["media"]["1 min"]["cpu_s"]["speech"] > 0
    shares = found["stages"]["of_the_wall_time_s"]
    assert shares["encode"] > 0
    assert sum(shares.values()) == pytest.approx(found["stages"]["wall_s"], abs=0.1)
    assert "| encode |" in run.stdout


@pytest.mark.soak
def test_the_latency_bench_measures_the_loop_of_a_checkout(tmp_path: Path) -> None:
    """The checkout of these tests is measured as the older one, too: it needs nothing of bench."""
    figures = tmp_path / "figures.json"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "bench.latency", "--quick", "--before", root, "--json", figures]
    run = subprocess.run([*map(str, command)], cwd=root, capture_output=True, text=True, timeout=160)
    assert run.returncode == 0, run.stderr
    found = json.loads(figures.read_text())
    for name in ("before", "after"):
        [measured] = found[name]
        assert measured["polling"]["times_ms"]["/health"]["count"] > 50
        assert measured["everything"]["times_ms"]["list of 100 jobs"]["count"] > 0
        assert measured["everything"]["loop"]["calls"] > measured["polling"]["loop"]["calls"] / 2
        assert measured["everything"]["loop"]["by_cpu"][0]["name"]
    assert "p99 after / before" in run.stdout


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_scale_bench_compares_the_servers_of_two_checkouts(tmp_path: Path) -> None:
    """With worker processes that have no model, in this checkout and in the same one again."""
    figures = tmp_path / "figures.json"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "bench.scale", "server", "load", "--quick", "--json", figures]
    run = subprocess.run([*map(str, command), "--before", root], cwd=root, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(figures.read_text())
    for kind in ("jobs", "verbose_json", "srt"):
        assert found[f"{kind}_s"] == pytest.approx(sum(found[f"{kind}_parts_s"].values()), abs=0.05)
        assert found[f"{kind}_parts_s"]["words"] > 0
    assert "The same text: yes" in run.stdout
    [load] = found["load"]
    assert load["busy_slots"] > 0


def test_an_unknown_part_is_refused(run_here: Callable[..., Outcome]) -> None:
    run = run_here("bench", "sightseeing")
    assert run.code == 2
    assert "no such part: sightseeing" in run.stderr
