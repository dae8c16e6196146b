"""Watchers of a temporary folder, with a fake service."""

from pathlib import Path

import pytest

from app.client import jobs
from app.watch import recording, watcher
from tests.watch.watched_folder import Watched


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr(jobs, "_POLL_S", (0.02, 0.02))
    monkeypatch.setattr(watcher, "_RETRY_S", 0.2)
    monkeypatch.setattr(recording, "_FIRST_PAUSE_S", 0.1)
    monkeypatch.setattr(watcher, "_ROOT_S", 0.1)
    folder = tmp_path / "films"
    folder.mkdir()
    return Watched(folder, tmp_path / "recordings.db")
