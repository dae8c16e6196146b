"""Faults that tests bring about in a server's workers."""

import json
import os
from pathlib import Path
from typing import Any

from tests.e2e.saboteur import sitecustomize


class Sabotage:
    """What is to go wrong in the workers of a server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.plan()

    def plan(self, **faults: Any) -> None:
        draft = self._folder / "draft"
        draft.write_text(json.dumps(faults))
        draft.rename(self._folder / "plan.json")

    def heard(self) -> list[str]:
        """The names of all clips that workers have heard so far, see `sitecustomize.clip_name`."""
        log = self._folder / "heard"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def settings(self) -> dict[str, Any]:
        places = [str(Path(sitecustomize.__file__).parent), os.environ.get("PYTHONPATH", "")]
        return {"SABOTAGE": self._folder, "PYTHONPATH": os.pathsep.join(filter(None, places))}
