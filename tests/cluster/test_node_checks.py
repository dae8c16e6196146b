"""What a node says of itself, and which differences leave it out."""

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.common.errors import ModelUnavailable
from app.engines.cluster.node_checks import (
    fault_of,
    find_model,
    found_model,
    inspect,
    other_files,
    other_versions,
    packages_of,
    versions,
)
from app.engines.model_files import DEMO_PATH
from app.pool.cluster.ray_messages import NodeReport
from workers.messages import LoadOptions

OURS = {"python": "3.11.7", "whisperfleet": "1.2", "ray": "2.60.0", "ctranslate2": "4.8.5"}


def test_a_node_reports_its_versions_and_its_clock() -> None:
    report = inspect()
    assert report.versions.items() > versions().items()
    named = {"python", "whisperfleet", "ray", "ctranslate2", "faster-whisper", "torch"}
    assert named == set(report.versions)
    assert abs(report.clock - time.time()) < 60


def test_a_report_imports_neither_ray_nor_torch() -> None:
    code = (
        "import sys; from app.engines.cluster import node_checks; node_checks.inspect(); "
        "sys.exit(bool({'ray', 'torch', 'app.settings'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_same_versions_are_fine_and_patches_of_python_do_not_matter() -> None:
    assert other_versions(OURS, OURS) is None
    assert other_versions(OURS, OURS | {"python": "3.11.9"}) is None


def test_other_versions_are_named_in_one_line() -> None:
    fault = other_versions(OURS, {"python": "3.12.1", "whisperfleet": "1.2", "ray": "2.59.0"})
    assert fault is not None
    assert "python 3.12.1 (here 3.11.7), ray 2.59.0 (here 2.60.0), ctranslate2 none (here 4.8.5)" in fault
    assert "whisperfleet" not in fault
    assert "\n" not in fault


def test_torch_matters_to_its_workers_alone_and_on_gpus_its_build_does() -> None:
    options = LoadOptions("demo", "", "cuda", "auto", 1, backend="torch")
    same = NodeReport(versions(packages_of("torch")), 0.0, torch_cuda="12.6")
    public = same.versions["torch"].partition("+")[0]
    of_gpus = replace(same, versions={**same.versions, "torch": f"{public}+cu126"})
    assert [fault_of(report, options) for report in (same, of_gpus)] == [None, None]
    for_cpus, other = (
        replace(same, torch_cuda=None),
        replace(same, versions={**same.versions, "torch": "2.9"}),
    )
    assert "is built for CPUs alone. Install a build for CUDA there." in str(fault_of(for_cpus, options))
    assert fault_of(for_cpus, replace(options, device="cpu")) is None
    assert "its versions differ: torch 2.9 (here " in str(fault_of(other, options))
    assert fault_of(other, replace(options, backend="ctranslate2")) is None


def test_a_model_is_found_with_the_sizes_of_its_files() -> None:
    found = find_model("demo")
    assert found.path == str(DEMO_PATH)
    assert found.files["model.bin"] == (DEMO_PATH / "model.bin").stat().st_size
    assert "README.md" not in found.files  # says nothing about transcripts


def test_a_folder_that_the_node_lacks_is_named() -> None:
    with pytest.raises(ModelUnavailable, match=r"/mnt/models/mine is not on this node: share it"):
        find_model("/mnt/models/mine")


def test_a_model_that_cannot_be_downloaded_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailable, match="tiny"):
        find_model("tiny")


def test_copies_of_a_model_are_the_same_and_a_cut_one_is_not(tmp_path: Path) -> None:
    shutil.copytree(DEMO_PATH, copy := tmp_path / "copy")
    ours = found_model(DEMO_PATH)
    assert other_files("demo", ours, found_model(copy)) is None
    (copy / "tokenizer.json").unlink()
    (copy / "model.bin").write_bytes(b"cut")
    fault = other_files("demo", ours, found_model(copy))
    assert fault is not None
    assert "model.bin 3 bytes (here " in fault
    assert "tokenizer.json missing (here " in fault
    assert str(copy) in fault
    assert "\n" not in fault
