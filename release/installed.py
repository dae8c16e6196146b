"""The packages that the product needs, among all that an environment has."""

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PRODUCT = "whisperfleet"
# Installed without their dependencies, and not named as dependencies themselves.
WITHOUT_DEPENDENCIES = ("resemblyzer",)


def site_packages(environment: Path) -> Path:
    """The folder of a virtual environment that has its packages. Ends the program if there is none."""
    found = [path for path in environment.glob("lib/python3*/site-packages") if path.is_dir()]
    if len(found) != 1:
        sys.exit(f"{environment} is no virtual environment; run `make .venv/.installed` first")
    return found[0]


def product_packages(environment: Path, extras: frozenset[str]) -> dict[str, str]:
    """The version of each package that whisperfleet with these extras needs, without itself.

    The names are normalized. Ends the program if a package is missing.
    """
    installed = {
        canonicalize_name(found.metadata["Name"]): found
        for found in distributions(path=[str(site_packages(environment))])
    }
    needed: dict[tuple[str, frozenset[str]], None] = {}
    queue = [(PRODUCT, extras), *((name, frozenset[str]()) for name in WITHOUT_DEPENDENCIES)]
    while queue:
        name, wanted = queue.pop()
        if (name, wanted) in needed:
            continue
        if name not in installed:
            sys.exit(f"{name} is not installed in {environment}; run `make .venv/.installed EXTRAS=…` first")
        needed[name, wanted] = None
        if name not in WITHOUT_DEPENDENCIES:
            queue += _requirements(installed[name], wanted)
    names = sorted({name for name, _ in needed} - {PRODUCT})
    return {name: installed[name].version for name in names}


def _requirements(package: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for line in package.requires or ():
        requirement = Requirement(line)
        # A marker such as `extra == "gpu"` holds for one extra at a time.
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)
