"""The folder of `fetch`: names stay, files of others too, and the next run goes on after an interruption."""

from pathlib import Path

import pytest

from app.commands.fetched import INDEX, ChangedHere, Folder
from app.common.errors import WhisperfleetError


def store(folder: Folder, key: str, stem: str, content: str, version: str = "1") -> str:
    return folder.store(key, stem, "txt", version, content.encode())[0].name


def files(path: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in path.iterdir() if file.name != INDEX}


def test_names_stay_when_titles_collide(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert [store(folder, "a", "Talk", "one"), store(folder, "b", "talk", "two")] == [
        "Talk.txt",
        "talk (2).txt",
    ]
    folder.save()
    again = Folder(tmp_path)
    assert again.has("b", "talk", "txt", "1")
    assert store(again, "b", "talk", "new", "2") == "talk (2).txt"
    assert store(again, "a", "Other", "one", "2") == "Other.txt"
    assert store(again, "b", "talk", "newer", "3") == "talk (2).txt"
    assert files(tmp_path) == {"Other.txt": "one", "talk (2).txt": "newer"}


def test_a_run_that_was_killed_before_its_index_was_stored(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    store(folder, "a", "Talk", "one")
    folder.save()
    store(folder, "a", "Title", "one, corrected", "2")
    store(folder, "b", "Talk", "two")
    (tmp_path / ".whisperfleet.part").write_text("hal")
    later = Folder(tmp_path)
    assert later.has("a", "Title", "txt", "2")
    assert not later.has("b", "Talk", "txt", "1")
    assert store(later, "a", "Title", "one, corrected", "2") == "Title.txt"
    assert store(later, "b", "Talk", "two") == "Talk.txt"
    later.save()
    assert files(tmp_path) == {"Talk.txt": "two", "Title.txt": "one, corrected"}


def test_a_run_that_was_killed_between_a_new_name_and_its_content(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    store(folder, "a", "Talk", "one")
    folder.save()
    (tmp_path / "Talk.txt").rename(tmp_path / "Title.txt")
    assert store(Folder(tmp_path), "a", "Title", "one, corrected", "2") == "Title.txt"
    assert files(tmp_path) == {"Title.txt": "one, corrected"}


def test_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    (tmp_path / "out" / "Talk.txt").symlink_to(outside)
    folder = Folder(tmp_path / "out")
    assert store(folder, "a", "Talk", "one") == "Talk (2).txt"
    (tmp_path / "out" / "Talk (2).txt").write_text("mine")
    with pytest.raises(ChangedHere, match="was changed here"):
        store(folder, "a", "Talk", "two", "2")
    (tmp_path / "out" / "Talk (2).txt").unlink()
    (tmp_path / "out" / "Talk (2).txt").symlink_to(outside)
    store(folder, "a", "Talk", "two", "2")
    assert outside.read_text() == "secret"


def test_files_are_in_folders_and_follow_their_new_ones(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    store(folder, "a", "2024/spring/Talk", "one")
    store(folder, "b", "2024/Talk", "two")
    folder.save()
    again = Folder(tmp_path)
    assert again.has("a", "2024/spring/Talk", "txt", "1")
    store(again, "a", "2023/Talk", "one", "2")
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.txt")}
    assert found == {"2023/Talk.txt", "2024/Talk.txt"}


def test_a_link_to_another_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = Folder(tmp_path / "out")
    (tmp_path / "out" / "2024").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WhisperfleetError, match="2024 is a link"):
        store(folder, "a", "2024/Talk", "one")
    with pytest.raises(WhisperfleetError, match="2024/spring is a link"):
        store(folder, "a", "2024/spring/Talk", "one")
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("stem", ["Talk.txt/Other", "Talk.txt/spring/Other"])
def test_a_file_in_the_way_of_a_folder_keeps_from_this_transcript_alone(tmp_path: Path, stem: str) -> None:
    folder = Folder(tmp_path)
    store(folder, "a", "Talk", "one")
    with pytest.raises(WhisperfleetError, match="in the way of the folder"):
        store(folder, "b", stem, "two")


def test_one_command_at_a_time(tmp_path: Path) -> None:
    with (
        Folder(tmp_path).locked(),
        pytest.raises(WhisperfleetError, match="another fetch"),
        Folder(tmp_path).locked(),
    ):
        pass
