"""Look the product's packages up in PyPI's database of known vulnerabilities, with pip-audit.

    python release/audit.py ENVIRONMENT [EXTRAS]

Exit code 0: none is known, besides those of `advisories.toml`. 1: some are. 2: the database could not be
asked about every package, so "none is known" would say nothing.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from installed import product_packages

ACCEPTED = Path(__file__).with_name("advisories.toml")

Report = Sequence[Mapping[str, Any]]


def look_up(versions: Mapping[str, str], accepted: Mapping[str, str]) -> tuple[Report, str]:
    """pip-audit's report: an entry for each package. Empty if there is none; then the reason is beside it."""
    with tempfile.TemporaryDirectory() as folder:
        pins, report = Path(folder, "requirements.txt"), Path(folder, "report.json")
        # A local build, such as torch's 2.13.0+cpu, has the advisories of its release.
        pins.write_text(
            "".join(f"{name}=={version.partition('+')[0]}\n" for name, version in versions.items())
        )
        command = [sys.executable, "-m", "pip_audit", "--requirement", pins, "--no-deps", "--disable-pip"]
        command += ["--format", "json", "--output", report, "--progress-spinner", "off"]
        for advisory in accepted:
            command += ["--ignore-vuln", advisory]
        asked = subprocess.run(command, capture_output=True, text=True)
        try:
            return json.loads(report.read_text(encoding="utf-8"))["dependencies"], ""
        except (OSError, ValueError, KeyError):
            return [], (asked.stderr.strip().splitlines() or ["pip-audit wrote no report"])[-1]


def judge(report: Report, versions: Mapping[str, str], accepted: Mapping[str, str]) -> tuple[int, list[str]]:
    """The exit code for a report, and the lines that say why."""
    vulnerable = [entry for entry in report if entry.get("vulns")]
    lines = [
        f"{entry['name']} {entry['version']}: {found['id']}, "
        f"repaired in {', '.join(found['fix_versions']) or 'no version'}"
        for entry in vulnerable
        for found in entry["vulns"]
    ]
    lines += [f"accepted: {advisory}: {reason}" for advisory, reason in accepted.items()]
    # A mirror of the package index has no advisories: pip-audit skips all packages, and calls that clean.
    answered = {entry["name"] for entry in report if "skip_reason" not in entry}
    if answered:
        lines.append(f"{len(answered)} packages looked up, {len(vulnerable)} with known vulnerabilities")
    if unknown := sorted(set(versions) - answered):
        lines.append(f"NOT AUDITED: the database said nothing about {', '.join(unknown)}")
    return 1 if vulnerable else 2 if unknown else 0, lines


def main(environment: str, extras: str = "") -> int:
    """Audit the packages that whisperfleet needs in a virtual environment. Returns the exit code."""
    accepted: dict[str, str] = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))
    versions = product_packages(Path(environment), frozenset(filter(None, extras.split(","))))
    report, failure = look_up(versions, accepted)
    code, lines = judge(report, versions, accepted)
    print("\n".join([*filter(None, [failure]), *lines]))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
