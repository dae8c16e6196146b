"""The data folder: one process at a time, and no leftovers."""

from pathlib import Path

import pytest

from app.common.errors import InvalidSetting
from app.intake.data_folder import DataFolder


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    data.lock()
    for folder in (data.uploads, data.pcm):
        for digit in "012":
            (folder / (digit * 32)).touch()
    (data.uploads / "notes.txt").touch()
    data.clean({"1" * 32}, {"2" * 32})
    assert sorted(path.name for path in data.uploads.iterdir()) == ["1" * 32, "notes.txt"]
    assert [path.name for path in data.pcm.iterdir()] == ["2" * 32]


def test_a_data_folder_is_locked_until_it_is_released(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    first.lock()
    first.lock()  # has no effect: it holds the lock already
    with pytest.raises(InvalidSetting, match="another whisperfleet uses this folder"):
        second.lock()
    first.release()
    second.lock()
    second.release()
    second.release()  # has no effect


def test_a_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidSetting, match=r"WHISPER_DATA_DIR=.* cannot be used: Not a directory"):
        DataFolder(tmp_path / "file").lock()


def test_a_new_folder_is_for_its_user_alone_and_an_existing_one_keeps_its_mode(tmp_path: Path) -> None:
    new = DataFolder(tmp_path / "share" / "whisperfleet")
    new.lock()
    assert [path.stat().st_mode & 0o777 for path in (new.path, new.uploads, new.pcm)] == [0o700] * 3
    (tmp_path / "group").mkdir()
    (tmp_path / "group").chmod(0o750)
    existing = DataFolder(tmp_path / "group")
    existing.lock()
    assert existing.path.stat().st_mode & 0o777 == 0o750
