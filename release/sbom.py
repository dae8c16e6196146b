"""The product's software bill of materials: CycloneDX 1.6 in JSON.

    python release/sbom.py ENVIRONMENT OUTPUT [EXTRAS]

ENVIRONMENT is the virtual environment in which whisperfleet is installed. The bill lists the packages that
whisperfleet needs there with EXTRAS (`gpu,url`), and what its own files contain of others. Packages for
development are left out.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from installed import product_packages, site_packages
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
BUNDLED = ROOT / "app" / "web" / "vendor" / "LICENSES.txt"
VERSION = SchemaVersion.V1_6


def describe(environment: Path, extras: frozenset[str]) -> dict[str, Any]:
    """The bill of materials."""
    command = [Path(sys.executable).with_name("cyclonedx-py"), "environment", "--no-validate"]
    command += ["--output-reproducible", "--pyproject", ROOT / "pyproject.toml", "--of", "JSON"]
    command += ["--sv", VERSION.to_version(), "--output-file", "-", environment]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    bill: dict[str, Any] = json.loads(made.stdout)
    return add_bundled(keep(bill, product_packages(environment, extras)))


def keep(bill: dict[str, Any], versions: dict[str, str]) -> dict[str, Any]:
    """The bill with these packages alone, and the dependencies between them.

    Links to homepages and the like are left out: to validate their syntax takes most of the time.
    """
    components = [
        {field: value for field, value in part.items() if field != "externalReferences"}
        for part in bill["components"]
        if canonicalize_name(part["name"]) in versions
    ]
    kept = {bill["metadata"]["component"]["bom-ref"], *(part["bom-ref"] for part in components)}
    dependencies = [
        entry | {"dependsOn": [name for name in entry.get("dependsOn", ()) if name in kept]}
        for entry in bill["dependencies"]
        if entry["ref"] in kept
    ]
    return bill | {"components": components, "dependencies": dependencies}


def add_bundled(bill: dict[str, Any]) -> dict[str, Any]:
    """The bill with the page's packages and the demo model, which are files of the product itself."""
    parts = [
        {
            "bom-ref": f"npm:{name}@{version}",
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:npm/{name.replace('@', '%40')}@{version}",
            "licenses": [{"license": {"id": licence, "acknowledgement": "declared"}}],
        }
        for name, version, licence in bundled_packages()
    ]
    model = {
        "bom-ref": "demo-model",
        "type": "machine-learning-model",
        "name": "whisperfleet demo model",
        "licenses": [{"license": {"id": "MIT", "acknowledgement": "declared"}}],
    }
    return bill | {"components": [*bill["components"], *parts, model]}


def bundled_packages() -> list[tuple[str, str, str]]:
    """Name, version and licence (SPDX) of each package of the page."""
    heading = re.compile(r"^(\S+) (\d\S*) \(([\w.-]+)\)$", re.MULTILINE)
    return heading.findall(BUNDLED.read_text(encoding="utf-8"))


def main(environment: str, output: str, extras: str = "") -> None:
    """Write the bill. Ends the program if it is not valid."""
    # Not the environment's own python: a link to it would be resolved to the machine's.
    site_packages(Path(environment))
    bill = describe(Path(environment), frozenset(filter(None, extras.split(","))))
    text = json.dumps(bill, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    fault = JsonStrictValidator(VERSION).validate_str(text)
    if fault is not None:
        sys.exit(f"the bill of materials is not valid CycloneDX: {fault}")
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    Path(output).write_text(text, encoding="utf-8")
    print(f"{output}: {len(bill['components'])} components")


if __name__ == "__main__":
    main(*sys.argv[1:])
