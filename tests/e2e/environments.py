"""Environments that hold the packages that a page names, and nothing else."""

import venv
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


def python_with(packages: Iterable[str], folder: Path) -> Path:
    """The Python of a new environment in `folder`: with these packages and all that they require.

    They are links to those that are installed for the tests, so this takes no network and no time.
    """
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for distribution in _required(packages):
        for name in {path.parts[0] for path in distribution.files or ()} - {"..", "__pycache__"}:
            (site / name).symlink_to(Path(str(distribution.locate_file(name))))
    return folder / "bin" / "python"


def _required(packages: Iterable[str]) -> Iterator[metadata.Distribution]:
    """The packages and what they require, each once."""
    left, seen = list(packages), set()
    while left:
        distribution = metadata.distribution(left.pop())
        if distribution.name in seen:
            continue
        seen.add(distribution.name)
        yield distribution
        needs = map(Requirement, distribution.requires or ())
        left += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
