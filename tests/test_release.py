"""What belongs to a release: labels, bill of materials, audit, no advice to install a stranger's package."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(180)

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def texts_for_users() -> dict[str, str]:
    """Documentation, messages of the programs, and examples, by path."""
    folders = ("app", "bench", "docker", "docs", "release", "workers")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    kinds = {".md", ".py", ".toml", ".txt", ".yaml", ".yml", ""}
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in [*paths, *(path for path in ROOT.iterdir() if path.is_file())]
        if path.suffix in kinds
    }


def make(*targets: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `make`, which installs nothing of the product anew."""
    return subprocess.run(
        ["make", "--silent", "--old-file", ".venv/.installed", *targets],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )


def test_nothing_recommends_a_package_that_a_stranger_may_own() -> None:
    # The name is not registered at PyPI: `pip install whisperfleet` would fetch whatever somebody puts there.
    bare = re.compile(r"""pip install (?:-\S+ )*["']?whisperfleet(?![-\w/.])|["'`]whisperfleet\[""")
    assert {
        path: found.group() for path, text in texts_for_users().items() if (found := bare.search(text))
    } == {}


@pytest.mark.soak
def test_the_bill_of_materials_lists_the_product_and_no_tool_for_developers() -> None:
    made = make("sbom")
    assert made.returncode == 0, made.stdout + made.stderr  # the target checks CycloneDX's schema
    bill = json.loads((ROOT / "dist" / "sbom.json").read_text(encoding="utf-8"))
    product = bill["metadata"]["component"]
    assert (product["name"], product["version"]) == (PROJECT["name"], PROJECT["version"])
    parts = {part["name"].lower().replace("_", "-"): part for part in bill["components"]}
    required = {re.split(r"[\[>=]", line)[0] for line in PROJECT["dependencies"]}
    assert required <= set(parts)
    assert {"pydantic-core", "h11", "tqdm"} <= set(parts), "what packages need, they also list"
    assert "resemblyzer" in parts, "it is installed without its dependencies"
    assert {"tus-js-client", "preact", "htm", "whisperfleet demo model"} <= set(parts)
    assert not {"pytest", "ruff", "playwright", "pip", "cyclonedx-bom"} & set(parts)
    assert parts["av"]["purl"] == f"pkg:pypi/av@{parts['av']['version']}"
    references = {part["bom-ref"] for part in bill["components"]} | {product["bom-ref"]}
    assert all({entry["ref"], *entry["dependsOn"]} <= references for entry in bill["dependencies"])


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "release")
    import audit

    return audit.judge


CLEAN = {"name": "av", "version": "18.1.0", "vulns": []}
SICK = {"name": "h11", "version": "0.16.0", "vulns": [{"id": "GHSA-1", "fix_versions": ["0.17.0"]}]}
UNKNOWN = {"name": "tqdm", "skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("report", "code", "line"),
    [
        ([CLEAN], 0, "1 packages looked up, 0 with known vulnerabilities"),
        ([CLEAN, SICK], 1, "h11 0.16.0: GHSA-1, repaired in 0.17.0"),
        ([CLEAN, UNKNOWN], 2, "NOT AUDITED: the database said nothing about tqdm"),
        ([SICK, UNKNOWN], 1, "NOT AUDITED: the database said nothing about tqdm"),
        ([], 2, "NOT AUDITED: the database said nothing about av"),
    ],
)
def test_an_audit_is_clean_only_if_each_package_was_looked_up(judge, report, code, line) -> None:
    versions = {entry["name"]: "1.0" for entry in report} or {"av": "18.1.0"}
    found, lines = judge(report, versions, {"GHSA-2": "not called"})
    assert found == code
    assert line in lines
    assert "accepted: GHSA-2: not called" in lines


@pytest.mark.soak
def test_an_audit_without_a_network_says_so() -> None:
    installed = make(".venv/release/.installed")  # with a network
    assert installed.returncode == 0, installed.stderr
    audited = make("audit", HTTPS_PROXY="http://127.0.0.1:9")  # nothing listens there
    assert audited.returncode == 2
    assert "NOT AUDITED" in audited.stdout
    assert "looked up" not in audited.stdout
