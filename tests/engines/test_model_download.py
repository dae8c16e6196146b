"""Downloads of models: what is resumed, what is checked, and what an error says."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.common.errors import ModelUnavailable
from app.common.known_errors import diagnose
from app.engines import model_download
from app.engines.model_files import local_folder, locate
from tests.model_hub import WEIGHTS, Hub, model_hub

REPOSITORY = "Systran/faster-whisper-tiny"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub whose files the functions of `model_download` get, without huggingface_hub's own settings."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(model_download, "_PAUSE_S", 0.001)
    with model_hub() as hub:
        yield hub


def fetch(hub: Hub, blob: Path, size: int | None = None) -> list[int]:
    """Download the hub's weights into a blob. Returns what was reported."""
    url = f"{hub.url}/{REPOSITORY}/resolve/main/{WEIGHTS}"
    reported: list[int] = []
    whole = size or len(hub.files()[WEIGHTS])
    model_download._download_blob("tiny", url, blob, whole, lambda done, _: reported.append(done))
    return reported


def digest(hub: Hub) -> str:
    return model_download._sha256(hub.folder / WEIGHTS)


def test_a_connection_that_breaks_is_opened_again(hub: Hub, tmp_path: Path) -> None:
    hub.cut_after = 4_000_000
    blob = tmp_path / digest(hub)
    reported = fetch(hub, blob)
    assert hub.starts == [0, 4_000_000, 8_000_000]
    assert reported == sorted(set(reported))
    assert blob.read_bytes() == hub.files()[WEIGHTS]
    assert list(tmp_path.iterdir()) == [blob]


def test_a_connection_that_brings_nothing_is_an_error_in_the_end(hub: Hub, tmp_path: Path) -> None:
    hub.cut_after = 0
    with pytest.raises(Exception, match="without sending complete message body"):
        fetch(hub, tmp_path / digest(hub))
    assert len(hub.starts) == model_download._ATTEMPTS


@pytest.mark.parametrize(("cut_after", "ignores_range"), [(0, False), (1_000_000, True)])
def test_answers_that_end_early_without_an_error_end_the_download(
    hub: Hub, tmp_path: Path, cut_after: int, ignores_range: bool
) -> None:
    hub.cut_after, hub.hides_cuts, hub.ignores_range = cut_after, True, ignores_range
    with pytest.raises(OSError, match="ends before byte"):
        fetch(hub, tmp_path / digest(hub))
    assert len(hub.starts) == model_download._ATTEMPTS + ignores_range


def test_a_hub_that_is_gone_after_a_part(hub: Hub, tmp_path: Path) -> None:
    blob = tmp_path / digest(hub)
    blob.with_name(f"{blob.name}.incomplete").write_bytes(b"x" * 1000)
    gone = Hub(url="http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(Exception, match="refused"):
        fetch(gone, blob)


def test_a_proxy_that_drops_the_range(hub: Hub, tmp_path: Path) -> None:
    blob = tmp_path / digest(hub)
    blob.with_name(f"{blob.name}.incomplete").write_bytes(b"x" * 1000)
    hub.ignores_range = True
    fetch(hub, blob)
    assert blob.read_bytes() == hub.files()[WEIGHTS]


def test_damaged_weights_are_deleted(hub: Hub, tmp_path: Path) -> None:
    blob = tmp_path / digest(hub)
    blob.with_name(f"{blob.name}.incomplete").write_bytes(b"x" * 1000)
    with pytest.raises(ModelUnavailable, match="arrived damaged"):
        fetch(hub, blob)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_too_small(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**6))  # type: ignore[attr-defined]
    with pytest.raises(ModelUnavailable, match="it needs 9 MB more, and 1 MB are free") as raised:
        fetch(hub, tmp_path / digest(hub))
    assert_names_the_disk(raised.value)
    assert hub.starts == []


def test_a_disk_that_fills_up() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert_names_the_disk(model_download._explained("tiny", REPOSITORY, full))


def assert_names_the_disk(error: ModelUnavailable) -> None:
    assert "HF_HOME" in error.message
    assert "network" not in error.message
    known = diagnose(error.message)
    assert known is not None
    assert known.anchor == "model-does-not-fit-on-the-disk"


def test_a_cache_that_cannot_be_written() -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "/models/hub")
    message = model_download._explained("tiny", REPOSITORY, error).message
    assert "/models/hub: Permission denied" in message
    assert "HF_HOME" in message


def test_a_folder_that_is_called_like_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    assert local_folder("small") is None
    assert local_folder("./small") == Path("small")
    assert locate("./small").path == Path("small")


def test_the_log_shows_the_progress_of_a_service(tmp_path: Path) -> None:
    """In a process of its own: huggingface_hub reads its settings once."""
    code = "from app.engines.model_files import locate; print(locate('tiny').path)"
    with model_hub() as hub:
        environ = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "percent=100" in done.stdout
    assert json.loads((Path(lines[-1]) / "config.json").read_text())
    assert done.stderr == ""
