"""Fault injection into the workers of a server."""

import json
import os
from pathlib import Path
from typing import Any

from tests.e2e.saboteur import sitecustomize


class Sabotage:
    """The faults to inject into the workers of a server, and a log of the windows that they decode."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.plan()

    def plan(self, **faults: Any) -> None:
        """Replace the faults; see `sitecustomize` for the names and values."""
        draft = self._folder / "draft"
        draft.write_text(json.dumps(faults))
        draft.rename(self._folder / "plan.json")

    def decoded(self) -> list[str]:
        """The names of all windows that workers have decoded so far, see `sitecustomize.window_name`."""
        log = self._folder / "decoded"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def had_two_batches(self) -> bool:
        """Whether a worker had a batch ready while it decoded another."""
        return (self._folder / "had_two_batches").exists()

    @property
    def settings(self) -> dict[str, Any]:
        folders = [str(Path(sitecustomize.__file__).parent), os.environ.get("PYTHONPATH", "")]
        return {"SABOTAGE": self._folder, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
